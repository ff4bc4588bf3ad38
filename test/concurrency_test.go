package test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

// silence takes connections and never answers; it returns its URL.
func silence(t *testing.T) string {
	t.Helper()
	l := fake.Listen(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
		}
	}()
	return "http://" + l.Addr().String() + "/mcp"
}

// TestC177DeadServer also covers `first_list_wait` and the start with twenty servers: two never answer, one takes 8 s.
func TestC177DeadServer(t *testing.T) {
	t.Parallel()
	var servers []run.Server
	late := fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Handlers: map[string]fake.Handler{"initialize": late(8 * time.Second)}})
	for i := range 20 {
		name := fmt.Sprintf("s%02d", i)
		switch i {
		case 3, 11:
			servers = append(servers, run.Server{Name: name, Fields: fields{"url": silence(t)}})
		case 7:
			servers = append(servers, run.HTTP(name, late))
		default:
			servers = append(servers, run.HTTP(name, fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})))
		}
	}
	begin := time.Now()
	m := run.Start(t, run.Of(servers...).With(fields{"limits": fields{"first_list_wait": "3s"}}))
	quick(t, "to listen", begin, soon)
	c := legacy(t, m)
	feed := c.Listen()
	start := time.Now()
	names := c.Names()
	quick(t, "the first list", start, 3*time.Second+soon)
	if len(names) != 17 {
		t.Errorf("%d names: %v", len(names), names)
	}
	start = time.Now()
	if got := c.Names(); len(got) < 17 {
		t.Errorf("%d names", len(got))
	}
	quick(t, "the second list", start, soon)
	if code, _ := m.Get("/readyz"); code != 200 {
		t.Errorf("/readyz: %d", code)
	}
	feed.Expect("notifications/tools/list_changed")
	run.Eventually(t, "the late server", func() bool { return slices.Contains(c.Names(), "s07__a") })
	if got := m.Status("s03").Status; got == "healthy" {
		t.Errorf("status of a dead server = %s", got)
	}
}

// TestC140EarlyList has a client that lists while a server is still starting, and is told when it is there.
func TestC140EarlyList(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	fast := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	slow := fake.HTTP(t, fake.Options{Tools: fake.Tools("b"), Handlers: map[string]fake.Handler{"tools/list": func(c *fake.Call) {
		if c.Hold(g.C) {
			c.Usual()
		}
	}}})
	m := run.Start(t, run.Of(run.HTTP("fast", fast), run.HTTP("slow", slow)).With(fields{"limits": fields{"first_list_wait": "1s"}}))
	old, listener := legacy(t, m), client.Dial(t, m.Endpoint(), client.Modern)
	feeds := []*client.Pending{old.Listen(), listener.Listen()}
	start := time.Now()
	if got := old.Names(); !slices.Equal(got, []string{"fast__a"}) {
		t.Errorf("names = %v", got)
	}
	quick(t, "the first list", start, time.Second+soon)
	g.open()
	for i, c := range []*client.HTTP{old, listener} {
		feeds[i].Expect("notifications/tools/list_changed")
		awaitNames(t, c, "fast__a", "slow__b")
	}
}

// TestC140EarlyCall has calls that come before the first list; they wait for it too.
func TestC140EarlyCall(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s, m := behind(t, fake.Options{Tools: fake.Tools("a"), Handlers: map[string]fake.Handler{"tools/list": func(c *fake.Call) {
		if c.Hold(g.C) {
			c.Usual()
		}
	}}})
	s.Wait(t, "tools/list", 1)
	old, fresh := legacy(t, m), modern(t, m)
	var all sync.WaitGroup
	for _, c := range []*client.HTTP{old, fresh} {
		all.Go(func() {
			if got := c.Tool("up__a", `{"q":1}`); got.Text() != `{"q":1}` {
				t.Errorf("%s: got %s%s", c.Version, got.Result, got.Error)
			}
		})
	}
	all.Go(func() {
		if code, body := m.Post("/api/v1/servers/up/tools/a/call", `{}`); code != 200 {
			t.Errorf("REST: %d %s", code, body)
		}
	})
	time.Sleep(200 * time.Millisecond) // nothing shows that the calls have come and wait
	g.open()
	all.Wait()
}

