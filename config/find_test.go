package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/config"
)

func TestFind(t *testing.T) {
	t.Chdir(t.TempDir())
	home := t.TempDir()
	inHome := filepath.Join(home, ".config", "mainstem", "mainstem.yaml")
	inXDG := filepath.Join(home, "xdg", "mainstem", "mainstem.yaml")
	env := map[string]string{"HOME": home}
	find := func(want string, flag ...string) {
		t.Helper()
		got, err := config.Find(flag, environment(env))
		if err != nil || !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("got %q, %v; want %s", got, err, want)
		}
	}
	if _, err := config.Find(nil, environment(env)); err == nil || !strings.Contains(err.Error(), inHome) {
		t.Errorf("got %v, want the places that were looked at", err)
	}
	for _, path := range []string{inHome, inXDG} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	find(inHome)
	env["XDG_CONFIG_HOME"] = "relative" // ignored, as the XDG rules say
	find(inHome)
	env["XDG_CONFIG_HOME"] = filepath.Join(home, "xdg")
	find(inXDG)
	if err := os.WriteFile("mainstem.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	find("mainstem.yaml")
	env["MAINSTEM_CONFIG"] = "/etc/mainstem"
	find("/etc/mainstem")
	find("a b", "a", "b")
}
