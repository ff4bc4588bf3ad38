package test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

// TestSoak lets many clients do everything at once while servers restart and change their lists. Nobody may get what belongs to another,
// and nothing may be left. It is worth most with -race.
func TestSoak(t *testing.T) {
	t.Parallel()
	tools := fake.Tools("echo", "work", "slow")
	calls := map[string]fake.Handler{
		"work": func(c *fake.Call) {
			for i := range 3 {
				c.Progress(i)
			}
			fake.Echo(c)
		},
		"slow": func(c *fake.Call) { c.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond); fake.Echo(c) },
	}
	old := fake.HTTP(t, fake.Options{Tools: tools, Calls: calls})
	fresh := fake.HTTP(t, fake.Options{Tools: tools, Calls: calls, Modern: true, NoHandshake: true, Framing: fake.Framing{SSE: true}})
	pipe := fake.Stdio(t, fake.Options{Tools: tools, Calls: calls})
	m := run.Start(t, run.Of(run.HTTP("old", old), run.HTTP("fresh", fresh), run.Stdio("pipe", pipe)))
	legacy(t, m).Names()
	before := m.Files()
	stop := time.Now().Add(4 * time.Second)
	var all sync.WaitGroup
	all.Go(func() { disturb(stop, old, fresh) })
	for i := range 12 {
		all.Go(func() {
			for round := 0; time.Now().Before(stop); round++ {
				oneClient(t, m, i*1000+round, stop)
			}
		})
	}
	all.Wait()
	for _, server := range []string{"old", "fresh", "pipe"} {
		run.Eventually(t, server+" to work", func() bool { return legacy(t, m).Tool(server+"__echo", `{"q":1}`).Text() == `{"q":1}` })
	}
	run.Eventually(t, fmt.Sprintf("%d file descriptors to be closed", m.Files()-before), func() bool { return m.Files() <= before+60 })
}

// disturb changes lists and forgets sessions.
func disturb(stop time.Time, servers ...*fake.Server) {
	for i := 0; time.Now().Before(stop); i++ {
		s := servers[i%len(servers)]
		s.SetTools(fake.Tools("echo", "work", "slow", fmt.Sprintf("extra%d", i%3))...)
		s.Announce()
		if i%5 == 0 {
			servers[0].ForgetSessions()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// oneClient comes, does some random things, and goes.
func oneClient(t *testing.T, m *run.Mainstem, mark int, stop time.Time) {
	c := client.Dial(t, m.Endpoint(), client.Versions()[rand.IntN(5)])
	var feed *client.Pending
	if rand.IntN(2) == 0 {
		feed = c.Listen()
	}
	for i := 0; i < 10 && time.Now().Before(stop); i++ {
		server := []string{"old", "fresh", "pipe"}[rand.IntN(3)]
		want := fmt.Sprintf(`{"mark":"%d-%d"}`, mark, i)
		switch rand.IntN(5) {
		case 0:
			c.Must("tools/list", "")
		case 1:
			p := c.Start("tools/call", client.CallParams(server+"__slow", want))
			c.Notify("notifications/cancelled", `{"requestId":`+p.ID+`}`)
			p.Leave()
		case 2:
			a := c.Call("tools/call", `{"name":"`+server+`__work","arguments":`+want+`,"_meta":{"progressToken":1}}`)
			echoed(t, a, want)
		default:
			echoed(t, c.Tool(server+"__echo", want), want)
		}
	}
	if feed != nil && rand.IntN(2) == 0 {
		feed.Leave()
	}
	if c.Session != "" {
		c.Close()
	}
	if feed != nil {
		feed.Leave()
	}
	c.Disconnect()
}

// echoed checks that an answer is the caller's own; an error that says so is none of another's.
func echoed(t *testing.T, a client.Answer, want string) {
	t.Helper()
	if a.Text() != want && !a.IsError() {
		t.Errorf("got %s%s (status %d, %v), want %s", a.Result, a.Error, a.Status, a.Err, want)
	}
}
