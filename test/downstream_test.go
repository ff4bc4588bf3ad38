package test

import (
	"bytes"
	"fmt"
	"io"
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

func TestC127EndedSessions(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	forged := client.New(t, m.Endpoint(), client.Latest)
	forged.Session = "forged"
	if a := forged.Call("tools/list", ""); a.Status != http.StatusNotFound || a.Code() == 0 {
		t.Errorf("forged: %d %s", a.Status, a.Body)
	}
	c := legacy(t, m)
	if !visible(c.Session) || len(c.Session) < 22 {
		t.Errorf("session id %q", c.Session)
	}
	if got := c.Close(); got != http.StatusOK && got != http.StatusNoContent {
		t.Errorf("DELETE: status %d", got)
	}
	if got := c.Call("tools/list", "").Status; got != http.StatusNotFound {
		t.Errorf("after DELETE: status %d", got)
	}
	if got := c.Close(); got != http.StatusNotFound {
		t.Errorf("DELETE again: status %d", got)
	}
}

func visible(text string) bool {
	for _, c := range []byte(text) {
		if c < 0x21 || c > 0x7e {
			return false
		}
	}
	return text != ""
}

func TestC128NoSession(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := client.New(t, m.Endpoint(), client.Latest)
	if a := c.Call("tools/list", ""); a.Status != http.StatusBadRequest || a.Code() == 0 {
		t.Errorf("POST: %d %s", a.Status, a.Body)
	}
	if got := c.Do(http.MethodGet, nil, nil).Status(); got != http.StatusBadRequest {
		t.Errorf("GET: status %d", got)
	}
	c.Session = "forged"
	if got := c.Do(http.MethodGet, nil, http.Header{"Mcp-Session-Id": {"forged"}}).Status(); got != http.StatusNotFound {
		t.Errorf("GET with a forged id: status %d", got)
	}
	// Sessions belong to their endpoint.
	c.Session = legacy(t, m).Session
	c.URL = m.One("up")
	if got := c.Call("tools/list", "").Status; got != http.StatusNotFound {
		t.Errorf("on another endpoint: status %d", got)
	}
}

func TestC130VersionHeader(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := legacy(t, m)
	for version, want := range map[string]int{"1900-01-01": 400, "not-a-version": 400, client.Latest: 200} {
		h := http.Header{"Mcp-Session-Id": {c.Session}, "Mcp-Protocol-Version": {version}}
		if a := c.Post(client.Request("1", "tools/list", ""), h).Wait(); a.Status != want {
			t.Errorf("%s: status %d, want %d: %s", version, a.Status, want, a.Body)
		}
	}
	if a := c.Post(client.Request("1", "tools/list", ""), http.Header{"Mcp-Session-Id": {c.Session}}).Wait(); a.Result == nil {
		t.Errorf("without a header: %d %s", a.Status, a.Body)
	}
}

func TestC131VersionOfInitialize(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	want := map[string]string{"2099-01-01": client.Latest, "1999-01-01": client.Latest, client.Modern: client.Latest}
	for _, version := range fake.Legacy() {
		want[version] = version
	}
	for asked, version := range want {
		a := client.New(t, m.Endpoint(), client.Latest).Call("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}`, asked))
		if got := string(client.Member(a.Result, "protocolVersion")); got != quote(version) {
			t.Errorf("asked for %s: got %s%s", asked, a.Result, a.Error)
		}
		if got := string(client.Member(a.Result, "serverInfo", "name")); got != `"Mainstem"` {
			t.Errorf("serverInfo.name = %s", got)
		}
	}
}

func TestC132Batches(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("danger", "a")}, fields{"disabled_tools": []string{"danger"}})
	call := client.Request("1", "tools/call", client.CallParams("up__a", "{}"))
	danger := client.Request("2", "tools/call", client.CallParams("up__danger", "{}"))
	for _, version := range client.Versions() {
		c := client.Dial(t, m.Endpoint(), version)
		for _, body := range []string{"[" + danger + "]", "[]", "  \n[" + call + "," + danger + "]", "[" + call + "]"} {
			h := http.Header{"Mcp-Session-Id": {c.Session}}
			if version >= "2025-06-18" {
				h.Set("Mcp-Protocol-Version", version)
			}
			if a := c.Post(body, h).Wait(); a.Status != http.StatusBadRequest || a.Code() == 0 {
				t.Errorf("%s: %.40s: %d %s", version, body, a.Status, a.Body)
			}
		}
	}
	if calls := s.Seen("tools/call"); len(calls) > 0 {
		t.Errorf("%d calls were executed", len(calls))
	}
}

