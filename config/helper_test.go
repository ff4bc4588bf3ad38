package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/config"
)

// environment answers from pairs; HOME is always there.
func environment(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if s, ok := pairs[name]; ok {
			return s, true
		}
		if name == "HOME" {
			return "/home/someone", true
		}
		return "", false
	}
}

// write puts text into a new file that only we can read.
func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t testing.TB, text string, pairs map[string]string) (*config.Config, error) {
	t.Helper()
	return config.Load([]string{write(t, "config.yaml", text)}, environment(pairs))
}

// loaded wants text to be valid.
func loaded(t testing.TB, text string, pairs map[string]string) *config.Config {
	t.Helper()
	c, err := load(t, text, pairs)
	if err != nil {
		t.Fatalf("load: %v\n%s", err, text)
	}
	return c
}

// only returns the one server of text.
func only(t testing.TB, text string, pairs map[string]string) *config.Server {
	t.Helper()
	c := loaded(t, text, pairs)
	if len(c.Servers) != 1 {
		t.Fatalf("got %d servers, want 1\n%s", len(c.Servers), text)
	}
	return c.Servers[0]
}

// refused wants text to be invalid, with every one of parts in the report.
func refused(t testing.TB, text string, pairs map[string]string, parts ...string) string {
	t.Helper()
	c, err := load(t, text, pairs)
	if err == nil {
		t.Fatalf("loaded %d servers, want an error\n%s", len(c.Servers), text)
	}
	if _, ok := err.(config.Problems); !ok {
		t.Fatalf("got %T, want Problems: %v", err, err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("report lacks %q:\n%v\n%s", part, err, text)
		}
	}
	return err.Error()
}

// warned wants a warning that holds every one of parts.
func warned(t testing.TB, c *config.Config, parts ...string) {
	t.Helper()
	for _, w := range c.Warnings {
		all := strings.Contains(w.What, "warning: ")
		for _, part := range parts {
			all = all && strings.Contains(w.String(), part)
		}
		if all {
			return
		}
	}
	t.Errorf("no warning with %q among:\n%v", parts, config.Problems(c.Warnings))
}
