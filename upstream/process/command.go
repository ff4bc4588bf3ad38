//go:build unix

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// shell is the one that POSIX promises.
const shell = "/bin/sh"

// defaultPath is searched when the child has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// shellCharacters are those for which somebody who typed a command line expects a shell.
const shellCharacters = " \t\r\n|&;<>()$`\\\"'*?[]#~{}!"

// Argv makes an argument list of `command` and `args`. A command without args is a line for the shell if it has white space or
// a shell character, unless it is as a whole the path of an existing executable.
func Argv(command string, args []string, hasArgs bool) []string {
	if !hasArgs && strings.ContainsAny(command, shellCharacters) && !isExecutablePath(command) {
		return []string{shell, "-lc", command}
	}
	return append([]string{command}, args...)
}

func isExecutablePath(command string) bool {
	return strings.Contains(command, "/") && executable(command) == nil
}

// Environment makes a child's environment: of ours (environ, "NAME=value" each) the variables that every program needs and
// those named in inherit, then the declared ones ("NAME=value"), which win.
func Environment(declared, inherit, environ []string) []string {
	var env []string
	at := map[string]int{}
	set := func(name, variable string) {
		if i, ok := at[name]; ok {
			env[i] = variable
			return
		}
		at[name] = len(env)
		env = append(env, variable)
	}
	for _, variable := range environ {
		if name, _, ok := strings.Cut(variable, "="); ok && (passes(name) || slices.Contains(inherit, name)) {
			set(name, variable)
		}
	}
	for _, variable := range declared {
		name, _, _ := strings.Cut(variable, "=")
		set(name, variable)
	}
	return env
}

// passes says which variables every child gets. Anything else may be a secret that was meant for us.
func passes(name string) bool {
	switch name {
	case "PATH", "HOME", "USER", "LANG", "TMPDIR", "TZ", "SHELL":
		return true
	}
	switch strings.ToLower(name) {
	case "http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// find returns the file to run: as the child itself would find it, in its PATH and from its folder.
func find(c Command) (string, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return "", errors.New("no command")
	}
	if c.Dir != "" {
		if info, err := os.Stat(c.Dir); err != nil {
			return "", fmt.Errorf("working directory: %w", err)
		} else if !info.IsDir() {
			return "", fmt.Errorf("working directory %s: not a folder", c.Dir)
		}
	}
	name := c.Argv[0]
	if strings.Contains(name, "/") {
		if err := executable(inDir(c.Dir, name)); err != nil {
			return "", fmt.Errorf("command %s: %w", name, err)
		}
		return absolute(c.Dir, name)
	}
	search := pathOf(c.Env)
	var refused error
	for _, dir := range filepath.SplitList(search) {
		candidate := filepath.Join(inDir(c.Dir, dir), name)
		err := executable(candidate)
		if err == nil {
			return absolute("", candidate)
		}
		if !errors.Is(err, fs.ErrNotExist) && refused == nil {
			refused = fmt.Errorf("command %s: %s: %w", name, candidate, err)
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", fmt.Errorf("command %s not found (PATH searched: %s)", name, search)
}

// pathOf returns the PATH in env; as with every lookup in an environment made by Environment there is one at most.
func pathOf(env []string) string {
	for _, variable := range env {
		if value, ok := strings.CutPrefix(variable, "PATH="); ok {
			return value
		}
	}
	return defaultPath
}

// executable tells why a file cannot be run.
func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return errors.Unwrap(err) // without the path, which the caller names
	}
	if info.IsDir() {
		return errors.New("is a folder")
	}
	if info.Mode().Perm()&0o111 == 0 {
		return errors.New("is not executable")
	}
	return nil
}

func inDir(dir, path string) string {
	if dir == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// absolute makes a path that means the same after the child has changed its folder.
func absolute(dir, path string) (string, error) { return filepath.Abs(inDir(dir, path)) }

// startError explains the failure of an executable that is there.
func startError(c Command, err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("command %s: the interpreter or loader that it names was not found", c.Argv[0])
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("command %s: neither a program for this machine nor a script with a #! line", c.Argv[0])
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("command %s: %w", c.Argv[0], err)
}
