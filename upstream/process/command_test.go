//go:build linux

package process_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/upstream/process"
)

func TestArgv(t *testing.T) {
	spaced := filepath.Join(t.TempDir(), "my server")
	os.WriteFile(spaced, []byte("#!/bin/sh\n"), 0o700)
	document := filepath.Join(t.TempDir(), "my document")
	os.WriteFile(document, nil, 0o600)
	for _, test := range []struct {
		name    string
		command string
		args    []string
		hasArgs bool
		want    []string
	}{
		{"a word", "npx", nil, false, []string{"npx"}},
		{"args", "npx", []string{"-y", "a b"}, true, []string{"npx", "-y", "a b"}},
		{"a line", "npx -y server", nil, false, []string{"/bin/sh", "-lc", "npx -y server"}},
		{"a shell character", "$HOME/server", nil, false, []string{"/bin/sh", "-lc", "$HOME/server"}},
		{"home", "~/server", nil, false, []string{"/bin/sh", "-lc", "~/server"}},
		{"an empty list is a list", "a b", []string{}, true, []string{"a b"}},
		{"an executable with a space", spaced, nil, false, []string{spaced}},
		{"its arguments make it a line", spaced + " x", nil, false, []string{"/bin/sh", "-lc", spaced + " x"}},
		{"a file that cannot be run", document, nil, false, []string{"/bin/sh", "-lc", document}},
		{"a path", "/opt/server-1.2_x", nil, false, []string{"/opt/server-1.2_x"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := process.Argv(test.command, test.args, test.hasArgs); !slices.Equal(got, test.want) {
				t.Errorf("Argv(%q, %q) = %q, want %q", test.command, test.args, got, test.want)
			}
		})
	}
}

// C200: a child gets what every program needs and what was declared for it.
func TestEnvironmentC200(t *testing.T) {
	environ := []string{"SECRET=1", "PATH=/bin", "HOME=/root", "USER=u", "LANG=C", "LC_ALL=C", "LC_TIME=C", "LCX=1", "TMPDIR=/t", "TZ=UTC",
		"SHELL=/bin/sh", "HTTP_PROXY=a", "https_proxy=b", "NO_PROXY=c", "ALL_PROXY=d", "SSH_AUTH_SOCK=s", "PATHS=/x", "EMPTY=", "=odd", "odd"}
	got := process.Environment([]string{"LOG_LEVEL=info", "PATH=/opt/bin", "EQUALS=a=b"}, []string{"SSH_AUTH_SOCK", "NOT_SET", "EMPTY"}, environ)
	want := []string{"PATH=/opt/bin", "HOME=/root", "USER=u", "LANG=C", "LC_ALL=C", "LC_TIME=C", "TMPDIR=/t", "TZ=UTC", "SHELL=/bin/sh",
		"HTTP_PROXY=a", "https_proxy=b", "NO_PROXY=c", "ALL_PROXY=d", "SSH_AUTH_SOCK=s", "EMPTY=", "LOG_LEVEL=info", "EQUALS=a=b"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestChildHasNoOtherVariablesC200(t *testing.T) {
	t.Setenv("SECRET", "1")
	for _, env := range [][]string{{"ONLY=this"}, {}} {
		p := start(t, process.Command{Argv: []string{"/usr/bin/env"}, Env: env, Dir: "/"})
		var got []string
		for line := range strings.Lines(readAll(t, p)) {
			got = append(got, strings.TrimSpace(line))
		}
		if !slices.Equal(got, env) {
			t.Errorf("child has %q, want %q", got, env)
		}
	}
}

// C174: whoever reads the error must know what to install, or which PATH to change.
func TestCommandErrorsC174(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "plain"), []byte("x"), 0o600)
	os.WriteFile(filepath.Join(dir, "text"), []byte("x"), 0o700)
	os.WriteFile(filepath.Join(dir, "script"), []byte("#!/no/such/interpreter\n"), 0o700)
	for _, test := range []struct {
		name string
		c    process.Command
		want []string
	}{
		{"not found", process.Command{Argv: []string{"nosuchcmd"}, Env: []string{"PATH=/bin:/opt/x"}}, []string{"nosuchcmd", "not found", "/bin:/opt/x"}},
		{"no PATH", process.Command{Argv: []string{"nosuchcmd"}}, []string{"nosuchcmd", "/usr/bin:/bin"}},
		{"path", process.Command{Argv: []string{"/no/such"}}, []string{"/no/such", "no such file"}},
		{"not executable", process.Command{Argv: []string{"plain"}, Env: []string{"PATH=" + dir}}, []string{"plain", dir, "not executable"}},
		{"folder", process.Command{Argv: []string{dir}}, []string{dir, "folder"}},
		{"no program", process.Command{Argv: []string{filepath.Join(dir, "text")}}, []string{"text", "#!"}},
		{"interpreter", process.Command{Argv: []string{filepath.Join(dir, "script")}}, []string{"script", "interpreter"}},
		{"no working directory", process.Command{Argv: []string{"cat"}, Dir: "/no/such"}, []string{"working directory", "/no/such"}},
		{"working directory is a file", process.Command{Argv: []string{"cat"}, Dir: filepath.Join(dir, "plain")}, []string{"working directory", "not a folder"}},
		{"no command", process.Command{}, []string{"no command"}},
		{"NUL", process.Command{Argv: []string{"cat", "a\x00b"}}, []string{"cat"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := process.Start(test.c)
			if err == nil {
				p.Stop()
				t.Fatal("started")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

func TestCommandIsFoundAsTheChildWould(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "bin"), 0o700)
	os.WriteFile(filepath.Join(dir, "bin", "server"), []byte("#!/bin/sh\npwd\n"), 0o700)
	for _, test := range []struct{ name, command, path string }{
		{"relative to its folder", "bin/server", "/bin"},
		{"in a relative entry of PATH", "server", "bin:/bin"},
		{"in its PATH", "server", "/nowhere:" + dir + "/bin:/bin"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := start(t, process.Command{Argv: []string{test.command}, Env: []string{"PATH=" + test.path}, Dir: dir})
			if got := strings.TrimSpace(readAll(t, p)); got != dir {
				t.Errorf("runs in %q, want %q", got, dir)
			}
		})
	}
}
