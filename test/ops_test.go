package test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

// TestC204Shutdown has an idle stream, a listen and a call that would never end.
func TestC204Shutdown(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	options := fake.Options{Tools: fake.Tools("slow"), Calls: map[string]fake.Handler{"slow": held(g)}}
	web, pipe := fake.HTTP(t, options), fake.Stdio(t, options)
	m := run.Start(t, run.Of(run.HTTP("web", web), run.Stdio("pipe", pipe)))
	c := legacy(t, m)
	c.Listen()
	client.Dial(t, m.Endpoint(), client.Modern).Listen()
	var calls sync.WaitGroup
	for _, name := range []string{"web__slow", "pipe__slow"} {
		calls.Go(func() { c.Tool(name, "{}") })
	}
	web.Wait(t, "tools/call", 1)
	pipe.Wait(t, "tools/call", 1)
	m.Signal(syscall.SIGTERM)
	code, took := m.WaitExit(17 * time.Second)
	if code != 0 || took < 8*time.Second {
		t.Errorf("exit code %d after %v; running calls have 10 s", code, took)
	}
	calls.Wait()
	web.Wait(t, "DELETE", 1)
	pipe.Processes()[0].WaitGone(t, soon)
}

// TestC204FinishesCalls has a call that ends in time.
func TestC204FinishesCalls(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s, m := behind(t, fake.Options{Tools: fake.Tools("slow"), Calls: map[string]fake.Handler{"slow": held(g)}})
	c := legacy(t, m)
	c.Listen()
	done := make(chan client.Answer, 1)
	go func() { done <- c.Tool("up__slow", "{}") }()
	s.Wait(t, "tools/call", 1)
	m.Signal(syscall.SIGTERM)
	run.Eventually(t, "new connections to be refused", func() bool {
		w, err := http.Get(m.URL + "/healthz")
		if err == nil {
			w.Body.Close()
		}
		return err != nil
	})
	g.open()
	if got := (<-done).Text(); got != "released" {
		t.Errorf("the call got %q", got)
	}
	if code, took := m.WaitExit(8 * time.Second); code != 0 || took > 5*time.Second {
		t.Errorf("exit code %d, %v after the call", code, took)
	}
}

func TestC204SecondSignal(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s, m := behindStdio(t, fake.Options{Tools: fake.Tools("slow"), Calls: map[string]fake.Handler{"slow": held(g)}})
	c := legacy(t, m)
	go c.Tool("up__slow", "{}")
	s.Wait(t, "tools/call", 1)
	m.Signal(syscall.SIGTERM)
	run.Eventually(t, "the first signal to be seen", func() bool {
		w, err := http.Get(m.URL + "/healthz")
		if err == nil {
			w.Body.Close()
		}
		return err != nil
	})
	m.Signal(syscall.SIGTERM)
	if _, took := m.WaitExit(8 * time.Second); took > soon {
		t.Errorf("it ended %v after the second signal", took)
	}
	s.Processes()[0].WaitGone(t, 7*time.Second)
}

// TestListensEnd looks at what a client of 2026-07-28 hears at the end.
func TestListensEnd(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	listen := client.Dial(t, m.Endpoint(), client.Modern).Listen()
	m.Signal(syscall.SIGTERM)
	a := listen.Wait()
	if a.Err != nil || string(a.ID) != listen.ID || string(client.Member(a.Result, "_meta", "io.modelcontextprotocol/subscriptionId")) != listen.ID {
		t.Errorf("got %s, %v; want a result for %s that names the subscription", a.Raw, a.Err, listen.ID)
	}
	if code, _ := m.WaitExit(8 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestOneLineForEachCall has a call of each outcome, and looks for what must not be written.
func TestOneLineForEachCall(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("good", "bad", "drop"), Calls: map[string]fake.Handler{
		"good": answers(`{"content":[{"type":"text","text":"the answer"}]}`),
		"bad":  answers(`{"content":[{"type":"text","text":"the answer"}],"isError":true}`),
		"drop": func(c *fake.Call) { c.Drop() },
	}})
	m := run.Start(t, run.Of(run.HTTP("up", s)).With(fields{"log": fields{"level": "info", "format": "json"}}))
	for _, name := range []string{"good", "bad", "drop"} {
		legacy(t, m).Tool("up__"+name, `{"q":"the question"}`)
		var line struct {
			Upstream, Tool, Outcome string
			Dur                     float64
		}
		if err := json.Unmarshal([]byte(m.WaitLog(`"call"`, `"`+name+`"`)), &line); err != nil || line.Upstream != "up" || line.Tool != name || line.Outcome == "" {
			t.Errorf("%s: %+v, %v", name, line, err)
		}
		if got, want := strings.Count(m.Log(), `"tool":"`+name+`"`), 1; got != want {
			t.Errorf("%s: %d lines, want %d", name, got, want)
		}
	}
	if strings.Contains(m.Log(), "the question") || strings.Contains(m.Log(), "the answer") {
		t.Errorf("the log tells what was said")
	}
}