func TestC133UnknownNotifications(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := legacy(t, m)
	bodies := []string{
		client.Request("", "notifications/zzz", ""),
		client.Request("", "notifications/cancelled", `{"requestId":77}`),
		client.Request("", "notifications/zzz", `[1]`),
	}
	for _, body := range bodies {
		a := c.Post(body, http.Header{"Mcp-Session-Id": {c.Session}}).Wait()
		if a.Status != http.StatusAccepted || len(a.Body) > 0 {
			t.Errorf("%s: %d %q", body, a.Status, a.Body)
		}
	}
	if got := c.Names(); len(got) != 1 {
		t.Errorf("names = %v", got)
	}
}

func TestC134PingDuringCall(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	_, m := behind(t, fake.Options{Tools: fake.Tools("slow"), Calls: map[string]fake.Handler{"slow": held(g)}})
	c := legacy(t, m)
	done := make(chan client.Answer, 1)
	go func() { done <- c.Tool("up__slow", "{}") }()
	start := time.Now()
	same(t, "ping", c.Must("ping", "").Result, `{}`)
	quick(t, "ping", start, soon)
	g.open()
	if got := (<-done).Text(); got != "released" {
		t.Errorf("the call got %q", got)
	}
}

func TestC136NoArguments(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := legacy(t, m)
	for _, arguments := range []string{"", "null", "{}"} {
		c.Tool("up__a", arguments)
	}
	calls := s.Calls("a")
	if len(calls) != 3 {
		t.Fatalf("%d calls", len(calls))
	}
	for _, r := range calls {
		if got := string(r.Param("arguments")); got != "{}" {
			t.Errorf("the server received arguments %q", got)
		}
	}
}

func TestC138UnknownTool(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	for _, c := range []*client.HTTP{legacy(t, m), modern(t, m)} {
		for _, name := range []string{"nope", "a", "up__A", "UP__a", " up__a", "up.a", ""} {
			a := c.Tool(name, "{}")
			if a.Code() != -32602 || a.ErrorText() != "Unknown tool: "+name {
				t.Errorf("%q: got %s%s", name, a.Result, a.Error)
			}
		}
	}
	if calls := s.Seen("tools/call"); len(calls) > 0 {
		t.Errorf("the server received %s", calls[0].Body)
	}
}

// TestC139Capabilities calls what each declared capability promises.
func TestC139Capabilities(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	promised := map[string]string{
		"tools": "tools/list", "prompts": "prompts/list", "resources": "resources/list", "logging": "logging/setLevel", "completions": "completion/complete",
	}
	for _, version := range client.Versions() {
		c := client.Dial(t, m.Endpoint(), version)
		capabilities, err := object(client.Member(c.Hello.Result, "capabilities"))
		if err != nil || capabilities["tools"] == nil {
			t.Errorf("%s: %s", version, c.Hello.Result)
		}
		for name := range capabilities {
			params := ""
			if name == "logging" {
				params = `{"level":"info"}`
			}
			if version == client.Modern && name == "logging" {
				continue // a level comes with each request there
			}
			if a := c.Call(promised[name], params); a.Code() == -32601 {
				t.Errorf("%s declares %s: %s", version, name, a.Error)
			}
		}
		for name, method := range promised {
			if capabilities[name] == nil && c.Call(method, "").Code() == 0 {
				t.Errorf("%s serves %s without saying so", version, method)
			}
		}
	}
}

func TestC141ProgressTokens(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("work"), Calls: map[string]fake.Handler{"work": func(c *fake.Call) {
		for i := range 3 {
			c.Progress(i)
		}
		c.Text("done")
	}}})
	for _, c := range []*client.HTTP{legacy(t, m), modern(t, m)} {
		for _, token := range []string{`"p1"`, "7"} {
			a := c.Call("tools/call", `{"name":"up__work","arguments":{},"_meta":{"progressToken":`+token+`}}`)
			if a.Text() != "done" || len(a.Before) == 0 {
				t.Errorf("%s %s: got %s%s after %d messages", c.Version, token, a.Result, a.Error, len(a.Before))
			}
			for _, n := range a.Before {
				if n.Method != "notifications/progress" || string(client.Member(n.Params, "progressToken")) != token {
					t.Errorf("%s %s: got %s", c.Version, token, n.Raw)
				}
			}
		}
		if a := c.Tool("up__work", "{}"); len(a.Before) > 0 {
			t.Errorf("progress without a token: %s", a.Before[0].Raw)
		}
	}
	tokens := map[string]bool{}
	for _, r := range s.Calls("work") {
		token := r.Param("_meta", "progressToken")
		if token != nil && tokens[string(token)] {
			t.Errorf("token %s twice upstream", token)
		}
		tokens[string(token)] = true
	}
}

