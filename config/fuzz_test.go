package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mainstem-mcp/mainstem/config"
)

func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile("../config.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	archives, _ := filepath.Glob("testdata/problems/*.txtar")
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if file.Name != "want" {
				f.Add(file.Data)
			}
		}
	}
	for _, text := range append(agreedGood, agreedBad...) {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "c.yaml")
	env := environment(map[string]string{"T": "secret-value-of-t"})
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		c, err := config.Load([]string{path}, env)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("took %s", took)
		}
		if err == nil {
			for _, s := range c.Servers {
				if (s.Command == "") == (s.URL == "") && s.Failed == "" {
					t.Errorf("server %q has command %q and url %q", s.Name, s.Command, s.URL)
				}
			}
			return
		}
		problems, ok := err.(config.Problems)
		if !ok || len(problems) == 0 {
			t.Fatalf("got %T: %v", err, err)
		}
		lines := 1 // as YAML counts them, which has more line ends than editors do
		for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
			lines += strings.Count(string(data), end)
		}
		for _, p := range problems {
			if p.Line < 1 || p.Line > lines {
				t.Errorf("no such line: %v", p)
			}
			if strings.Contains(p.What, "secret-value-of-t") {
				t.Errorf("shows a value: %v", p)
			}
		}
	})
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"${A}", "$${A}", "${A:-b}", "${", "$", "${A:-${B}}", "$$${A}", "${input:x}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, unset, err := config.Expand(s, environment(nil))
		if err != nil || unset != nil {
			return
		}
		if !strings.Contains(s, "${") && got != s {
			t.Errorf("Expand(%q) = %q", s, got)
		}
	})
}

func FuzzAllows(f *testing.F) {
	f.Add("a*b", "axb")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		s := &config.Server{EnabledTools: []string{pattern}}
		if got := s.Allows(name); got != slow(pattern, name) {
			t.Errorf("%q against %q: %v", pattern, name, got)
		}
	})
}

// slow matches by trying everything.
func slow(pattern, name string) bool {
	if len(pattern) > 12 || len(name) > 12 {
		return (&config.Server{EnabledTools: []string{pattern}}).Allows(name)
	}
	switch {
	case pattern == "":
		return name == ""
	case pattern[0] == '*':
		return slow(pattern[1:], name) || name != "" && slow(pattern, name[1:])
	}
	return name != "" && name[0] == pattern[0] && slow(pattern[1:], name[1:])
}
