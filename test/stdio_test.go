package test

import (
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

func TestC159NoiseOnStdout(t *testing.T) {
	t.Parallel()
	noise := "Starting server v1.2\n\n[1,2]\n\"x\"\n{\"no\":\"message\"}\n\x1b[32mgreen\x1b[0m\n"
	s, m := behindStdio(t, fake.Options{
		Tools:   fake.Tools("a"),
		Started: func(p *fake.Process) { p.Stdout(noise) },
		Calls: map[string]fake.Handler{"a": func(c *fake.Call) {
			c.Write("working…\n")
			fake.Echo(c)
		}},
	})
	if got := legacy(t, m).Tool("up__a", `{"q":1}`).Text(); got != `{"q":1}` {
		t.Errorf("got %q", got)
	}
	if n := len(s.Processes()); n != 1 {
		t.Errorf("%d processes", n)
	}
}

func TestC161LongLine(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789abcdef", 3<<16)
	_, m := behindStdio(t, fake.Options{Tools: fake.Tools("a"), Calls: map[string]fake.Handler{"a": func(c *fake.Call) { c.Text(text) }}})
	if got := legacy(t, m).Tool("up__a", "{}").Text(); got != text {
		t.Errorf("got %d bytes, want %d", len(got), len(text))
	}
}

func TestC163StderrFlood(t *testing.T) {
	t.Parallel()
	_, m := behindStdio(t, fake.Options{Tools: fake.Tools("a", "die"), Calls: map[string]fake.Handler{
		"a": func(c *fake.Call) {
			c.Process.Stderr(strings.Repeat("e", 300<<10))
			fake.Echo(c)
		},
		"die": func(c *fake.Call) {
			c.Process.Stderr("\nlast words\n")
			c.Drop()
		},
	}})
	c := legacy(t, m)
	for range 3 {
		if got := c.Tool("up__a", "{}").Text(); got != "{}" {
			t.Errorf("got %q", got)
		}
	}
	c.Tool("up__die", "{}")
	line := m.WaitLog("last words")
	if !strings.Contains(line, "up") {
		t.Errorf("the line does not name the server: %s", line)
	}
	for line := range strings.Lines(m.Log()) {
		if len(line) > 8<<10 {
			t.Errorf("a line of the log has %d bytes", len(line))
		}
	}
}

// TestC164NothingIsLeft has a shell around the server, a process that the server started, and neither of them willing to go.
func TestC164NothingIsLeft(t *testing.T) {
	t.Parallel()
	s := fake.Stdio(t, fake.Options{Tools: fake.Tools("a"), Started: func(p *fake.Process) {
		if p.Role == "" {
			p.Stubborn()
			p.Spawn()
		}
	}})
	m := run.Start(t, run.Of(run.Server{Name: "up", Fields: fields{"command": strings.Join(s.Command, " ") + "; true"}}))
	if got := legacy(t, m).Tool("up__a", "{}").Text(); got != "{}" {
		t.Errorf("got %q", got)
	}
	all := s.WaitProcesses(t, 2)
	start := time.Now()
	if code := m.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	quick(t, "stopping", start, 9*time.Second)
	for _, p := range all {
		p.WaitGone(t, soon)
	}
	if left := m.Descendants(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestC164KilledMainstem ends Mainstem in the way that leaves it no time.
func TestC164KilledMainstem(t *testing.T) {
	t.Parallel()
	s, m := behindStdio(t, fake.Options{Tools: fake.Tools("a"), Started: func(p *fake.Process) {
		if p.Role == "" {
			p.Spawn()
		}
	}})
	legacy(t, m).Names()
	all := s.WaitProcesses(t, 2)
	m.Kill()
	for _, p := range all {
		p.WaitGone(t, 8*time.Second)
	}
}

func TestC166StubbornChild(t *testing.T) {
	t.Parallel()
	s, m := behindStdio(t, fake.Options{Tools: fake.Tools("a"), Started: func(p *fake.Process) { p.Stubborn() }})
	if got := legacy(t, m).Tool("up__a", "{}").Text(); got != "{}" {
		t.Errorf("got %q", got)
	}
	start := time.Now()
	if code := m.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	quick(t, "stopping", start, 9*time.Second)
	p := s.Processes()[0]
	p.WaitGone(t, soon)
	eof, term := s.Seen("EOF"), s.Seen("SIGTERM")
	if len(eof) != 1 || len(term) == 0 || term[0].At.Before(eof[0].At) {
		t.Errorf("the child saw the end of its input %d times and SIGTERM %d times", len(eof), len(term))
	}
}

func TestC168KilledChild(t *testing.T) {
	t.Parallel()
	s, other := fake.Stdio(t, fake.Options{Tools: fake.Tools("a")}), fake.Stdio(t, fake.Options{Tools: fake.Tools("a")})
	m := run.Start(t, run.Of(run.Stdio("up", s), run.Stdio("other", other)))
	c := legacy(t, m)
	c.Tool("up__a", "{}")
	p := s.Processes()[0]
	p.Kill()
	p.WaitGone(t, soon)
	start := time.Now()
	run.Eventually(t, "the server to be started again", func() bool { return c.Tool("up__a", `{"q":1}`).Text() == `{"q":1}` })
	quick(t, "the restart", start, 2*soon)
	if n := len(s.Calls("a")); n != 2 {
		t.Errorf("%d calls arrived, want 2", n)
	}
	if n := len(other.Processes()); n != 1 {
		t.Errorf("the other server was started %d times", n)
	}
}

func TestC169CrashLoop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	starts, cure := filepath.Join(dir, "starts"), filepath.Join(dir, "cure")
	s := fake.Stdio(t, fake.Options{Tools: fake.Tools("a")})
	script := fmt.Sprintf(`echo x >> %s; test -e %s || exit 1; exec %s`, starts, cure, strings.Join(s.Command, " "))
	m := run.Start(t, run.Of(
		run.Server{Name: "loop", Fields: fields{"command": "sh", "args": []string{"-c", script}}},
		run.Server{Name: "false", Fields: fields{"command": "false"}},
	))
	if got := m.WaitStatus("false", "failed"); got.Error == "" {
		t.Errorf("status = %+v", got)
	}
	run.Eventually(t, "the time of the next try to be shown", func() bool { return m.Status("false").NextTry != "" })
	m.WaitStatus("loop", "failed")
	time.Sleep(2 * time.Second) // nothing announces that it is not started
	tries, _ := os.ReadFile(starts)
	if n := strings.Count(string(tries), "x"); n > 6 {
		t.Errorf("started %d times in 2 s", n)
	}
	if err := os.WriteFile(cure, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.WaitStatus("loop", "healthy")
	awaitNames(t, legacy(t, m), "loop__a")
}

func TestC171ChildDiesDuringCall(t *testing.T) {
	t.Parallel()
	s, m := behindStdio(t, fake.Options{Tools: fake.Tools("die"), Calls: map[string]fake.Handler{"die": func(c *fake.Call) {
		c.Process.Stderr("out of memory\n")
		c.Drop()
	}}})
	c := legacy(t, m)
	start := time.Now()
	failed(t, c.Tool("up__die", "{}").Message, "up")
	quick(t, "the error", start, soon)
	m.WaitLog("out of memory")
	if n := len(s.Calls("die")); n != 1 {
		t.Errorf("called %d times", n)
	}
}

func TestC174MissingCommand(t *testing.T) {
	t.Parallel()
	good := fake.Stdio(t, fake.Options{Tools: fake.Tools("a")})
	m := run.Start(t, run.Of(run.Server{Name: "lost", Fields: fields{"command": "nosuchcmd", "args": []string{"-x"}}}, run.Stdio("good", good)))
	if got := legacy(t, m).Names(); !slices.Equal(got, []string{"good__a"}) {
		t.Errorf("names = %v", got)
	}
	got := m.WaitStatus("lost", "failed")
	for _, want := range []string{"nosuchcmd", "not found", "PATH", os.Getenv("PATH")} {
		if !strings.Contains(got.Error, want) {
			t.Errorf("the error lacks %q: %s", want, got.Error)
		}
	}
	m.WaitLog("nosuchcmd", "not found")
}

// TestFullPipe has a child that stops reading: those who wait for it have their timeout, and nobody else notices.
func TestFullPipe(t *testing.T) {
	t.Parallel()
	deaf := fake.Stdio(t, fake.Options{Tools: fake.Tools("a", "stop"), Calls: map[string]fake.Handler{"stop": func(c *fake.Call) {
		c.Process.Deafen()
		fake.Echo(c)
	}}})
	m := run.Start(t, run.Of(
		run.Stdio("deaf", deaf, fields{"timeout": "2s"}),
		run.Stdio("other", fake.Stdio(t, fake.Options{Tools: fake.Tools("a")})),
	))
	c := legacy(t, m)
	c.Tool("deaf__stop", "{}")
	c.Tool("deaf__a", "{}") // the last one that it reads
	big := `{"q":"` + strings.Repeat("x", 1<<20) + `"}`
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			start := time.Now()
			failed(t, c.Tool("deaf__a", big).Message, "deaf")
			quick(t, "a call on a full pipe", start, 2*time.Second+soon)
		})
	}
	start := time.Now()
	if got := c.Tool("other__a", `{"q":1}`).Text(); got != `{"q":1}` {
		t.Errorf("the other server: got %q", got)
	}
	quick(t, "a call to the other server", start, soon)
	all.Wait()
}