// TestC144Cancel has a call on one server cancelled while another is idle.
func TestC144Cancel(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for name, o := range map[string]fake.Options{"legacy": {}, "modern": {Modern: true, NoHandshake: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := make(chan struct{}, 2)
			o.Tools, o.Calls = fake.Tools("slow"), map[string]fake.Handler{"slow": func(c *fake.Call) {
				if !c.Hold(g.C) {
					left <- struct{}{}
				}
			}}
			busy, idle := fake.HTTP(t, o), fake.HTTP(t, fake.Options{Tools: fake.Tools("b")})
			m := run.Start(t, run.Of(run.HTTP("busy", busy), run.HTTP("idle", idle)))
			old := legacy(t, m)
			go old.StartID(`"mine"`, "tools/call", client.CallParams("busy__slow", "{}"))
			busy.Wait(t, "tools/call", 1)
			start := time.Now()
			old.Notify("notifications/cancelled", `{"requestId":"mine","reason":"enough"}`)
			awaitCancel(t, left)
			quick(t, "the notification's way", start, soon)
			if name == "legacy" {
				note := busy.Wait(t, "notifications/cancelled", 1)[0]
				if got, want := string(note.Param("requestId")), string(busy.Calls("slow")[0].ID); got != want {
					t.Errorf("requestId %s, want %s", got, want)
				}
			}
			fresh := modern(t, m)
			pending := make(chan *client.Pending, 1)
			go func() { pending <- fresh.Start("tools/call", client.CallParams("busy__slow", "{}")) }()
			busy.Wait(t, "tools/call", 2)
			(<-pending).Leave()
			awaitCancel(t, left)
			if n := len(idle.Seen("notifications/cancelled")); n > 0 {
				t.Errorf("the idle server was told %d times", n)
			}
		})
	}
}

func awaitCancel(t *testing.T, left <-chan struct{}) {
	t.Helper()
	select {
	case <-left:
	case <-time.After(10 * time.Second):
		t.Error("the server was not told of the cancellation")
	}
}

// TestC146QuestionsOfAServer has requests that no client can answer yet: the server gets an error and the call goes on.
func TestC146QuestionsOfAServer(t *testing.T) {
	t.Parallel()
	questions := map[string]string{
		"elicitation/create":     `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`,
		"sampling/createMessage": `{"messages":[],"maxTokens":1}`,
		"roots/list":             `{}`,
	}
	ask := func(c *fake.Call) {
		var got []string
		for _, method := range []string{"elicitation/create", "sampling/createMessage", "roots/list"} {
			got = append(got, string(c.Ask(method, questions[method])))
		}
		c.Text(strings.Join(got, "\n"))
	}
	options := fake.Options{Tools: fake.Tools("ask"), Calls: map[string]fake.Handler{"ask": ask}}
	web, pipe := fake.HTTP(t, options), fake.Stdio(t, options)
	m := run.Start(t, run.Of(run.HTTP("web", web), run.Stdio("pipe", pipe)))
	c := legacy(t, m)
	for _, server := range []string{"web", "pipe"} {
		start := time.Now()
		got := c.Tool(server+"__ask", "{}").Text()
		quick(t, "the call", start, soon)
		if strings.Count(got, `"error"`) != 3 {
			t.Errorf("%s: the questions were answered %s", server, got)
		}
	}
	for _, hello := range append(web.Seen("initialize"), pipe.Seen("initialize")...) {
		for _, name := range []string{"elicitation", "sampling", "roots"} {
			if hello.Param("capabilities", name) != nil {
				t.Errorf("%s is declared upstream although the client has it not", name)
			}
		}
	}
	// A ping of the server's is answered, during a call too.
	same(t, "ping", client.Member(pipe.Ask(t, "ping", "{}"), "result"), "{}")
}

