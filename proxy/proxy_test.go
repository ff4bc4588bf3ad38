package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/dial"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/naming"
	"github.com/mainstem-mcp/mainstem/observe"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/access"
	"github.com/mainstem-mcp/mainstem/proxy/session"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/upstream"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

func TestMain(m *testing.M) {
	fake.Main()
	os.Exit(m.Run())
}

// A rig is a proxy in front of fake servers.
type rig struct {
	*proxy.Proxy
	set   *upstream.Set
	table *session.Table
}

func entry(name string, f *fake.Server) *config.Server {
	return &config.Server{
		Name: name, Enabled: true, Transport: config.Auto, URL: f.URL, ProtocolVersion: "auto", Timeout: 10 * time.Second,
		MaxResponseBytes: 1 << 20, CacheTTL: time.Hour, Session: "auto", Schema: "flatten", Output: "mixed", Hash: name,
	}
}

func newRig(t *testing.T, servers ...*config.Server) *rig {
	t.Helper()
	cfg := &config.Config{Servers: servers, Naming: naming.Defaults(), Limits: config.Limits{FirstListWait: 2 * time.Second}}
	log := zerolog.New(zerolog.NewTestWriter(t))
	set := upstream.NewSet(t.Context(), cfg, upstream.Options{
		Version: "test", Log: log, Transport: transport.Options{Policy: dial.New(nil), Environ: os.Environ},
	})
	table := session.NewTable(session.TableOptions{MaxSessions: 100, Idle: time.Hour, Log: log})
	r := &rig{set: set, table: table, Proxy: proxy.New(cfg, set, proxy.Options{
		Version: "test", Log: log, Table: table, Observe: observe.New(zerolog.Nop(), observe.Build{}),
	})}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = set.Run(ctx) })
	running.Go(func() { _ = r.Run(ctx) })
	t.Cleanup(func() { table.Close(); cancel(); running.Wait() })
	return r
}

// A stream keeps what answers a request.
type stream struct {
	heard chan string
	reply chan string
}

func newStream() *stream { return &stream{make(chan string, 100), make(chan string, 1)} }

func (s *stream) Notify(method string, params json.RawMessage) {
	s.heard <- method + " " + string(params)
}
func (s *stream) Ask(_ context.Context, method string, _ json.RawMessage) (jsonrpc.Reply, error) {
	return upstream.Refusal(method), nil
}
func (s *stream) Reply(r jsonrpc.Reply) error {
	s.reply <- string(r.Result) + string(r.Error)
	return nil
}

// A client sends requests in a legacy session, or each by itself.
type client struct {
	t       *testing.T
	r       *rig
	session *session.Session
	at      proxy.Endpoint
	params  map[string]string // headers
}

func (r *rig) legacy(t *testing.T) *client {
	t.Helper()
	s, err := r.table.Create(access.Caller{}, "")
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, r: r, session: s}
	c.ask("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{}}`)
	c.send(t.Context(), newStream(), "", "notifications/initialized", "")
	return c
}

func (r *rig) modern(t *testing.T) *client {
	return &client{t: t, r: r, session: session.NewThrowaway(access.Caller{}, "", protocol.V20260728, json.RawMessage("{}"), nil)}
}

func (c *client) send(ctx context.Context, s *stream, id, method, params string) {
	message := fmt.Sprintf(`{"jsonrpc":"2.0","method":%q`, method)
	if id != "" {
		message += `,"id":` + id
	}
	if params != "" {
		message += `,"params":` + params
	}
	m, err := jsonrpc.Parse([]byte(message + "}"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.r.Serve(ctx, proxy.Request{Endpoint: c.at, Session: c.session, Message: m, Param: func(name string) (string, bool) {
		v, ok := c.params[name]
		return v, ok
	}}, s)
}

func (c *client) ask(method, params string) string {
	c.t.Helper()
	s := newStream()
	c.send(c.t.Context(), s, "1", method, params)
	select {
	case reply := <-s.reply:
		return reply
	default:
		c.t.Fatalf("%s %s was not answered", method, params)
		return ""
	}
}

func want(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("got %s, want %s in it", got, part)
		}
	}
}

