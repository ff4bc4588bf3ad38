package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
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

// TestInterrupted: that too is an outcome, and so one JSON document where JSON is wanted.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	file := filepath.Join(dir, "mainstem.yaml")
	if err := os.WriteFile(file, []byte("mcpServers: {slow: {command: sleep, args: ['60']}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for line, want := range map[string]string{
		"list --json": `"kind": "other"`, "check --json": `"kind": "other"`, "call slow.x --output raw": `"message": "interrupted"`, "list": "",
	} {
		var out bytes.Buffer
		code := newApp(strings.NewReader(""), &out, &bytes.Buffer{}, os.LookupEnv).run(ctx, append(strings.Fields(line), "--config", file))
		if code != exitInterrupted || !strings.Contains(out.String(), want) || want == "" && out.Len() > 0 {
			t.Errorf("%s: exit code %d, printed %s", line, code, out.String())
		}
	}
}

// TestNoMainstem: what somebody else says at the address is no answer.
func TestNoMainstem(t *testing.T) {
	for _, body := range []string{"<html>", "plain"} {
		page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		t.Cleanup(page.Close)
		lines := []string{"list --json", "check --json", "call a.b --output json", "catalog --format json"}
		if body == "<html>" {
			lines = append(lines, "catalog", "catalog --format xml")
		}
		for _, line := range lines {
			var out, errs bytes.Buffer
			code := newApp(strings.NewReader(""), &out, &errs, os.LookupEnv).run(t.Context(), append(strings.Fields(line), "--url", page.URL))
			if said := out.String() + errs.String(); code != exitTool || !strings.Contains(said, "no Mainstem at "+page.URL) {
				t.Errorf("%s: %s: exit code %d: %s", body, line, code, said)
			}
		}
	}
}