func TestC179SlowAndQuickCalls(t *testing.T) {
	t.Parallel()
	gates := map[string]*gate{"pipe": newGate(t), "web": newGate(t)}
	options := func(server string) fake.Options {
		return fake.Options{Tools: fake.Tools("slow", "quick"), Calls: map[string]fake.Handler{"slow": held(gates[server])}}
	}
	m := run.Start(t, run.Of(run.Stdio("pipe", fake.Stdio(t, options("pipe"))), run.HTTP("web", fake.HTTP(t, options("web")))))
	c := legacy(t, m)
	for server, g := range gates {
		slow := make(chan string, 1)
		go func() { slow <- c.Tool(server+"__slow", "{}").Text() }()
		start := time.Now()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				want := fmt.Sprintf(`{"n":%d}`, i)
				if got := c.Tool(server+"__quick", want).Text(); got != want {
					t.Errorf("%s: call %d got %q", server, i, got)
				}
			})
		}
		all.Wait()
		quick(t, "twenty quick calls", start, soon)
		g.open()
		if got := <-slow; got != "released" {
			t.Errorf("%s: the slow call got %q", server, got)
		}
	}
}

// TestC182EqualProgressTokens has two clients whose calls share one upstream session and run at the same time.
func TestC182EqualProgressTokens(t *testing.T) {
	t.Parallel()
	const each = 5
	options := func() fake.Options {
		var both sync.WaitGroup
		both.Add(2)
		return fake.Options{Tools: fake.Tools("work"), Calls: map[string]fake.Handler{"work": func(c *fake.Call) {
			both.Done()
			both.Wait()
			for i := range each {
				c.Progress(i)
			}
			fake.Echo(c)
		}}}
	}
	m := run.Start(t, run.Of(
		run.Stdio("pipe", fake.Stdio(t, options())),
		run.HTTP("web", fake.HTTP(t, options()), fields{"session": "shared"}),
	))
	for _, server := range []string{"pipe", "web"} {
		var all sync.WaitGroup
		for i := range 2 {
			c := legacy(t, m)
			all.Go(func() {
				want := fmt.Sprintf(`{"n":%d}`, i)
				a := c.Call("tools/call", `{"name":"`+server+`__work","arguments":`+want+`,"_meta":{"progressToken":1}}`)
				if a.Text() != want || len(a.Before) == 0 || len(a.Before) > each {
					t.Errorf("%s: client %d got %s after %d notifications, want 1 to %d", server, i, a.Raw, len(a.Before), each)
				}
			})
		}
		all.Wait()
	}
}

func TestC183CancelOfAnotherClient(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s, m := behindStdio(t, fake.Options{Tools: fake.Tools("slow"), Calls: map[string]fake.Handler{"slow": held(g)}})
	a, b := legacy(t, m), legacy(t, m)
	done := make(chan string, 1)
	go func() { done <- a.StartID("1", "tools/call", client.CallParams("up__slow", "{}")).Wait().Text() }()
	upstream := s.Wait(t, "tools/call", 1)[0].ID
	for _, id := range []string{"1", `"1"`, string(upstream)} {
		b.Notify("notifications/cancelled", `{"requestId":`+id+`}`)
		modern(t, m).Notify("notifications/cancelled", `{"requestId":`+id+`}`)
	}
	b.Must("ping", "")
	g.open()
	if got := <-done; got != "released" {
		t.Errorf("the call got %q", got)
	}
	if n := len(s.Seen("notifications/cancelled")); n > 0 {
		t.Errorf("the server was told %d times", n)
	}
}

// TestC184LostConnection has servers that run the tool and then break off.
func TestC184LostConnection(t *testing.T) {
	t.Parallel()
	drop := map[string]fake.Handler{
		"drop": func(c *fake.Call) { c.Drop() },
		"half": func(c *fake.Call) {
			c.Write("event: message\ndata: {\"jsonrpc\":")
			c.Drop()
		},
	}
	options := fake.Options{Tools: fake.Tools("drop", "half", "a"), Calls: drop}
	fakes := map[string]*fake.Server{"web": fake.HTTP(t, options), "pipe": fake.Stdio(t, options)}
	options.Modern, options.NoHandshake = true, true
	fakes["fresh"] = fake.HTTP(t, options)
	m := run.Start(t, run.Of(run.HTTP("web", fakes["web"]), run.Stdio("pipe", fakes["pipe"]), run.HTTP("fresh", fakes["fresh"])))
	c := legacy(t, m)
	for server, s := range fakes {
		for name := range drop {
			failed(t, c.Tool(server+"__"+name, "{}").Message, server, "unknown")
			if n := len(s.Calls(name)); n != 1 {
				t.Errorf("%s: %s ran %d times", server, name, n)
			}
		}
		run.Eventually(t, server+" to be used again", func() bool { return c.Tool(server+"__a", `{"q":1}`).Text() == `{"q":1}` })
	}
}