func TestToolsOfSeveralServersAreCalledByTheirNames(t *testing.T) {
	a, b := fake.HTTP(t, fake.Options{Tools: fake.Tools("run")}), fake.HTTP(t, fake.Options{Tools: fake.Tools("run"), Modern: true, NoHandshake: true})
	r := newRig(t, entry("a", a), entry("b", b))
	for _, c := range []*client{r.legacy(t), r.modern(t)} {
		want(t, c.ask("tools/list", ""), `"a__run"`, `"b__run"`)
		want(t, c.ask("tools/call", `{"name":"a__run","arguments":{"n":9007199254740993}}`), "9007199254740993")
		want(t, c.ask("tools/call", `{"name":"b__run"}`), "content")
		c.at = proxy.Endpoint{Server: "b"}
		want(t, c.ask("tools/list", ""), `"name":"run"`)
		want(t, c.ask("tools/call", `{"name":"run"}`), "content")
	}
	if len(a.Calls("run")) != 2 || len(b.Calls("run")) != 4 {
		t.Errorf("a was called %d times, b %d", len(a.Calls("run")), len(b.Calls("run")))
	}
	for _, call := range b.Calls("run") {
		if string(call.Param("arguments")) != "{}" || call.Header.Get("Mcp-Name") != "run" {
			t.Errorf("b got %s, Mcp-Name %s", call.Body, call.Header.Get("Mcp-Name"))
		}
	}
}

func TestC24C214UnknownToolsReachNobody(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("allowed", "danger")})
	s := entry("s", f)
	s.DisabledTools = []string{"danger"}
	c := newRig(t, s).legacy(t)
	for params, code := range map[string]string{
		`{"name":"s__danger"}`:                      `"code":-32602,"message":"Unknown tool: s__danger"`,
		`{"name":"danger"}`:                         `"code":-32602`,
		`{"name":"S__allowed"}`:                     `"code":-32602`,
		`{"name":"s__allowed","Name":"danger"}`:     `"code":-32602`,
		`{"name":"s__allowed","name":"s__danger"}`:  `"code":-32602`,
		`{"name":"s__allowed","na\u006de":"x"}`:     `"code":-32602`,
		`{"name":"s__allowed","Arguments":{"x":1}}`: `"code":-32602`,
		`{"name":7}`:                           `"code":-32602`,
		`{"name":"s__allowed","arguments":[]}`: `"code":-32602`,
		`[]`:                                   `"code":-32602`,
		`{"name":"s__allow\u0065d","_meta":null}`: `content`,
	} {
		want(t, c.ask("tools/call", params), code)
	}
	if n := len(f.Seen("tools/call")); n != 1 {
		t.Errorf("%d calls reached the server, want 1", n)
	}
}

func TestC136NoArguments(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	c := newRig(t, entry("s", f)).legacy(t)
	for _, params := range []string{`{"name":"s__a"}`, `{"name":"s__a","arguments":null}`, `{"name":"s__a","arguments":{}}`} {
		c.ask("tools/call", params)
	}
	for _, call := range f.Calls("a") {
		if got := string(call.Param("arguments")); got != "{}" {
			t.Errorf("the server got %s", got)
		}
	}
}

func TestArgumentsGetTheirOwnNamesBack(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: []string{`{"name":"t","inputSchema":{"type":"object","properties":{"my key":{"type":"object","properties":{"$x":{"type":"string"}}}}}}`}})
	c := newRig(t, entry("s", f)).legacy(t)
	want(t, c.ask("tools/list", ""), `"my_key"`, `"_x"`)
	c.ask("tools/call", `{"name":"s__t","arguments":{"my_key":{"_x":"v"},"other":1}}`)
	if got := string(f.Calls("t")[0].Param("arguments")); got != `{"my key":{"$x":"v"},"other":1}` {
		t.Errorf("the server got %s", got)
	}
}

func TestC54C55ErrorsStayWhatTheyAre(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("fails", "refuses", "gone", "odd", "drops"), Calls: map[string]fake.Handler{
		"fails":   func(c *fake.Call) { c.Result(`{"content":[{"type":"text","text":"bad luck"}],"isError":true}`) },
		"refuses": func(c *fake.Call) { c.Error(-32602, "bad", `{"k":9007199254740993}`) },
		"gone":    func(c *fake.Call) { c.Error(-32002, "gone", "null") },
		"odd":     func(c *fake.Call) { c.Result(`[]`) },
		"drops":   func(c *fake.Call) { c.Drop() },
	}})
	r := newRig(t, entry("s", f))
	legacy, modern := r.legacy(t), r.modern(t)
	want(t, legacy.ask("tools/call", `{"name":"s__fails"}`), `"isError":true`, "bad luck")
	want(t, legacy.ask("tools/call", `{"name":"s__refuses"}`), `"code":-32602`, `"message":"bad"`, `9007199254740993`)
	want(t, legacy.ask("tools/call", `{"name":"s__gone"}`), `"code":-32002`)
	want(t, modern.ask("tools/call", `{"name":"s__gone"}`), `"code":-32602`, `"message":"gone"`)
	want(t, legacy.ask("tools/call", `{"name":"s__odd"}`), `"isError":true`, `"text":"s: `)
	want(t, modern.ask("tools/call", `{"name":"s__drops"}`), `"isError":true`, `"text":"s: `, "unknown", `"resultType":"complete"`)
}

