package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

// soon is what counts as "at once".
const soon = run.Soon

// fields shortens what tests write into a configuration.
type fields = run.Fields

// behind starts one fake HTTP server and a Mainstem with it under the name "up".
func behind(t *testing.T, o fake.Options, more ...fields) (*fake.Server, *run.Mainstem) {
	t.Helper()
	s := fake.HTTP(t, o)
	return s, run.Start(t, run.Of(run.HTTP("up", s, more...)))
}

// behindStdio is behind for a server that is started.
func behindStdio(t *testing.T, o fake.Options, more ...fields) (*fake.Server, *run.Mainstem) {
	t.Helper()
	s := fake.Stdio(t, o)
	return s, run.Start(t, run.Of(run.Stdio("up", s, more...)))
}

// legacy is a client of the newest version with a handshake at the endpoint of all servers.
func legacy(t *testing.T, m *run.Mainstem) *client.HTTP {
	t.Helper()
	return client.Dial(t, m.Endpoint(), client.Latest)
}

// modern is a client of 2026-07-28.
func modern(t *testing.T, m *run.Mainstem) *client.HTTP {
	t.Helper()
	return client.New(t, m.Endpoint(), client.Modern)
}

// gate is shut until open is called; the end of the test opens it.
type gate struct {
	C    chan struct{}
	once sync.Once
}

func newGate(t *testing.T) *gate {
	g := &gate{C: make(chan struct{})}
	t.Cleanup(g.open)
	return g
}

func (g *gate) open() { g.once.Do(func() { close(g.C) }) }

// held answers a call with "released" when the gate is opened.
func held(g *gate) fake.Handler {
	return func(c *fake.Call) {
		if c.Hold(g.C) {
			c.Text("released")
		}
	}
}

// failed checks that a call ended with isError and a text that begins with the server's name and holds the given words.
func failed(t *testing.T, got client.Message, server string, words ...string) {
	t.Helper()
	text := got.Text()
	if !got.IsError() || !strings.HasPrefix(text, server) {
		t.Errorf("got %s%s, want isError and a text that begins with %q", got.Result, got.Error, server)
	}
	for _, word := range words {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(word)) {
			t.Errorf("text of the error is %q, want it to hold %q", text, word)
		}
	}
}

// awaitNames lists until the names are as they should be.
func awaitNames(t *testing.T, c interface{ Names() []string }, want ...string) {
	t.Helper()
	run.Eventually(t, fmt.Sprintf("the names %v", want), func() bool { return slices.Equal(c.Names(), want) })
}

// quick fails the test if more than the given time has passed since start.
func quick(t *testing.T, what string, start time.Time, limit time.Duration) {
	t.Helper()
	if d := time.Since(start); d > limit {
		t.Errorf("%s took %v, want at most %v", what, d, limit)
	}
}

// vectors reads a part of a file of testdata.
func vectors[T any](t *testing.T, file, part string) []T {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		t.Fatal(err)
	}
	var out []T
	if err := json.Unmarshal(parts[part], &out); err != nil || len(out) == 0 {
		t.Fatalf("%s: %s: %d vectors, %v", file, part, len(out), err)
	}
	return out
}

// quote writes a text as JSON, without more escapes than it must have.
func quote(text string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err) // texts have no errors
	}
	return strings.TrimSpace(out.String())
}

// tool writes a tool definition with more members, as raw JSON, after its name.
func tool(name, more string) string {
	return fmt.Sprintf(`{"name":%s,%s}`, quote(name), more)
}

// withSchema writes a tool definition with a raw input schema.
func withSchema(name, schema string) string { return tool(name, `"inputSchema":`+schema) }

// byName finds a definition in a list.
func byName(t *testing.T, tools []json.RawMessage, name string) json.RawMessage {
	t.Helper()
	for _, definition := range tools {
		if string(client.Member(definition, "name")) == quote(name) {
			return definition
		}
	}
	t.Errorf("no tool %s in the list of %d", name, len(tools))
	return nil
}

// same compares raw JSON: the order of members and the digits of numbers count.
func same(t *testing.T, what string, got json.RawMessage, want string) {
	t.Helper()
	if client.Compact(got) != client.Compact([]byte(want)) {
		t.Errorf("%s\n got  %s\n want %s", what, got, want)
	}
}
