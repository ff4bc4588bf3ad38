package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A full is a file on a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

// TestLostOutput: a result that nobody gets is no success.
func TestLostOutput(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	file := filepath.Join(dir, "mainstem.yaml")
	if err := os.WriteFile(file, []byte("mcpServers: {}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"list", "list --json", "check --json", "catalog --format json", "validate", "version"} {
		var errs bytes.Buffer
		args := strings.Fields(line)
		if line != "version" {
			args = append(args, "--config", file)
		}
		if code := newApp(strings.NewReader(""), full{}, &errs, os.LookupEnv).run(t.Context(), args); code != exitTool {
			t.Errorf("%s: exit code %d, want %d: %s", line, code, exitTool, errs.String())
		}
	}
}
