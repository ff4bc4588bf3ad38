// Package mainstem_test holds the shape of the whole: which package may import which,
// and what no package may have.
package mainstem_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/mainstem-mcp/mainstem"
	mcpGo  = "github.com/mark3labs/mcp-go"
	table  = "docs/architecture.md"
)

// usesMCPGo are the packages that may import mcp-go; their tests and those of others
// may, too.
var usesMCPGo = []string{"protocol", "proxy/session", "upstream", "cmd/mainstem/demo"}

// pure are the packages that turn values into values: no I/O, no logging.
var pure = []string{"catalog", "catalog/listing", "catalog/result", "catalog/schema", "catalog/tokencost", "config/document", "jsonrpc", "naming", "protocol"}

// impure is what pure packages do not import.
var impure = []string{"log", "log/slog", "net", "net/http", "os", "os/exec", "syscall", "github.com/rs/zerolog"}

// A listed package is what go list says of one. Its name is its path below the module.
type listed struct {
	ImportPath, Name, Doc, Dir, Export string
	GoFiles, Imports                   []string
}

func (p listed) name() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// imports returns the names of the packages of this module that p imports.
func (p listed) imports() []string {
	var ours []string
	for _, path := range p.Imports {
		if name, ok := strings.CutPrefix(path, module+"/"); ok {
			ours = append(ours, name)
		}
	}
	return ours
}

func (p listed) importsMCPGo() bool {
	return slices.ContainsFunc(p.Imports, func(path string) bool { return path == mcpGo || strings.HasPrefix(path, mcpGo+"/") })
}

// packages asks go list for the packages that have more than tests.
func packages(t *testing.T, args ...string) []listed {
	t.Helper()
	command := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Doc,Dir,Export,GoFiles,Imports"}, args...)...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for in := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := in.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		if len(p.GoFiles) > 0 {
			all = append(all, p)
		}
	}
}

// row is a line of the table: | `name` | what it knows | what it may import |
var row = regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\| ([^|]+) \\| ([^|]+) \\|$")

// allowed reads the table: what each package may import of the others.
func allowed(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, cell := range row.FindAllStringSubmatch(string(text), -1) {
		if _, twice := rows[cell[1]]; twice {
			t.Errorf("%s has two rows for %s", table, cell[1])
		}
		rows[cell[1]] = strings.Fields(cell[3])
	}
	return rows
}

func TestImportsFollowTheTable(t *testing.T) {
	rows := allowed(t)
	exist := map[string]bool{}
	for _, p := range packages(t, "./...") {
		exist[p.name()] = true
		may, ok := rows[p.name()]
		if !ok {
			t.Errorf("package %s has no row in the table of %s: add it there first, with one sentence of what it knows", p.name(), table)
			continue
		}
		for _, other := range p.imports() {
			forTests := strings.HasPrefix(other, "test/") && !strings.HasPrefix(p.name(), "test/")
			if !slices.Contains(may, other) && !slices.Contains(may, "everything") || forTests {
				t.Errorf("package %s imports %s, which the table of %s does not allow (it allows: %s)", p.name(), other, table, strings.Join(may, " "))
			}
		}
	}
	for name, may := range rows {
		for _, other := range append([]string{name}, may...) {
			if !exist[other] && other != "everything" && other != "–" {
				t.Errorf("the table of %s names a package %s, in the row of %s; there is none", table, other, name)
			}
		}
	}
}

func TestPurePackagesDoNoIO(t *testing.T) {
	for _, p := range packages(t, "./...") {
		if !slices.Contains(pure, p.name()) {
			continue
		}
		for _, path := range p.Imports {
			if slices.Contains(impure, path) {
				t.Errorf("package %s imports %s: it takes values and returns values, and does no I/O and no logging (%s)", p.name(), path, table)
			}
		}
	}
}

func TestMCPGoStaysWhereItBelongs(t *testing.T) {
	var users []string
	for _, p := range packages(t, "./...") {
		if !p.importsMCPGo() {
			continue
		}
		users = append(users, p.ImportPath)
		if !slices.Contains(usesMCPGo, p.name()) && !strings.HasPrefix(p.name(), "test/") {
			t.Errorf("package %s imports %s; only %s and tests may", p.name(), mcpGo, strings.Join(usesMCPGo, ", "))
		}
	}
	if len(users) == 0 {
		return
	}
	exports := map[string]string{}
	for _, p := range packages(t, append([]string{"-export"}, users...)...) {
		exports[p.ImportPath] = p.Export
	}
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, path := range users {
		p, err := compiled.Import(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		for _, name := range p.Scope().Names() {
			if o := p.Scope().Lookup(name); o.Exported() && shows(o.Type(), p, map[types.Type]bool{}) {
				t.Errorf("%s.%s shows a type of %s", path, name, mcpGo)
			}
		}
	}
}

// shows reports whether somebody who uses a type of package p meets one of mcp-go.
func shows(of types.Type, p *types.Package, seen map[types.Type]bool) bool {
	if seen[of] {
		return false
	}
	seen[of] = true
	below := func(of types.Type) bool { return shows(of, p, seen) }
	switch of := types.Unalias(of).(type) {
	case *types.Named:
		return showsNamed(of, p, seen)
	case *types.Signature:
		return below(of.Params()) || below(of.Results())
	case *types.Tuple:
		return slices.ContainsFunc(slices.Collect(of.Variables()), func(v *types.Var) bool { return below(v.Type()) })
	case *types.Struct:
		return slices.ContainsFunc(slices.Collect(of.Fields()), func(v *types.Var) bool { return v.Exported() && below(v.Type()) })
	case *types.Interface:
		return slices.ContainsFunc(slices.Collect(of.Methods()), func(m *types.Func) bool { return m.Exported() && below(m.Type()) })
	case *types.Map:
		return below(of.Key()) || below(of.Elem())
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		return below(of.Elem())
	}
	return false
}

func showsNamed(of *types.Named, p *types.Package, seen map[types.Type]bool) bool {
	from := of.Obj().Pkg()
	switch {
	case from == nil:
		return false
	case strings.HasPrefix(from.Path(), mcpGo):
		return true
	}
	below := func(of types.Type) bool { return shows(of, p, seen) }
	if slices.ContainsFunc(slices.Collect(of.TypeArgs().Types()), below) {
		return true
	}
	if from != p {
		return false
	}
	return below(of.Underlying()) ||
		slices.ContainsFunc(slices.Collect(of.Methods()), func(m *types.Func) bool { return m.Exported() && below(m.Type()) })
}

func TestPackagesAreNouns(t *testing.T) {
	for _, p := range packages(t, "./...") {
		switch path.Base(p.ImportPath) {
		case "util", "utils", "common", "types", "manager", "helpers", "misc":
			t.Errorf("package %s is named for nothing that it knows", p.name())
		}
		if p.Doc == "" {
			t.Errorf("package %s has no comment that says what it knows", p.name())
		}
	}
}

func TestNobodyHasInit(t *testing.T) {
	for _, p := range packages(t, "./...") {
		files, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					t.Errorf("%s has a function init in %s: what has to be made is made by a constructor", p.name(), filepath.Base(name))
				}
			}
		}
	}
}
