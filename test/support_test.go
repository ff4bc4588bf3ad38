package test

import (
	"net/http"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
)

// The tests of this file look at the support packages alone: clients talk to fake servers directly.

func TestFakeServesEveryVersion(t *testing.T) {
	t.Parallel()
	for _, version := range client.Versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a", "b"), Modern: true, Calls: map[string]fake.Handler{
				"a": func(c *fake.Call) {
					c.Progress(1)
					c.Text("done")
				},
			}})
			c := client.Dial(t, s.URL, version)
			if got := c.Names(); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("names = %v", got)
			}
			if got := c.Tool("b", `{"n":9007199254740993}`).Text(); got != `{"n":9007199254740993}` {
				t.Errorf("echo = %q", got)
			}
			a := c.Call("tools/call", `{"name":"a","arguments":{},"_meta":{"progressToken":"p"}}`)
			if a.Text() != "done" || len(a.Before) != 1 || !a.Stream() {
				t.Errorf("call with progress: %+v", a)
			}
			feed := c.Listen()
			s.Announce()
			feed.Expect("notifications/tools/list_changed")
		})
	}
}

func TestFakeFraming(t *testing.T) {
	t.Parallel()
	for name, framing := range map[string]fake.Framing{
		"json": {}, "sse": {SSE: true}, "crlf": {SSE: true, EOL: "\r\n", Split: true}, "lines": {SSE: true, MultiLine: true}, "ids": {SSE: true, Ids: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Framing: framing})
			c := client.Dial(t, s.URL, client.Latest)
			a := c.Tool("a", `{"x":1,"y":2}`)
			if a.Text() != `{"x":1,"y":2}` || a.Stream() != framing.SSE {
				t.Errorf("got %s, stream %v", a.Raw, a.Stream())
			}
		})
	}
}

func TestFakeEndsSessions(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	c := client.Dial(t, s.URL, client.Latest)
	s.ForgetSessions()
	if got := c.Call("tools/list", "").Status; got != http.StatusNotFound {
		t.Errorf("status of a lost session = %d", got)
	}
}

func TestFakeOverStdio(t *testing.T) {
	t.Parallel()
	s := fake.Stdio(t, fake.Options{Tools: fake.Tools("a"), Modern: true, Framing: fake.Framing{Split: true}})
	for _, version := range []string{client.Latest, client.Modern} {
		cmd := exec.Command(s.Command[0], s.Command[1:]...)
		cmd.Env = append(os.Environ(), "MARK=1")
		c := client.Launch(t, cmd, version)
		if got := c.Names(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("%s: names = %v", version, got)
		}
		if got := c.Tool("a", `{"t":"é😀漢"}`).Text(); got != `{"t":"é😀漢"}` {
			t.Errorf("%s: echo = %q", version, got)
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	p := s.WaitProcesses(t, 2)[0]
	if !slices.Contains(p.Env, "MARK=1") {
		t.Errorf("environment = %v", p.Env)
	}
}
