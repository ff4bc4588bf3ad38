package test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

func TestC143ProgressKeepsACallAlive(t *testing.T) {
	t.Parallel()
	work := func(c *fake.Call) {
		for i := range 5 {
			if !c.Sleep(900 * time.Millisecond) {
				return
			}
			c.Progress(i)
		}
		c.Text("done")
	}
	options := fake.Options{Tools: fake.Tools("work"), Calls: map[string]fake.Handler{"work": work}}
	m := run.Start(t, run.Of(
		run.HTTP("web", fake.HTTP(t, options), fields{"timeout": "3s"}),
		run.Stdio("pipe", fake.Stdio(t, options), fields{"timeout": "3s"}),
	))
	for _, server := range []string{"web", "pipe"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			if got := legacy(t, m).Call("tools/call", `{"name":"`+server+`__work","_meta":{"progressToken":1}}`); got.Text() != "done" {
				t.Errorf("got %s%s", got.Result, got.Error)
			}
		})
	}
}

func TestMaxCallDuration(t *testing.T) {
	t.Parallel()
	forever := func(c *fake.Call) {
		for i := 0; c.Sleep(200 * time.Millisecond); i++ {
			c.Progress(i)
		}
	}
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("work"), Calls: map[string]fake.Handler{"work": forever}})
	m := run.Start(t, run.Of(run.HTTP("up", s)).With(fields{"limits": fields{"max_call_duration": "2s"}}))
	start := time.Now()
	failed(t, legacy(t, m).Call("tools/call", `{"name":"up__work","_meta":{"progressToken":1}}`).Message, "up")
	if d := time.Since(start); d < 1900*time.Millisecond || d > 5*time.Second {
		t.Errorf("the call ended after %v, want 2 s", d)
	}
	s.Wait(t, "notifications/cancelled", 1)
}

// TestSlowResponseBecomesAStream looks at the head of an answer that takes longer than a client waits for headers.
func TestSlowResponseBecomesAStream(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	_, m := behind(t, fake.Options{Tools: fake.Tools("slow", "fast"), Calls: map[string]fake.Handler{"slow": held(g)}})
	for _, c := range []*client.HTTP{legacy(t, m), modern(t, m)} {
		if fast := c.Tool("up__fast", "{}"); fast.Stream() || fast.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: a quick answer is %s", c.Version, fast.Header.Get("Content-Type"))
		}
	}
	c := legacy(t, m)
	start := time.Now()
	p := c.Start("tools/call", client.CallParams("up__slow", "{}"))
	quick(t, "the head", start, 2*time.Second+soon)
	if got := p.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		t.Errorf("Content-Type = %q", got)
	}
	if got := p.Header().Get("X-Accel-Buffering"); got != "no" {
		t.Errorf("X-Accel-Buffering = %q", got)
	}
	g.open()
	a := p.Wait()
	if a.Text() != "released" || len(a.Events) < 2 || a.Events[0].ID == "" || a.Events[0].Data != "" {
		t.Errorf("got %s, events %+v: want an empty event with an id first", a.Raw, a.Events)
	}
}

// TestResume has a client that loses its connection during a call and comes back for the result.
func TestResume(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s, m := behind(t, fake.Options{Tools: fake.Tools("slow"), Calls: map[string]fake.Handler{"slow": held(g)}})
	c := legacy(t, m)
	p := c.StartID(`"lost"`, "tools/call", client.CallParams("up__slow", "{}"))
	first, err := p.Event()
	if err != nil || first.ID == "" {
		t.Fatalf("the first event is %+v, %v", first, err)
	}
	p.Leave()
	g.open()
	h := http.Header{"Mcp-Session-Id": {c.Session}, "Mcp-Protocol-Version": {c.Version}, "Last-Event-Id": {first.ID}}
	replay := c.Do(http.MethodGet, nil, h)
	m2, err := replay.Next()
	if err != nil || string(m2.ID) != `"lost"` || m2.Text() != "released" {
		t.Errorf("replayed %s, %v", m2.Raw, err)
	}
	if n := len(s.Seen("notifications/cancelled")); n > 0 {
		t.Error("leaving was taken for a cancellation")
	}
	// An id of another session gets nothing of it.
	other := legacy(t, m)
	h.Set("Mcp-Session-Id", other.Session)
	stolen := other.Do(http.MethodGet, nil, h)
	if got, err := stolen.EventWithin(500 * time.Millisecond); err == nil && strings.Contains(got.Data, "released") {
		t.Errorf("another session received %+v", got)
	}
}