func TestC209Statuses(t *testing.T) {
	t.Parallel()
	fine, empty := fake.HTTP(t, fake.Options{Tools: fake.Tools("a", "b")}), fake.HTTP(t, fake.Options{})
	config := run.Of(
		run.HTTP("fine", fine), run.HTTP("empty", empty),
		run.Server{Name: "down", Fields: fields{"url": "http://127.0.0.1:1/mcp"}},
		run.Server{Name: "off", Fields: fields{"command": "cat", "enabled": false}},
	)
	m := run.Start(t, config)
	legacy(t, m).Names()
	want := map[string]run.Status{"fine": {Status: "healthy", Tools: 2}, "empty": {Status: "healthy"}, "down": {Status: "failed"}, "off": {Status: "disabled"}}
	for name, w := range want {
		got := m.WaitStatus(name, w.Status)
		if got.Tools != w.Tools || (got.Error != "") != (w.Status == "failed") || got.Name != name {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if down := m.Status("down"); !strings.Contains(down.Error, "refused") || down.NextTry == "" {
		t.Errorf("down: %+v", down)
	}
	_, body := m.Get("/api/v1/servers")
	var all struct{ Servers []run.Status }
	if err := json.Unmarshal(body, &all); err != nil || len(all.Servers) != 4 || all.Servers[0].Name != "fine" || all.Servers[3].Name != "off" {
		t.Errorf("servers: %v: %s", err, body)
	}
	listed := run.Command(t, config, "list", "--json")
	if err := json.Unmarshal([]byte(listed.Stdout), &all); err != nil || listed.Code != 0 || len(all.Servers) != 4 {
		t.Errorf("mainstem list: exit code %d, %v: %s%s", listed.Code, err, listed.Stdout, listed.Stderr)
	}
}

func TestC210ServerThatComesLater(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	s.Shut()
	m := run.Start(t, run.Of(run.HTTP("up", s)).With(fields{"limits": fields{"first_list_wait": "0s"}}))
	c := legacy(t, m)
	feed := c.Listen()
	if got := c.Names(); len(got) != 0 {
		t.Errorf("names = %v", got)
	}
	m.WaitStatus("up", "failed")
	s.Reopen(t)
	feed.Expect("notifications/tools/list_changed")
	if got := c.Names(); !slices.Equal(got, []string{"up__a"}) {
		t.Errorf("names = %v", got)
	}
}

// TestC211ManySessions starts more sessions than are kept.
func TestC211ManySessions(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	m := run.Start(t, run.Of(run.HTTP("up", s)).With(fields{"limits": fields{"max_sessions": 100}}))
	first := legacy(t, m)
	first.Names()
	c := client.New(t, m.Endpoint(), client.Latest)
	open := func(n int) {
		for range n {
			if a := c.Call("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`); a.Result == nil {
				t.Fatalf("initialize: %d %s", a.Status, a.Body)
			}
		}
	}
	open(500)
	before := m.Memory()
	open(2500)
	if grown := m.Memory() - before; grown > 16<<20 {
		t.Errorf("2,500 sessions cost %d MiB", grown>>20)
	}
	if got := first.Call("tools/list", "").Status; got != http.StatusNotFound {
		t.Errorf("the oldest session: status %d", got)
	}
}

// TestMaxSessionsAllBusy has no session that could give way.
func TestMaxSessionsAllBusy(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("slow"), Calls: map[string]fake.Handler{"slow": held(g)}})
	m := run.Start(t, run.Of(run.HTTP("up", s)).With(fields{"limits": fields{"max_sessions": 2}}))
	calling, listening := legacy(t, m), legacy(t, m)
	go calling.Tool("up__slow", "{}")
	s.Wait(t, "tools/call", 1)
	listening.Listen()
	a := client.New(t, m.Endpoint(), client.Latest).Call("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`)
	if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
		t.Errorf("a third session: %d %v %s", a.Status, a.Header, a.Body)
	}
}

func TestIdleSessionsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("the shortest session_idle is a minute")
	}
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	m := run.Start(t, run.Of(run.HTTP("up", s)).With(fields{"limits": fields{"session_idle": "1m"}}))
	idle, listening := legacy(t, m), legacy(t, m)
	listening.Listen()
	time.Sleep(70 * time.Second) // it is looked for from time to time, and asking would keep the session
	if got := idle.Call("tools/list", "").Status; got != http.StatusNotFound {
		t.Errorf("after a minute: status %d", got)
	}
	if got := listening.Call("tools/list", "").Status; got != http.StatusOK {
		t.Errorf("a session that listens: status %d", got)
	}
}

// TestRestartServesTheLastLists starts a second time with all servers gone.
func TestRestartServesTheLastLists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a", "b")})
	config := run.Of(run.HTTP("up", s))
	m := run.StartIn(t, dir, config)
	list := string(legacy(t, m).Must("tools/list", "").Result)
	if code := m.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.Shut()
	m = run.StartIn(t, dir, config)
	c := legacy(t, m)
	start := time.Now()
	if got := string(c.Must("tools/list", "").Result); got != list {
		t.Errorf("after the restart:\n got  %s\n want %s", got, list)
	}
	quick(t, "the list", start, soon)
	failed(t, c.Tool("up__a", "{}").Message, "up")
	if got := m.WaitStatus("up", "degraded", "failed"); got.Status != "degraded" || got.Error == "" {
		t.Errorf("status = %+v", got)
	}
	s.Reopen(t)
	run.Eventually(t, "the server to be back", func() bool { return c.Tool("up__a", `{"q":1}`).Text() == `{"q":1}` })
	m.WaitStatus("up", "healthy")
}

// TestTwoProcessesShareState lets two of them write at once.
func TestTwoProcessesShareState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := run.Of(run.HTTP("up", fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})))
	one, two := run.StartIn(t, dir, config), run.StartIn(t, dir, config)
	for _, m := range []*run.Mainstem{one, two} {
		if got := legacy(t, m).Names(); !slices.Equal(got, []string{"up__a"}) {
			t.Errorf("names = %v", got)
		}
	}
	one.Stop()
	if got := legacy(t, two).Tool("up__a", "{}").Text(); got != "{}" {
		t.Errorf("got %q", got)
	}
}

func TestHealthRoutes(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	s.Shut()
	m := run.Start(t, run.Of(run.HTTP("up", s)))
	if code, _ := m.Get("/healthz"); code != 200 {
		t.Errorf("/healthz: %d", code)
	}
	if code, _ := m.Get("/readyz"); code != 503 {
		t.Errorf("/readyz without a list: %d", code)
	}
	s.Reopen(t)
	run.Eventually(t, "/readyz", func() bool { code, _ := m.Get("/readyz"); return code == 200 })
	if code, body := m.Get("/metrics"); code != 200 || !strings.Contains(string(body), "# TYPE mainstem_") {
		t.Errorf("/metrics: %d %.300s", code, body)
	}
	for _, path := range []string{"/nowhere", "/mcp/nowhere", "/servers/nowhere/mcp", "/api/v1/nowhere"} {
		if code, _ := m.Get(path); code != 404 {
			t.Errorf("%s: %d", path, code)
		}
	}
}