func TestC182ProgressGoesToWhomItBelongs(t *testing.T) {
	both := make(chan struct{})
	var started sync.WaitGroup
	started.Add(2)
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("slow"), Calls: map[string]fake.Handler{"slow": func(c *fake.Call) {
		started.Done()
		if c.Hold(both) {
			c.Notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":1,"message":%s}`, c.Param("_meta", "progressToken"), c.Param("arguments", "who")))
		}
		c.Text("done")
	}}})
	r := newRig(t, entry("s", f))
	var calls sync.WaitGroup
	for _, who := range []string{"one", "two"} {
		c := r.legacy(t)
		calls.Go(func() {
			s := newStream()
			c.send(t.Context(), s, "1", "tools/call", fmt.Sprintf(`{"name":"s__slow","arguments":{"who":%q},"_meta":{"progressToken":1}}`, who))
			want(t, <-s.heard, `"progressToken":1,`, who)
			want(t, <-s.reply, "done")
		})
	}
	started.Wait()
	close(both)
	calls.Wait()
}

func TestC144CancelReachesTheServer(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("slow"), Calls: map[string]fake.Handler{"slow": func(c *fake.Call) { c.Hold(nil) }}})
	c := newRig(t, entry("s", f)).legacy(t)
	s := newStream()
	var calling sync.WaitGroup
	calling.Go(func() { c.send(t.Context(), s, `"x"`, "tools/call", `{"name":"s__slow"}`) })
	call := f.Wait(t, "tools/call", 1)[0]
	c.send(t.Context(), s, "", "notifications/cancelled", `{"requestId":"y"}`)
	c.send(t.Context(), s, "", "notifications/cancelled", `{"requestId":"x"}`)
	calling.Wait()
	cancelled := f.Wait(t, "notifications/cancelled", 1)[0]
	if string(cancelled.Param("requestId")) != string(call.ID) {
		t.Errorf("cancelled %s, running is %s", cancelled.Param("requestId"), call.ID)
	}
	if len(s.reply) != 0 {
		t.Errorf("a cancelled call was answered: %s", <-s.reply)
	}
}

func TestLogMessagesByLevel(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("logs"), Calls: map[string]fake.Handler{"logs": func(c *fake.Call) {
		c.Notify("notifications/message", `{"level":"debug","data":"d"}`)
		c.Notify("notifications/message", `{"level":"error","data":"e"}`)
		c.Text("done")
	}}})
	r := newRig(t, entry("s", f))
	for name, tt := range map[string]struct {
		level string
		c     *client
		want  int
	}{"never set": {"", r.legacy(t), 2}, "warning": {"warning", r.legacy(t), 1}, "modern without a level": {"", r.modern(t), 0}} {
		if tt.level != "" {
			want(t, tt.c.ask("logging/setLevel", `{"level":"`+tt.level+`"}`), "{}")
		}
		s := newStream()
		tt.c.send(t.Context(), s, "1", "tools/call", `{"name":"s__logs"}`)
		if len(s.heard) != tt.want {
			t.Errorf("%s: %d messages, want %d", name, len(s.heard), tt.want)
		}
	}
	want(t, r.legacy(t).ask("logging/setLevel", `{"level":"loud"}`), `"code":-32602`)
}

func TestListChangedToWhoeverSeesIt(t *testing.T) {
	a, b := fake.HTTP(t, fake.Options{Tools: fake.Tools("x")}), fake.HTTP(t, fake.Options{Tools: fake.Tools("x")})
	r := newRig(t, entry("a", a), entry("b", b))
	open := func(at string) *stream {
		c, s := r.modern(t), newStream()
		c.at = proxy.Endpoint{Server: at}
		ctx, cancel := context.WithCancel(t.Context())
		var listening sync.WaitGroup
		listening.Go(func() {
			c.send(ctx, s, `"sub"`, "subscriptions/listen", `{"notifications":{"toolsListChanged":true,"promptsListChanged":true}}`)
		})
		t.Cleanup(func() { cancel(); listening.Wait() })
		want(t, <-s.heard, "acknowledged", `{"notifications":{"toolsListChanged":true}`, `"io.modelcontextprotocol/subscriptionId":"sub"`)
		return s
	}
	want(t, r.modern(t).ask("tools/list", ""), "a__x", "b__x")
	all, onlyA := open(""), open("a")
	b.SetTools(fake.Tools("x", "y")...)
	for b.Feeds() == 0 { // the stream that carries the news is opened after the list
		runtime.Gosched()
	}
	b.Announce()
	want(t, <-all.heard, "notifications/tools/list_changed", `"sub"`)
	want(t, r.modern(t).ask("tools/list", ""), "b__y")
	if len(onlyA.heard) != 0 {
		t.Errorf("told of another server's list: %s", <-onlyA.heard)
	}
}