// What a server may answer is kept for a client that comes back, however much that is.
func TestResumeOfALargeAnswer(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	large := func(c *fake.Call) {
		c.Hold(g.C)
		c.Text(strings.Repeat("x", 6<<20))
	}
	options := fake.Options{Tools: fake.Tools("slow"), Calls: map[string]fake.Handler{"slow": large}}
	m := run.Start(t, run.Of(run.HTTP("up", fake.HTTP(t, options), fields{"max_response_bytes": 8 << 20})))
	c := legacy(t, m)
	p := c.StartID(`"lost"`, "tools/call", client.CallParams("up__slow", "{}"))
	first, err := p.Event()
	if err != nil {
		t.Fatal(err)
	}
	p.Leave()
	time.Sleep(300 * time.Millisecond) // until it is seen that nobody reads
	g.open()
	m.WaitLog(`"outcome":"ok"`)
	time.Sleep(100 * time.Millisecond) // the answer is kept right afterwards
	h := http.Header{"Mcp-Session-Id": {c.Session}, "Mcp-Protocol-Version": {c.Version}, "Last-Event-Id": {first.ID}}
	if answer, err := c.Do(http.MethodGet, nil, h).Next(); err != nil || len(answer.Text()) != 6<<20 {
		t.Errorf("replayed %d bytes of text, %s, %v", len(answer.Text()), answer.Error, err)
	}
}

func TestC148SilentStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("comments come every 15 s")
	}
	t.Parallel()
	g := newGate(t)
	_, m := behind(t, fake.Options{Tools: fake.Tools("slow"), Calls: map[string]fake.Handler{"slow": held(g)}}, fields{"timeout": "60s"})
	streams := map[string]*client.Pending{}
	streams["GET"] = legacy(t, m).Listen()
	streams["listen"] = client.Dial(t, m.Endpoint(), client.Modern).Listen()
	streams["call"] = legacy(t, m).Start("tools/call", client.CallParams("up__slow", "{}"))
	for name, p := range streams {
		if got := p.Header().Get("X-Accel-Buffering"); got != "no" {
			t.Errorf("%s: X-Accel-Buffering = %q", name, got)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for comments := 0; comments < 2; {
				e, err := p.EventWithin(20 * time.Second)
				if err != nil {
					t.Fatalf("after %d comments: %v", comments, err)
				}
				if e.Comment != "" {
					comments++
				}
			}
		})
	}
}

// TestEachMessageOnOneStream has two GET streams of one session, and one of another.
func TestEachMessageOnOneStream(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := legacy(t, m)
	c.Names()
	run.Eventually(t, "Mainstem to listen", func() bool { return s.Feeds() > 0 })
	streams := []*client.Pending{c.Listen(), c.Listen()}
	came := make(chan int, 8)
	for i, p := range streams {
		go func() {
			for {
				n, err := p.Next()
				if err != nil {
					return
				}
				if n.Method == "notifications/tools/list_changed" {
					came <- i
				}
			}
		}()
	}
	s.SetTools(fake.Tools("b")...)
	s.Announce()
	var first int
	select {
	case first = <-came:
	case <-time.After(10 * time.Second):
		t.Fatal("no notification came")
	}
	select {
	case second := <-came:
		t.Errorf("one change was announced twice to a session: on its streams %d and %d", first, second)
	case <-time.After(700 * time.Millisecond):
	}
	if got := c.Names(); !slices.Equal(got, []string{"up__b"}) {
		t.Errorf("names = %v", got)
	}
}

// TestLogMessagesOfACall go to the client whose call caused them.
func TestLogMessagesOfACall(t *testing.T) {
	t.Parallel()
	talk := func(c *fake.Call) {
		c.Notify("notifications/message", `{"level":"error","data":"for you"}`)
		c.Text("done")
	}
	_, m := behind(t, fake.Options{Tools: fake.Tools("talk"), Capabilities: `{"tools":{},"logging":{}}`, Calls: map[string]fake.Handler{"talk": talk}})
	quiet := modern(t, m).Tool("up__talk", "{}")
	if len(quiet.Before) > 0 {
		t.Errorf("2026-07-28 without a level received %s", quiet.Before[0].Raw)
	}
	a := modern(t, m).Call("tools/call", `{"name":"up__talk","_meta":{"io.modelcontextprotocol/logLevel":"error"}}`)
	if len(a.Before) != 1 || a.Before[0].Method != "notifications/message" {
		t.Errorf("with a level: %+v", a.Before)
	}
}
