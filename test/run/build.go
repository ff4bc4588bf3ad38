package run

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// binary builds the command once for all tests of a process. $MAINSTEM names one that is ready.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("MAINSTEM"); path != "" {
		return filepath.Abs(path)
	}
	dir, err := os.MkdirTemp("", "mainstem-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "mainstem")
	args := []string{"build", "-o", path}
	if race {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "github.com/mainstem-mcp/mainstem/cmd/mainstem")...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the command: %v\n%s", err, out)
	}
	return path, nil
})

// Binary returns the path of the command under test.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Clean removes what Binary built. TestMain calls it last.
func Clean() {
	if os.Getenv("MAINSTEM") == "" {
		if path, err := binary(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
	}
}
