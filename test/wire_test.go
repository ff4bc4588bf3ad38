package test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

// TestOddReplies has answers to a call that are legal but rare, and such that are none.
func TestOddReplies(t *testing.T) {
	t.Parallel()
	json := func(body string) fake.Handler {
		return func(c *fake.Call) {
			c.W.Header().Set("Content-Type", "application/json; charset=utf-8")
			fmt.Fprint(c.W, strings.ReplaceAll(body, "ID", string(c.ID)))
		}
	}
	const result = `"result":{"content":[{"type":"text","text":"fine"}]}`
	calls := map[string]fake.Handler{
		"batch":    json(`[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}},{"jsonrpc":"2.0","id":ID,` + result + `}]`),
		"bom":      json("\ufeff" + `{"jsonrpc":"2.0","id":ID,` + result + `}`),
		"spaces":   json("\r\n {\n\"jsonrpc\" : \"2.0\" ,\n \"id\" :\tID , " + result + " }\n\n"),
		"extra":    json(`{"x":[1],"id":ID,` + result + `,"jsonrpc":"2.0"}`),
		"accepted": func(c *fake.Call) { c.W.WriteHeader(http.StatusAccepted) },
		"nothing":  func(c *fake.Call) { c.W.Header().Set("Content-Type", "application/json") },
		"other_id": json(`{"jsonrpc":"2.0","id":"other",` + result + `}`),
		"text_id":  json(`{"jsonrpc":"2.0","id":"ID",` + result + `}`),
		"both":     json(`{"jsonrpc":"2.0","id":ID,` + result + `,"error":{"code":1,"message":"x"}}`),
		"neither":  json(`{"jsonrpc":"2.0","id":ID}`),
		"cut":      json(`{"jsonrpc":"2.0","id":ID,"result":{"content":[`),
		"two":      json(`{"jsonrpc":"2.0","id":ID,` + result + `}{"jsonrpc":"2.0","id":ID,` + result + `}`),
		"deep":     json(`{"jsonrpc":"2.0","id":ID,"result":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + `}`),
	}
	fine := []string{"batch", "spaces", "extra"}
	either := []string{"bom", "both"} // accepted or refused, but never a hang
	var names []string
	for name := range calls {
		names = append(names, name)
	}
	_, m := behind(t, fake.Options{Tools: fake.Tools(names...), Calls: calls})
	c := legacy(t, m)
	for _, name := range names {
		start := time.Now()
		a := c.Tool("up__"+name, "{}")
		quick(t, name, start, soon)
		switch {
		case slices.Contains(fine, name):
			if a.Text() != "fine" || a.IsError() {
				t.Errorf("%s: got %s%s", name, a.Result, a.Error)
			}
		case slices.Contains(either, name) && a.Text() == "fine":
		default:
			failed(t, a.Message, "up")
		}
	}
}

// TestServerThatWantsToBePolled closes the stream of a call before the reply, which is fetched with GET (2025-11-25).
func TestServerThatWantsToBePolled(t *testing.T) {
	t.Parallel()
	ids := make(chan string, 1)
	s, m := behind(t, fake.Options{Tools: fake.Tools("a"), Calls: map[string]fake.Handler{"a": func(c *fake.Call) {
		ids <- string(c.ID)
		c.Write("id: poll-1\nretry: 50\ndata:\n\n")
	}}})
	s.SetIntercept(func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.Method != http.MethodGet || r.Header.Get("Last-Event-Id") != "poll-1" {
			return false
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: poll-2\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"polled\"}]}}\n\n", <-ids)
		return true
	})
	if got := legacy(t, m).Tool("up__a", "{}"); got.Text() != "polled" {
		t.Errorf("got %s%s", got.Result, got.Error)
	}
	if n := len(s.Calls("a")); n != 1 {
		t.Errorf("%d calls", n)
	}
}

func TestRedirectLoop(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Intercept: func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		http.Redirect(w, r, "/mcp", http.StatusTemporaryRedirect)
		return true
	}})
	m := run.Start(t, run.Of(run.HTTP("up", s)))
	m.WaitStatus("up", "failed")
	if n := len(s.Seen()); n > 60 {
		t.Errorf("%d requests", n)
	}
}

// TestCancelOnEveryTransport has a cancelled call and one that reports progress, where C144 and C141 do not look.
func TestCancelOnEveryTransport(t *testing.T) {
	t.Parallel()
	left := map[string]chan struct{}{}
	options := func(name string) fake.Options {
		gone := make(chan struct{}, 1)
		left[name] = gone
		return fake.Options{Tools: fake.Tools("slow", "work"), Calls: map[string]fake.Handler{
			"slow": func(c *fake.Call) {
				<-c.Context().Done()
				gone <- struct{}{}
			},
			"work": func(c *fake.Call) {
				c.Progress(1)
				c.Progress(2)
				c.Text("done")
			},
		}}
	}
	sse := fake.SSE(t, "/messages?sid=%s", options("sse"))
	pipe := fake.Stdio(t, options("pipe"))
	fresh := options("fresh")
	fresh.Modern, fresh.NoHandshake = true, true
	fakes := map[string]*fake.Server{"sse": sse, "pipe": pipe, "fresh": fake.Stdio(t, fresh)}
	m := run.Start(t, run.Of(run.HTTP("sse", sse, fields{"transport": "sse"}), run.Stdio("pipe", pipe), run.Stdio("fresh", fakes["fresh"])))
	for server, s := range fakes {
		c := legacy(t, m)
		a := c.Call("tools/call", `{"name":"`+server+`__work","_meta":{"progressToken":"t"}}`)
		if a.Text() != "done" || len(a.Before) == 0 || string(client.Member(a.Before[0].Params, "progressToken")) != `"t"` {
			t.Errorf("%s: got %s after %d messages", server, a.Raw, len(a.Before))
		}
		go c.StartID("77", "tools/call", client.CallParams(server+"__slow", "{}"))
		s.Wait(t, "tools/call", 2)
		c.Notify("notifications/cancelled", `{"requestId":77}`)
		awaitCancel(t, left[server])
	}
}

func TestReservedNames(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("read", "Bash")})
	config := run.Of(run.HTTP("up", s))
	for mode, want := range map[string][]string{"always": {"up__Bash_2", "up__read"}, "on_conflict": {"up__Bash", "read"}, "never": {"Bash_2", "read"}} {
		reserved := []string{"bash"}
		if mode == "always" {
			reserved = []string{"up__bash"}
		}
		m := run.Start(t, config.With(fields{"naming": fields{"mode": mode, "reserved": reserved}}))
		if got := legacy(t, m).Names(); !slices.Equal(got, want) {
			t.Errorf("%s: names = %v, want %v", mode, got, want)
		}
	}
}

// TestLargeCatalog has 5,000 tools of the usual size.
func TestLargeCatalog(t *testing.T) {
	t.Parallel()
	const servers, each = 10, 500
	schema := `{"type":"object","properties":{"q":{"type":"string","description":"` + strings.Repeat("What to look for. ", 20) + `"},"n":{"$ref":"#/$defs/n"}},"required":["q"],"$defs":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`
	var tools []string
	for _, name := range numbered("tool_", each) {
		tools = append(tools, withSchema(name, schema))
	}
	var entries []run.Server
	for _, name := range numbered("s", servers) {
		entries = append(entries, run.HTTP(name, fake.HTTP(t, fake.Options{Tools: tools, PageSize: 200})))
	}
	m := run.Start(t, run.Of(entries...))
	c := legacy(t, m)
	if got := len(c.Names()); got != servers*each {
		t.Fatalf("%d tools", got)
	}
	start := time.Now()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { c.Must("tools/list", "") })
	}
	all.Wait()
	quick(t, "ten lists of 5,000 tools", start, 3*soon)
	if got := m.Memory(); got > 160<<20 {
		t.Errorf("%d MiB of memory", got>>20)
	}
}

func TestSmallRequestLimit(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	m := run.Start(t, run.Of(run.HTTP("up", s)).With(fields{"limits": fields{"max_request_bytes": 1024}}))
	c := legacy(t, m)
	if got := c.Tool("up__a", `{"q":"`+strings.Repeat("x", 1024)+`"}`).Status; got != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", got)
	}
	if code, _ := m.Post("/api/v1/servers/up/tools/a/call", `{"q":"`+strings.Repeat("x", 1024)+`"}`); code != http.StatusRequestEntityTooLarge {
		t.Errorf("REST: status %d", code)
	}
	if got := c.Tool("up__a", `{"q":1}`).Text(); got != `{"q":1}` {
		t.Errorf("got %q", got)
	}
}

// TestPublicURL is how clients reach us when we stand behind a proxy on loopback.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	m := run.Start(t, run.Of(run.HTTP("up", s)).With(fields{"public_url": "https://mcp.example.com"}))
	session := legacy(t, m).Session
	c := client.New(t, m.Endpoint(), client.Latest)
	for host, want := range map[string]int{"mcp.example.com": 200, "MCP.example.com": 200, "mcp.example.com:443": 200, "mcp.example.com.evil.org": 403, "example.com": 403} {
		a := c.Post(client.Request("1", "ping", ""), http.Header{"Host": {host}, "Mcp-Session-Id": {session}}).Wait()
		if a.Status != want {
			t.Errorf("Host %s: status %d, want %d", host, a.Status, want)
		}
	}
}