// TestC176OurStdoutIsClean runs `mainstem stdio` with everything that could make it talk.
func TestC176OurStdoutIsClean(t *testing.T) {
	t.Parallel()
	noisy := fake.Stdio(t, fake.Options{Tools: fake.Tools("a", "lines"), Started: func(p *fake.Process) {
		p.Stdout("banner\n")
		p.Stderr("banner\n")
	}, Calls: map[string]fake.Handler{"lines": func(c *fake.Call) { c.Text("a\nb\r\u2028c") }}})
	config := run.Of(
		run.Server{Name: "lost", Fields: fields{"command": "nosuchcmd"}},
		run.Server{Name: "down", Fields: fields{"url": "http://127.0.0.1:1/mcp"}},
		run.Stdio("up", noisy),
	).With(fields{"log": fields{"level": "trace", "format": "console"}})
	for _, version := range []string{client.Latest, client.Modern} {
		c := client.Launch(t, run.Prepare(t, config, nil, "stdio"), version)
		if got := c.Names(); !slices.Equal(got, []string{"up__a", "up__lines"}) {
			t.Errorf("%s: names = %v", version, got)
		}
		if got := c.Tool("up__lines", "{}").Text(); got != "a\nb\r\u2028c" {
			t.Errorf("%s: got %q", version, got)
		}
		for _, junk := range []string{"\n", "not json\n", "[]\n", `{"jsonrpc":"2.0","method":"notifications/zzz"}` + "\n", `{"jsonrpc":"2.0","method":"notifications/zzz","params":[1]}` + "\n"} {
			c.Send(junk)
		}
		if got := c.Tool("up__a", `{"q":1}`).Text(); got != `{"q":1}` {
			t.Errorf("%s: after junk: got %q", version, got)
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		for _, line := range c.Lines() {
			if m := client.Parse(t, []byte(line)); !strings.Contains(line, `"jsonrpc":"2.0"`) || m.ID == nil && m.Method == "" {
				t.Errorf("%s: stdout has %q", version, line)
			}
		}
	}
	for _, p := range noisy.Processes() {
		p.WaitGone(t, soon)
	}
}

// TestStdioFrontIsConcurrent has a slow call, a ping and a cancellation on our own stdin.
func TestStdioFrontIsConcurrent(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	cancelled := make(chan struct{}, 1)
	s := fake.Stdio(t, fake.Options{Tools: fake.Tools("slow", "stop", "a"), Calls: map[string]fake.Handler{
		"slow": held(g),
		"stop": func(c *fake.Call) {
			c.Hold(g.C)
			cancelled <- struct{}{}
		},
	}})
	c := client.Launch(t, run.Prepare(t, run.Of(run.Stdio("up", s)), nil, "stdio"), client.Latest)
	c.Names()
	slow := c.Start("tools/call", client.CallParams("up__slow", "{}"))
	start := time.Now()
	same(t, "ping", c.Call("ping", "").Result, "{}")
	if got := c.Tool("up__a", `{"q":1}`).Text(); got != `{"q":1}` {
		t.Errorf("got %q", got)
	}
	quick(t, "a ping and a quick call", start, soon)
	c.Send(client.Request(`"x"`, "tools/call", client.CallParams("up__stop", "{}")) + "\n")
	s.Wait(t, "tools/call", 3)
	c.Notify("notifications/cancelled", `{"requestId":"x"}`)
	note := s.Wait(t, "notifications/cancelled", 1)[0]
	if got, want := string(note.Param("requestId")), string(s.Calls("stop")[0].ID); got != want {
		t.Errorf("requestId %s, want %s", got, want)
	}
	<-cancelled
	g.open()
	if got := c.Await(slow).Text(); got != "released" {
		t.Errorf("the slow call got %q", got)
	}
}

// TestStdioListChanged has the notification come on our stdout.
func TestStdioListChanged(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	c := client.Launch(t, run.Prepare(t, run.Of(run.HTTP("up", s)), nil, "stdio"), client.Latest)
	c.Names()
	run.Eventually(t, "Mainstem to listen", func() bool { return s.Feeds() > 0 })
	s.SetTools(fake.Tools("b")...)
	s.Announce()
	c.Expect("notifications/tools/list_changed")
	awaitNames(t, c, "up__b")
}

// TestStdioEndOfInput has requests that are piped in, and a call that is running when the input ends.
func TestStdioEndOfInput(t *testing.T) {
	t.Parallel()
	hello := client.Request("1", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`)
	s := fake.Stdio(t, fake.Options{Tools: fake.Tools("a")})
	piped := run.Prepare(t, run.Of(run.Stdio("up", s)), nil, "stdio")
	piped.Stdin = strings.NewReader(hello + "\n" + client.Request("", "notifications/initialized", "") + "\n" +
		client.Request("2", "tools/list", "") + "\n" + client.Request("3", "tools/call", client.CallParams("up__a", `{"q":1}`)) + "\n")
	out, err := piped.Output()
	if err != nil || strings.Count(string(out), `"result"`) != 3 || !strings.Contains(string(out), `{\"q\":1}`) {
		t.Errorf("%v: %s", err, out)
	}
	g := newGate(t)
	slow := fake.Stdio(t, fake.Options{Tools: fake.Tools("slow"), Calls: map[string]fake.Handler{"slow": held(g)}})
	c := client.Launch(t, run.Prepare(t, run.Of(run.Stdio("up", slow)), nil, "stdio"), client.Latest)
	c.Names()
	c.Start("tools/call", client.CallParams("up__slow", "{}"))
	slow.Wait(t, "tools/call", 1)
	start := time.Now()
	if err := c.Close(); err != nil {
		t.Errorf("exit: %v", err)
	}
	quick(t, "the end", start, 10*time.Second+soon)
	slow.Processes()[0].WaitGone(t, 7*time.Second)
}
