package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/test/fake"
)

// A running is a Mainstem in this process.
type running struct {
	addr string
	stop func()
}

// start serves a configuration on addr until the test ends, or stop is called.
func start(t *testing.T, addr, yaml string) running {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "mainstem.yaml")
	if err := os.WriteFile(path, []byte("state_dir: "+dir+"/state\nlog: {level: error}\n"+yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	a := newApp(strings.NewReader(""), io.Discard, t.Output(), os.LookupEnv)
	cfg, err := a.load([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.assemble(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- p.run(ctx, func(ctx context.Context) error { return p.door().Serve(ctx, ln) })
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return running{ln.Addr().String(), stop}
}

// A pipe is a client's side of a bridge.
type pipe struct {
	t   *testing.T
	in  *io.PipeWriter
	out *bufio.Scanner
}

func bridgeTo(t *testing.T, addr string) *pipe {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	a := newApp(inR, outW, t.Output(), os.LookupEnv)
	done := make(chan int, 1)
	go func() { done <- a.run(t.Context(), []string{"stdio", "--url", "http://" + addr}) }()
	p := &pipe{t: t, in: inW, out: bufio.NewScanner(outR)}
	p.out.Buffer(nil, 1<<20)
	t.Cleanup(func() {
		_ = inW.Close()
		go func() { _, _ = io.Copy(io.Discard, outR) }()
		select {
		case code := <-done:
			if code != 0 {
				t.Errorf("exit code %d", code)
			}
		case <-time.After(20 * time.Second):
			t.Error("the bridge does not end")
		}
	})
	return p
}

func (p *pipe) say(message string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, message+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// hear returns the next message that holds the text.
func (p *pipe) hear(text string) string {
	p.t.Helper()
	for p.out.Scan() {
		if err := jsonrpc.Check(p.out.Bytes()); err != nil {
			p.t.Fatalf("%v: %s", err, p.out.Text())
		}
		if strings.Contains(p.out.Text(), text) {
			return p.out.Text()
		}
	}
	p.t.Fatalf("nothing with %s: %v", text, p.out.Err())
	return ""
}

func (p *pipe) initialize() {
	p.t.Helper()
	p.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if got := p.hear(`"id":0,`); !strings.Contains(got, `"protocolVersion":"2025-06-18"`) {
		p.t.Fatalf("initialize: %s", got)
	}
	p.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func call(id int, tool, arguments, meta string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":%s}}`, id, tool, arguments, meta)
}

const modernMeta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// What a server says during a call reaches the client before the answer, under its own
// token, and a cancelled call is cancelled at the server.
func TestBridgeCarriesProgressAndCancellation(t *testing.T) {
	t.Parallel()
	cancelled := make(chan struct{})
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("count", "slow"), Calls: map[string]fake.Handler{
		"count": func(c *fake.Call) { c.Progress(1); c.Progress(2); c.Text("counted") },
		"slow":  func(c *fake.Call) { <-c.Context().Done(); close(cancelled) },
	}})
	m := start(t, "127.0.0.1:0", fmt.Sprintf("mcpServers: {up: {url: %s}}", s.URL))
	p := bridgeTo(t, m.addr)
	p.initialize()
	p.say(call(1, "up__count", "{}", `{"progressToken":"mine"}`))
	if got := p.hear("notifications/progress"); !strings.Contains(got, `"progressToken":"mine"`) {
		t.Errorf("progress: %s", got)
	}
	if got := p.hear(`"id":1,`); !strings.Contains(got, "counted") {
		t.Errorf("answer: %s", got)
	}
	p.say(call(2, "up__slow", "{}", "{}"))
	s.Wait(t, "tools/call", 2)
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	<-cancelled
	p.say(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	if got := p.hear(`"id":`); !strings.Contains(got, `"id":3,`) {
		t.Errorf("a cancelled call was answered: %s", got)
	}
}

// A change of the list is heard of.
func TestBridgeCarriesListChanged(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	m := start(t, "127.0.0.1:0", fmt.Sprintf("mcpServers: {up: {url: %s}}", s.URL))
	p := bridgeTo(t, m.addr)
	p.initialize()
	p.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	p.hear(`"id":1,`)
	s.SetTools(fake.Tools("a", "b")...)
	base := "http://" + m.addr
	a := newApp(strings.NewReader(""), io.Discard, t.Output(), os.LookupEnv)
	if code := a.run(t.Context(), []string{"check", "up", "--url", base}); code != 0 {
		t.Fatalf("check: exit code %d", code)
	}
	p.hear("notifications/tools/list_changed")
}

// A Mainstem that is started again does not know the session. The client need not
// notice.
func TestBridgeSurvivesARestart(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("echo")})
	yaml := fmt.Sprintf("mcpServers: {up: {url: %s}}", s.URL)
	m := start(t, "127.0.0.1:0", yaml)
	p := bridgeTo(t, m.addr)
	p.initialize()
	p.say(call(1, "up__echo", `{"n":1}`, "{}"))
	p.hear(`"id":1,`)
	m.stop()
	p.say(call(2, "up__echo", `{"n":2}`, "{}"))
	if got := p.hear(`"id":2,`); !strings.Contains(got, `"error":{"code":-32603,"message":"Mainstem at http://`) {
		t.Errorf("with nobody there: %s", got)
	}
	start(t, m.addr, yaml)
	for id := 3; id < 6; id++ { // at once: one new session for all
		p.say(call(id, "up__echo", `{"n":1.50}`, "{}"))
	}
	for range 3 {
		if got := p.hear(`"id":`); !strings.Contains(got, `1.50`) {
			t.Errorf("after the restart: %s", got)
		}
	}
}

// On stdio there are no headers, but over HTTP some tools want them.
func TestBridgeMirrorsArguments(t *testing.T) {
	t.Parallel()
	tool := `{"name":"find","inputSchema":{"type":"object","properties":{"where":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}},"n":{"type":"integer","x-mcp-header":"Count"}}}}`
	s := fake.HTTP(t, fake.Options{Modern: true, NoHandshake: true, Tools: []string{tool}})
	m := start(t, "127.0.0.1:0", fmt.Sprintf("mcpServers: {up: {url: %s}}", s.URL))
	p := bridgeTo(t, m.addr)
	for id := 1; id < 3; id++ {
		p.say(call(id, "up__find", `{"where":{"region":"é"},"n":42}`, modernMeta))
		got := p.hear(fmt.Sprintf(`"id":%d,`, id))
		if jsonrpc.Get([]byte(got), "result") == nil {
			t.Errorf("call %d: %s", id, got)
		}
	}
	p.say(call(3, "up__find", `{}`, modernMeta))
	p.hear(`"id":3,"result"`)
	if calls := s.Calls("find"); len(calls) != 3 || calls[0].Header.Get("Mcp-Param-Count") != "42" {
		t.Errorf("%d calls", len(calls))
	}
}

// A modern client's listen is answered with its own id in what it hears.
func TestBridgeListens(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	m := start(t, "127.0.0.1:0", fmt.Sprintf("mcpServers: {up: {url: %s}}", s.URL))
	p := bridgeTo(t, m.addr)
	p.say(`{"jsonrpc":"2.0","id":"w","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":` + modernMeta + `}}`)
	got := p.hear("notifications/subscriptions/acknowledged")
	var m2 struct {
		Params struct {
			Meta map[string]any `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(got), &m2); err != nil || m2.Params.Meta["io.modelcontextprotocol/subscriptionId"] != "w" {
		t.Errorf("%v: %s", err, got)
	}
}
