package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mainstem-mcp/mainstem/config/document"
)

// Expand replaces ${NAME} and ${NAME:-fallback} in text, once: values are not
// looked into. A bare $ is an ordinary character and $${ stands for ${. Names
// that env does not have are returned in unset, in order of appearance, and value
// is then "". The error is a malformed placeholder; it never shows a value.
func Expand(text string, env func(string) (string, bool)) (value string, unset []string, err error) {
	var out strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, "$${"):
			out.WriteString("${")
			i += len("$${")
		case strings.HasPrefix(rest, "${"):
			name, fallback, covered, size := placeholder(rest)
			if size == 0 {
				return "", nil, malformed(text, i)
			}
			v, set := env(name)
			switch {
			case covered && v == "":
				v = fallback
			case !covered && !set:
				unset = append(unset, name)
			}
			out.WriteString(v)
			i += size
		default:
			out.WriteByte(text[i])
			i++
		}
	}
	if unset != nil {
		return "", unset, nil
	}
	return out.String(), nil, nil
}

// placeholder reads the placeholder at the start of s. size is 0 if it is none.
func placeholder(s string) (name, fallback string, covered bool, size int) {
	body, _, closed := strings.Cut(s[len("${"):], "}")
	if !closed {
		return "", "", false, 0
	}
	name, fallback, covered = strings.Cut(body, ":-")
	if !isVariable(name) || strings.Contains(fallback, "${") {
		return "", "", false, 0
	}
	return name, fallback, covered, len("${") + len(body) + len("}")
}

// malformed says what to write instead of the placeholder at text[at:].
func malformed(text string, at int) error {
	body, _, _ := strings.Cut(text[at+len("${"):], "}")
	switch kind, name, _ := strings.Cut(body, ":"); {
	case kind == "input":
		return errors.New("${input:…} asks a person in an editor, and nobody is asked here (write ${NAME} and set that environment variable)")
	case kind == "env" && isVariable(name):
		return fmt.Errorf("${env:%[1]s} is another program's form (write ${%[1]s})", document.Clip(name))
	}
	return fmt.Errorf("malformed placeholder at byte %d (write ${NAME} or ${NAME:-fallback}; $${ stands for ${ itself)", at+1)
}

// isVariable reports whether name can be the name of an environment variable.
func isVariable(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// An expander expands the texts of one server and gathers why it cannot run.
type expander struct {
	env   func(string) (string, bool)
	unset []string // variables that are not set
	other []string // other reasons
}

// expand returns raw, the text of v, expanded. False: it is reported, or a variable
// is not set.
func (x *expander) expand(v document.Value, raw string) (string, bool) {
	s, unset, err := Expand(raw, x.env)
	if err != nil {
		v.Errorf("%v", err)
		return "", false
	}
	x.missing(v, unset...)
	if strings.ContainsRune(s, 0) {
		v.Errorf("holds a NUL character")
		return "", false
	}
	return s, unset == nil
}

// missing notes variables that are not set.
func (x *expander) missing(v document.Value, names ...string) {
	for _, name := range names {
		v.Warnf("environment variable %s is not set, so this server cannot run (set it before the start)", name)
		x.unset = append(x.unset, name)
	}
}

// fail notes another reason why the server cannot run.
func (x *expander) fail(v document.Value, why string) {
	v.Warnf("%s, so this server cannot run", why)
	x.other = append(x.other, why)
}

// failed puts the reasons into one sentence.
func (x *expander) failed() string {
	var unset []string
	seen := map[string]bool{}
	for _, name := range x.unset {
		if !seen[name] {
			seen[name] = true
			unset = append(unset, name)
		}
	}
	why := x.other
	switch len(unset) {
	case 0:
	case 1:
		why = append([]string{"environment variable " + unset[0] + " is not set"}, why...)
	default:
		last := len(unset) - 1
		why = append([]string{"environment variables " + strings.Join(unset[:last], ", ") + " and " + unset[last] + " are not set"}, why...)
	}
	return strings.Join(why, "; ")
}

// file expands v to an absolute file name: ~ is the home folder, and a relative
// name starts at the folder of the configuration file.
func (x *expander) file(v document.Value) (string, bool) {
	raw, ok := v.Filled()
	if !ok {
		return "", false
	}
	name, ok := x.expand(v, raw)
	if !ok {
		return "", false
	}
	if raw == "~" || strings.HasPrefix(raw, "~/") {
		home, err := homeDir(x.env)
		if err != nil {
			v.Errorf("%v (write an absolute path)", err)
			return "", false
		}
		return filepath.Join(home, name[1:]), true
	}
	if name == "" {
		x.fail(v, "the file name is empty")
		return "", false
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(v.File()), name)
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		v.Errorf("%v (write an absolute path)", err)
		return "", false
	}
	return abs, true
}

func homeDir(env func(string) (string, bool)) (string, error) {
	if home, _ := env("HOME"); home != "" {
		return home, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("home folder: %w", err)
	}
	return home, nil
}

// withExecutable answers ${MAINSTEM} with the path of the running executable.
func withExecutable(env func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if name != "MAINSTEM" {
			return env(name)
		}
		path, err := os.Executable()
		return path, err == nil
	}
}