func TestC140FirstListWaitsForSlowServers(t *testing.T) {
	gate := make(chan struct{})
	slow := fake.HTTP(t, fake.Options{Tools: fake.Tools("s"), Handlers: map[string]fake.Handler{"tools/list": func(c *fake.Call) { c.Hold(gate); c.Usual() }}})
	r := newRig(t, entry("quick", fake.HTTP(t, fake.Options{Tools: fake.Tools("q")})), entry("slow", slow))
	listed := make(chan string, 1)
	go func() { listed <- r.legacy(t).ask("tools/list", "") }()
	slow.Wait(t, "tools/list", 1)
	close(gate)
	want(t, <-listed, "quick__q", "slow__s")
}

func TestParamHeadersMustAgree(t *testing.T) {
	definition := `{"name":"t","inputSchema":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"},"s":{"type":"string","x-mcp-header":"S"}}}}`
	f := fake.HTTP(t, fake.Options{Tools: []string{definition}, Modern: true})
	r := newRig(t, entry("s", f))
	for name, tt := range map[string]struct {
		args    string
		headers map[string]string
		ok      bool
	}{
		"agree":        {`{"n":5,"s":"é"}`, map[string]string{"N": "5", "S": "é"}, true},
		"equal number": {`{"n":5.0}`, map[string]string{"N": "5"}, true},
		"null":         {`{"n":null}`, nil, true},
		"missing":      {`{"n":5}`, nil, false},
		"other":        {`{"n":5}`, map[string]string{"N": "6"}, false},
		"no argument":  {`{}`, map[string]string{"N": "6"}, false},
	} {
		c := r.modern(t)
		c.params = tt.headers
		got := c.ask("tools/call", `{"name":"s__t","arguments":`+tt.args+`}`)
		if ok := !strings.Contains(got, `"code":-32020`); ok != tt.ok {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, call := range f.Calls("t") {
		if h := call.Header; string(call.Param("arguments", "s")) != "" && (h.Get("Mcp-Param-N") != "5" || h.Get("Mcp-Param-S") != "=?base64?w6k=?=") {
			t.Errorf("the server got %v", h)
		}
	}
}

func TestMethodsOfTheOtherEraDoNotExist(t *testing.T) {
	r := newRig(t)
	for method, c := range map[string]*client{"ping": r.modern(t), "initialize": r.modern(t), "logging/setLevel": r.modern(t), "server/discover": r.legacy(t), "x/y": r.legacy(t), "prompts/list": r.legacy(t)} {
		want(t, c.ask(method, "{}"), `"code":-32601`)
	}
	want(t, r.legacy(t).ask("ping", ""), "{}")
	want(t, r.modern(t).ask("server/discover", "{}"), `"supportedVersions":["2026-07-28","2025-11-25"`, `"name":"Mainstem"`)
	want(t, r.legacy(t).ask("tools/list", `{"cursor":"garbage"}`), `"code":-32602`)
	want(t, r.legacy(t).ask("tools/list", ``), `{"tools":[]}`)
}

func TestListenEndsWithAResultWhenWeStop(t *testing.T) {
	c, s := newRig(t).modern(t), newStream()
	var listening sync.WaitGroup
	listening.Go(func() {
		c.send(t.Context(), s, `"sub"`, "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`)
	})
	<-s.heard
	c.session.Close()
	listening.Wait()
	want(t, <-s.reply, `"resultType":"complete"`, `"io.modelcontextprotocol/subscriptionId":"sub"`)
}

func TestH19OtherHeadersAreWantedNow(t *testing.T) {
	tool := func(header string) string {
		return `{"name":"t","inputSchema":{"type":"object","properties":{"n":{"type":"string","x-mcp-header":"` + header + `"}}}}`
	}
	f := fake.HTTP(t, fake.Options{Tools: []string{tool("Old")}, Modern: true, NoHandshake: true, Calls: map[string]fake.Handler{"t": func(c *fake.Call) {
		if c.Header.Get("Mcp-Param-New") == "" {
			c.Error(-32020, "Mcp-Param-New is missing", "null")
			return
		}
		c.Text("fine")
	}}})
	c := newRig(t, entry("s", f)).legacy(t)
	want(t, c.ask("tools/list", ""), "s__t")
	want(t, c.ask("tools/call", `{"name":"s__t","arguments":{"n":"v"}}`), `"code":-32020`)
	if n := len(f.Calls("t")); n != 1 {
		t.Errorf("sent %d times although nothing was learned", n)
	}
	f.SetTools(tool("New"))
	want(t, c.ask("tools/call", `{"name":"s__t","arguments":{"n":"v"}}`), "fine")
}