func TestC186NotificationsBeforeTheReply(t *testing.T) {
	t.Parallel()
	talk := func(c *fake.Call) {
		c.Notify("notifications/message", `{"level":"info","data":"1"}`)
		c.Notify("notifications/message", `{"level":"info","data":"2"}`)
		c.Progress(1)
		go c.Ask("ping", "{}")
		c.Text("the reply")
	}
	options := fake.Options{Tools: fake.Tools("talk"), Calls: map[string]fake.Handler{"talk": talk}}
	m := run.Start(t, run.Of(run.Stdio("pipe", fake.Stdio(t, options)), run.HTTP("web", fake.HTTP(t, options))))
	for _, server := range []string{"pipe", "web"} {
		if a := legacy(t, m).Call("tools/call", `{"name":"`+server+`__talk","_meta":{"progressToken":3}}`); a.Text() != "the reply" {
			t.Errorf("%s: got %s%s", server, a.Result, a.Error)
		}
	}
}

// TestC188SessionsThatEndDuringNotifications is worth most with -race, which also goes for the binary then.
func TestC188SessionsThatEndDuringNotifications(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	legacy(t, m).Names()
	stop := make(chan struct{})
	var announcer sync.WaitGroup
	announcer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				s.SetTools(fake.Tools("a", fmt.Sprintf("b%d", i%7))...)
				s.Announce()
			}
		}
	})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range 10 {
				c := client.Dial(t, m.Endpoint(), client.Latest)
				feed := c.Listen()
				c.Names()
				c.Close()
				feed.Leave()
			}
		})
	}
	all.Wait()
	close(stop)
	announcer.Wait()
	if got := legacy(t, m).Names(); len(got) != 2 {
		t.Errorf("names = %v", got)
	}
}

// TestC201SessionsOfTwoClients has a server that counts the calls of each session.
func TestC201SessionsOfTwoClients(t *testing.T) {
	t.Parallel()
	count := func() fake.Handler {
		var mu sync.Mutex
		calls := map[string]int{}
		return func(c *fake.Call) {
			mu.Lock()
			defer mu.Unlock()
			calls[c.Session]++
			c.Text(fmt.Sprint(calls[c.Session]))
		}
	}
	var servers []run.Server
	fakes := map[string]*fake.Server{}
	for _, mode := range []string{"auto", "shared", "per_client"} {
		fakes[mode] = fake.HTTP(t, fake.Options{Tools: fake.Tools("count"), Calls: map[string]fake.Handler{"count": count()}})
		servers = append(servers, run.HTTP(mode, fakes[mode], fields{"session": mode}))
	}
	m := run.Start(t, run.Of(servers...))
	want := map[string][]string{"auto": {"1", "2", "1"}, "per_client": {"1", "2", "1"}, "shared": {"1", "2", "3"}}
	for mode, texts := range want {
		a, b := legacy(t, m), legacy(t, m)
		for i, c := range []*client.HTTP{a, a, b} {
			if got := c.Tool(mode+"__count", "{}").Text(); got != texts[i] {
				t.Errorf("%s: call %d counted %s, want %s", mode, i, got, texts[i])
			}
		}
		if mode == "shared" {
			continue
		}
		known := fakes[mode].Sessions()
		a.Close()
		run.Eventually(t, "the upstream session to end with the client's", func() bool { return fakes[mode].Sessions() == known-1 })
	}
}

// TestPerClientProcesses has a process for each client, which ends with it, and no more than are allowed.
func TestPerClientProcesses(t *testing.T) {
	t.Parallel()
	s := fake.Stdio(t, fake.Options{Tools: fake.Tools("pid"), Calls: map[string]fake.Handler{"pid": func(c *fake.Call) { c.Text(fmt.Sprint(c.Process.Pid)) }}})
	m := run.Start(t, run.Of(run.Stdio("up", s, fields{"session": "per_client"})).With(fields{"limits": fields{"max_processes": 3}}))
	a, b := legacy(t, m), legacy(t, m)
	first, second := a.Tool("up__pid", "{}").Text(), b.Tool("up__pid", "{}").Text()
	if first == second || first == "" {
		t.Errorf("processes %s and %s", first, second)
	}
	if got := a.Tool("up__pid", "{}").Text(); got != first {
		t.Errorf("the second call went to process %s, the first one to %s", got, first)
	}
	legacy(t, m).Tool("up__pid", "{}")
	failed(t, legacy(t, m).Tool("up__pid", "{}").Message, "up", "max_processes")
	if n := len(s.Processes()); n > 4 { // one of them is our own, for the list
		t.Errorf("%d processes", n)
	}
	a.Close()
	for _, p := range s.Processes() {
		if fmt.Sprint(p.Pid) == first {
			p.WaitGone(t, 8*time.Second)
		}
	}
	if got := legacy(t, m).Tool("up__pid", "{}"); got.IsError() {
		t.Errorf("after one has ended: %s", got.Result)
	}
}