func TestC149Browsers(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	m := run.Start(t, run.Of(run.HTTP("up", s)).With(fields{"allowed_origins": []string{"https://app.example.com"}}))
	for _, origin := range []string{"https://app.example.com", "http://localhost:6274", "http://127.0.0.1:6274"} {
		c := client.New(t, m.Endpoint(), client.Latest)
		c.Header.Set("Origin", origin)
		pre := c.Do(http.MethodOptions, nil, http.Header{
			"Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"content-type,mcp-session-id,mcp-protocol-version"},
		}).Wait()
		methods, headers := pre.Header.Get("Access-Control-Allow-Methods"), strings.ToLower(pre.Header.Get("Access-Control-Allow-Headers"))
		if pre.Status/100 != 2 || pre.Header.Get("Access-Control-Allow-Origin") != origin || !strings.Contains(methods, "DELETE") {
			t.Errorf("%s: preflight: %d %v", origin, pre.Status, pre.Header)
		}
		for _, name := range []string{"content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id", "mcp-method", "mcp-name"} {
			if !strings.Contains(headers, name) {
				t.Errorf("%s: preflight does not allow %s: %s", origin, name, headers)
			}
		}
		a := c.Call("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`)
		if a.Result == nil || a.Header.Get("Access-Control-Allow-Origin") != origin ||
			!strings.Contains(strings.ToLower(a.Header.Get("Access-Control-Expose-Headers")), "mcp-session-id") {
			t.Errorf("%s: POST: %d %v", origin, a.Status, a.Header)
		}
	}
}

func TestC152TwentyClientsWithOneID(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	var all sync.WaitGroup
	for i := range 20 {
		version := client.Latest
		if i%2 == 1 {
			version = client.Modern
		}
		c := client.Dial(t, m.Endpoint(), version)
		all.Go(func() {
			want := fmt.Sprintf(`{"mine":%d}`, i)
			if a := c.StartID("1", "tools/call", client.CallParams("up__a", want)).Wait(); a.Text() != want || string(a.ID) != "1" {
				t.Errorf("client %d got %s", i, a.Raw)
			}
		})
	}
	all.Wait()
	if n := len(s.Calls("a")); n != 20 {
		t.Errorf("%d calls", n)
	}
}

// TestIdsComeBack has ids that a careless decoder changes.
func TestIdsComeBack(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	for _, c := range []*client.HTTP{legacy(t, m), modern(t, m)} {
		for _, id := range []string{`"1"`, `1`, `9007199254740993`, `"é\u2028\""`, `0`, `-5`} {
			for _, method := range []string{"tools/list", "tools/call"} {
				params := ""
				if method == "tools/call" {
					params = client.CallParams("up__a", "{}")
				}
				if a := c.StartID(id, method, params).Wait(); string(a.ID) != id {
					t.Errorf("%s %s: id %s came back as %s", c.Version, method, id, a.ID)
				}
			}
		}
	}
}

func TestC155LargeBodies(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := legacy(t, m)
	before := m.Memory()
	head := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__a","arguments":{"x":"`
	for _, length := range []bool{true, false} {
		body := io.MultiReader(strings.NewReader(head), io.LimitReader(endless{}, 64<<20))
		if length {
			body = bytes.NewReader(append([]byte(head), bytes.Repeat([]byte("x"), 64<<20)...))
		}
		a := c.Do(http.MethodPost, body, http.Header{"Mcp-Session-Id": {c.Session}}).Wait()
		if a.Err == nil && a.Status != http.StatusRequestEntityTooLarge {
			t.Errorf("with length %v: status %d: %s", length, a.Status, a.Body)
		}
	}
	if grown := m.Memory() - before; grown > 48<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	if got := c.Tool("up__a", `{"x":"`+strings.Repeat("x", 3<<20)+`"}`); got.Result == nil {
		t.Errorf("3 MiB: %d %.200s", got.Status, got.Body)
	}
}

// endless is a text without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestC156MalformedJSON(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := legacy(t, m)
	ping := client.Request("1", "ping", "")
	for _, body := range []string{"not json", ping[:len(ping)-3], "", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\xffng\"}", ping + ping, strings.Repeat("[", 1<<20)} {
		a := c.Post(body, http.Header{"Mcp-Session-Id": {c.Session}}).Wait()
		if a.Status != http.StatusBadRequest || a.Code() != -32700 || string(a.ID) != "null" {
			t.Errorf("%.40q: %d %s", body, a.Status, a.Body)
		}
	}
	if a := c.Post("\ufeff"+ping, http.Header{"Mcp-Session-Id": {c.Session}}).Wait(); a.Result == nil && a.Code() != -32700 {
		t.Errorf("with a BOM: %d %s", a.Status, a.Body)
	}
	for _, body := range []string{`{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"id":1,"method":"ping"}`, `"x"`, `7`} {
		a := c.Post(body, http.Header{"Mcp-Session-Id": {c.Session}}).Wait()
		if a.Status != http.StatusBadRequest || !slices.Contains([]int{-32600, -32700}, a.Code()) {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	if got := c.Names(); len(got) != 1 {
		t.Errorf("names = %v", got)
	}
}
