package demo_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/cmd/mainstem/demo"
)

// A conversation is a client's side of one running demo server.
type conversation struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
	id  int
}

func converse(t *testing.T, name string) *conversation {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- demo.Run(t.Context(), name, "1.2.3", inR, outW, t.Output()) }()
	t.Cleanup(func() {
		_ = inW.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	c := &conversation{t: t, in: inW, out: bufio.NewScanner(outR)}
	c.out.Buffer(nil, 1<<20)
	return c
}

// ask sends a request and returns what came back whole.
func (c *conversation) ask(method, params string) string {
	c.t.Helper()
	c.id++
	if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.id, method, params); err != nil {
		c.t.Fatal(err)
	}
	if !c.out.Scan() {
		c.t.Fatalf("%s: no answer: %v", method, c.out.Err())
	}
	return c.out.Text()
}

func (c *conversation) call(tool, args string) string {
	c.t.Helper()
	return c.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
}

func (c *conversation) initialize() {
	c.t.Helper()
	answer := c.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	if !strings.Contains(answer, `"protocolVersion":"2025-11-25"`) {
		c.t.Fatalf("initialize: %s", answer)
	}
}

func TestCalls(t *testing.T) {
	for _, test := range []struct{ server, tool, args, want string }{
		{"notes", "search", `{"query":"heron"}`, "Grey heron"},
		{"notes", "search", `{"query":"weir rake"}`, "Fish pass"},
		{"notes", "search", `{"query":"bird","kind":"task"}`, "Reed bed"},
		{"notes", "search", `{"query":"unicorn"}`, `"total":0`},
		{"notes", "search", `{}`, `"isError":true`},
		{"notes", "list", `{"limit":2}`, "2 of 6 notes."},
		{"notes", "list", `{"tags":["bird","nest"],"kind":null}`, "Kingfisher"},
		{"notes", "get", `{"id":3}`, "Water level"},
		{"notes", "get", `{"id":99}`, "no note has the id 99"},
		{"notes", "add", `{"title":"Eel","text":"At dusk.","place":{"name":"Old mill"}}`, "Added #7 Eel (sighting), Old mill: At dusk."},
		{"notes", "delete", `{"id":2}`, "Deleted #2 Kingfisher"},
		{"calendar", "search", `{"query":"heron"}`, "Heron count"},
		{"calendar", "search", `{"query":"tomas","calendar":"work"}`, "River board"},
		{"calendar", "list_events", `{"from":"2026-05-06T00:00:00Z","to":"2026-05-07T00:00:00Z"}`, "Dentist"},
		{"calendar", "create_event", `{"title":"Walk","start":"2026-05-06T12:00:00Z","end":"2026-05-06T13:00:00Z","repeat":null}`, "Created #6 2026-05-06 12:00 to 13:00: Walk (work)"},
		{"calendar", "create_event", `{"title":"Walk","start":"2026-05-06T12:00:00Z","end":"2026-05-06T11:00:00Z"}`, `"isError":true`},
		{"calendar", "move_event", `{"id":1,"start":"2026-05-05T06:00:00Z"}`, "Moved #1 2026-05-05 06:00 to 09:00"},
		{"calendar", "cancel_event", `{"id":3}`, "Cancelled #3"},
		{"calendar", "find_time", `{"from":"2026-05-06T10:00:00Z","to":"2026-05-06T18:00:00Z","minutes":30}`, "Free from 2026-05-06T11:00:00Z to 2026-05-06T11:30:00Z."},
		{"calendar", "find_time", `{"from":"2026-05-06T10:00:00Z","to":"2026-05-06T11:10:00Z","minutes":30}`, "no 30 minutes are free"},
	} {
		t.Run(test.server+" "+test.tool+" "+test.want, func(t *testing.T) {
			c := converse(t, test.server)
			c.initialize()
			if got := c.call(test.tool, test.args); !strings.Contains(got, test.want) {
				t.Errorf("%s %s:\n got %s\nwant %s in it", test.tool, test.args, got, test.want)
			}
		})
	}
}

// Both servers must work for clients of 2026-07-28, who send no initialize.
func TestModernEra(t *testing.T) {
	for _, name := range demo.Names() {
		t.Run(name, func(t *testing.T) {
			c := converse(t, name)
			meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
			if got := c.ask("server/discover", "{"+meta+"}"); !strings.Contains(got, `"2026-07-28"`) {
				t.Errorf("server/discover: %s", got)
			}
			got := c.ask("tools/call", `{"name":"search","arguments":{"query":"heron"},`+meta+`}`)
			if !strings.Contains(strings.ToLower(got), "heron") {
				t.Errorf("tools/call: %s", got)
			}
		})
	}
}

// Two servers that share a name are what a proxy has to keep apart.
func TestTools(t *testing.T) {
	for _, name := range demo.Names() {
		c := converse(t, name)
		c.initialize()
		var answer struct {
			Result struct {
				Tools []struct {
					Name        string
					Description string
					InputSchema map[string]any
				}
			}
		}
		text := c.ask("tools/list", `{}`)
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatal(err)
		}
		search := false
		for _, tool := range answer.Result.Tools {
			search = search || tool.Name == "search"
			if tool.Description == "" || tool.InputSchema["type"] != "object" {
				t.Errorf("%s: %s: %+v", name, tool.Name, tool)
			}
		}
		if !search {
			t.Errorf("%s: no search in %s", name, text)
		}
	}
}

func TestUnknownName(t *testing.T) {
	err := demo.Run(t.Context(), "weather", "", strings.NewReader(""), io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `"weather" (want notes or calendar)`) {
		t.Errorf("got %v", err)
	}
}
