package test

import (
	"bytes"
	"encoding/json"
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

// The limits of behaviour.json, one test each or as a row of one.

// sized answers with a message of exactly so many bytes.
func sized(bytes int) fake.Handler {
	return func(c *fake.Call) {
		frame := len(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":""}]}}`, c.ID))
		c.RawResult(`{"content":[{"type":"text","text":"` + strings.Repeat("x", bytes-frame) + `"}]}`)
	}
}

// TestSizes covers M001, M002, M003 and M005: a message of the default limit and one of a byte more, in every framing.
func TestSizes(t *testing.T) {
	t.Parallel()
	const limit = 5242880
	options := fake.Options{Tools: fake.Tools("fits", "over", "small"), Calls: map[string]fake.Handler{"fits": sized(limit), "over": sized(limit + 1)}}
	framed := func(f fake.Framing) fake.Options {
		o := options
		o.Framing = f
		return o
	}
	m := run.Start(t, run.Of(
		run.HTTP("json", fake.HTTP(t, options)),
		run.HTTP("events", fake.HTTP(t, framed(fake.Framing{SSE: true}))),
		run.HTTP("gzip", fake.HTTP(t, framed(fake.Framing{Gzip: true}))),
		run.Stdio("pipe", fake.Stdio(t, options)),
	))
	c := legacy(t, m)
	for _, server := range []string{"json", "events", "gzip", "pipe"} {
		if a := c.Tool(server+"__fits", "{}"); a.IsError() || len(a.Text()) < limit-200 {
			t.Errorf("M001 %s: got %d bytes, %.200s", server, len(a.Raw), a.Text())
		}
		small := make(chan string, 1)
		go func() { small <- c.Tool(server+"__small", `{"q":1}`).Text() }()
		failed(t, c.Tool(server+"__over", "{}").Message, server, "5242880")
		if got := <-small; got != `{"q":1}` {
			t.Errorf("M002 %s: a call beside it got %q", server, got)
		}
		if got := c.Tool(server+"__small", `{"q":2}`).Text(); got != `{"q":2}` {
			t.Errorf("M002 %s: the next call got %q", server, got)
		}
	}
}

// TestReadingStopsAtTheLimit has an answer without an end.
func TestReadingStopsAtTheLimit(t *testing.T) {
	t.Parallel()
	wrote := make(chan int, 1)
	_, m := behind(t, fake.Options{Tools: fake.Tools("endless"), Calls: map[string]fake.Handler{"endless": func(c *fake.Call) {
		c.W.Header().Set("Content-Type", "application/json")
		block, n := bytes.Repeat([]byte("x"), 64<<10), 0
		for n < 256<<20 {
			k, err := c.W.Write(block)
			n += k
			if err != nil {
				break
			}
		}
		wrote <- n
	}}}, fields{"max_response_bytes": 1 << 20})
	failed(t, legacy(t, m).Tool("up__endless", "{}").Message, "up", "1048576")
	if n := <-wrote; n > 32<<20 {
		t.Errorf("%d MiB were read", n>>20)
	}
}

// TestM003Gzip has a small body that inflates past the limit.
func TestM003Gzip(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("bomb"), Framing: fake.Framing{Gzip: true}, Calls: map[string]fake.Handler{"bomb": sized(24 << 20)}})
	c := legacy(t, m)
	before := m.Memory()
	failed(t, c.Tool("up__bomb", "{}").Message, "up", "5242880")
	if grown := m.Memory() - before; grown > 48<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	if !strings.Contains(s.Calls("bomb")[0].Header.Get("Accept-Encoding"), "gzip") {
		t.Log("gzip was not asked for, so the body came as it is")
	}
}

func TestM004ManyMessages(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("talk"), Calls: map[string]fake.Handler{"talk": func(c *fake.Call) {
		for range 30 {
			c.Notify("notifications/message", `{"level":"debug","data":"`+strings.Repeat("x", 60<<10)+`"}`)
		}
		c.Text("done")
	}}}, fields{"max_response_bytes": 128 << 10})
	if got := legacy(t, m).Tool("up__talk", "{}"); got.Text() != "done" {
		t.Errorf("got %.300s%s", got.Result, got.Error)
	}
}

// TestTimeouts covers M006 and M008: no word at all, only headers, and bytes that never make a message.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	trickle := func(c *fake.Call) {
		for c.Sleep(50 * time.Millisecond) {
			c.Write("x")
		}
	}
	calls := map[string]fake.Handler{
		"silent": func(c *fake.Call) { <-c.Context().Done() },
		"slow":   func(c *fake.Call) { c.Write("data: {"); trickle(c) },
		"body": func(c *fake.Call) {
			if c.W != nil {
				c.W.Header().Set("Content-Type", "application/json")
			}
			trickle(c)
		},
	}
	options := fake.Options{Tools: fake.Tools("silent", "slow", "body"), Calls: calls}
	modernOnly := options
	modernOnly.Modern, modernOnly.NoHandshake = true, true
	fakes := map[string]*fake.Server{"web": fake.HTTP(t, options), "fresh": fake.HTTP(t, modernOnly), "pipe": fake.Stdio(t, options)}
	var servers []run.Server
	for name, s := range fakes {
		if name == "pipe" {
			servers = append(servers, run.Stdio(name, s, fields{"timeout": "1s"}))
			continue
		}
		servers = append(servers, run.HTTP(name, s, fields{"timeout": "1s"}))
	}
	m := run.Start(t, run.Of(servers...))
	legacy(t, m).Names()
	for server, s := range fakes {
		for name := range calls {
			if server == "pipe" && name != "silent" {
				continue // bytes on a pipe belong to no call
			}
			t.Run(server+" "+name, func(t *testing.T) {
				t.Parallel()
				start := time.Now()
				failed(t, legacy(t, m).Tool(server+"__"+name, "{}").Message, server, "timeout")
				if d := time.Since(start); d < 900*time.Millisecond || d > 1*time.Second+soon {
					t.Errorf("it took %v, want 1 s", d)
				}
				if server != "fresh" { // there the stream is closed
					run.Eventually(t, "the call to be cancelled upstream", func() bool {
						id := string(s.Calls(name)[0].ID)
						return slices.ContainsFunc(s.Seen("notifications/cancelled"), func(r fake.Received) bool { return string(r.Param("requestId")) == id })
					})
				}
			})
		}
	}
}

// TestM009SessionLostByAll has ten calls in flight when the server forgets its sessions.
func TestM009SessionLostByAll(t *testing.T) {
	t.Parallel()
	const n = 10
	var once sync.Once
	var arrived sync.WaitGroup
	arrived.Add(n)
	lost := make(chan struct{})
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := legacy(t, m)
	c.Tool("up__a", "{}")
	session := s.Calls("a")[0].Session
	s.SetIntercept(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Method != http.MethodPost || r.Header.Get("Mcp-Session-Id") != session || !bytes.Contains(body, []byte("tools/call")) {
			return false
		}
		arrived.Done()
		go once.Do(func() { arrived.Wait(); close(lost) })
		<-lost
		http.Error(w, "session not found", http.StatusNotFound)
		return true
	})
	hellos := len(s.Seen("initialize"))
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			want := fmt.Sprintf(`{"n":%d}`, i)
			if got := c.Tool("up__a", want).Text(); got != want {
				t.Errorf("call %d got %q", i, got)
			}
		})
	}
	all.Wait()
	if got := len(s.Seen("initialize")) - hellos; got != 1 {
		t.Errorf("%d new handshakes, want 1", got)
	}
	if got := len(s.Calls("a")); got != 1+2*n {
		t.Errorf("%d calls arrived, want %d", got, 1+2*n)
	}
}

func TestM010SessionLostAgain(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a"), Calls: map[string]fake.Handler{"a": func(c *fake.Call) {
		http.Error(c.W, "session not found", http.StatusNotFound)
	}}})
	failed(t, legacy(t, m).Tool("up__a", "{}").Message, "up")
	if n := len(s.Calls("a")); n > 2 {
		t.Errorf("%d calls", n)
	}
}

func TestM011ConnectionRefused(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := legacy(t, m)
	c.Tool("up__a", "{}")
	s.Shut()
	failed(t, c.Tool("up__a", "{}").Message, "up")
	s.Reopen(t)
	run.Eventually(t, "the server to be used again", func() bool { return c.Tool("up__a", `{"q":1}`).Text() == `{"q":1}` })
}

// TestM013ServerErrors also covers M012 for a plain answer; for a lost connection see C184.
func TestM013ServerErrors(t *testing.T) {
	t.Parallel()
	calls := map[string]fake.Handler{}
	for _, status := range []int{500, 502, 503} {
		calls[fmt.Sprint("s", status)] = func(c *fake.Call) { http.Error(c.W, "oops", status) }
	}
	s, m := behind(t, fake.Options{Tools: fake.Tools("s500", "s502", "s503"), Calls: calls})
	c := legacy(t, m)
	for name := range calls {
		failed(t, c.Tool("up__"+name, "{}").Message, "up", "unknown", name[1:])
		if n := len(s.Calls(name)); n != 1 {
			t.Errorf("%s: %d calls", name, n)
		}
	}
}

// TestM014RedirectOfACall has a server that sends away only the calls; for the others see C195.
func TestM014RedirectOfACall(t *testing.T) {
	t.Parallel()
	other := fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Stateless: true})
	_, m := behind(t, fake.Options{Tools: fake.Tools("a"), Calls: map[string]fake.Handler{"a": func(c *fake.Call) {
		c.W.Header().Set("Location", other.URL)
		c.W.WriteHeader(http.StatusTemporaryRedirect)
	}}}, fields{"headers": fields{"X-Key": "k"}})
	failed(t, legacy(t, m).Tool("up__a", "{}").Message, "up", other.Host())
	if seen := other.Seen(); len(seen) > 0 {
		t.Errorf("the other origin received %s with %v", seen[0].Method, seen[0].Header)
	}
}

func TestM015FreshListIsServed(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	for range 5 {
		for _, c := range []*client.HTTP{legacy(t, m), modern(t, m)} {
			c.Names()
		}
	}
	if n := len(s.Seen("tools/list")); n != 1 {
		t.Errorf("the list was read %d times", n)
	}
}

func TestM016OldListIsRefreshed(t *testing.T) {
	if testing.Short() {
		t.Skip("the shortest cache_ttl is a minute")
	}
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")}, fields{"cache_ttl": "1m"})
	c := legacy(t, m)
	c.Names()
	s.SetTools(fake.Tools("b")...)
	time.Sleep(62 * time.Second) // asking might be a reason to refresh
	start := time.Now()
	c.Names()
	quick(t, "an old list", start, soon)
	s.Wait(t, "tools/list", 2)
	run.Eventually(t, "the new list", func() bool { return slices.Equal(c.Names(), []string{"up__b"}) })
	if n := len(s.Seen("tools/list")); n != 2 {
		t.Errorf("the list was read %d times", n)
	}
}

func TestM017RefreshFails(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := legacy(t, m)
	c.Names()
	run.Eventually(t, "Mainstem to listen", func() bool { return s.Feeds() > 0 })
	s.SetIntercept(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if !bytes.Contains(body, []byte("tools/list")) {
			return false
		}
		http.Error(w, "no list today", http.StatusInternalServerError)
		return true
	})
	s.Announce()
	if got := m.WaitStatus("up", "degraded"); !strings.Contains(got.Error, "500") || got.Tools != 1 {
		t.Errorf("status = %+v", got)
	}
	if got := c.Names(); !slices.Equal(got, []string{"up__a"}) {
		t.Errorf("names = %v", got)
	}
}

// TestM018CheckRefreshes also looks at what a check says, and M020: two checks at once ask once.
func TestM018CheckRefreshes(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := legacy(t, m)
	c.Names()
	s.SetTools(fake.Tools("b", "c")...)
	code, body := m.Post("/api/v1/servers/up/check", "")
	checked := oneCheck(t, body)
	if code != 200 || !checked.OK || checked.ProtocolVersion != client.Latest || checked.ToolCount != 2 || !slices.Equal(checked.ToolNames, []string{"b", "c"}) {
		t.Errorf("check: %d %s", code, body)
	}
	if got := c.Names(); !slices.Equal(got, []string{"up__b", "up__c"}) {
		t.Errorf("names = %v", got)
	}
	before := len(s.Seen("tools/list"))
	s.SetIntercept(func(_ http.ResponseWriter, _ *http.Request, body []byte) bool {
		if bytes.Contains(body, []byte("tools/list")) {
			<-g.C
		}
		return false
	})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { m.Post("/api/v1/servers/up/check", "") })
	}
	s.Wait(t, "tools/list", before+1)
	time.Sleep(300 * time.Millisecond) // a second request would come now
	g.open()
	all.Wait()
	if n := len(s.Seen("tools/list")) - before; n != 1 {
		t.Errorf("two checks at once asked %d times", n)
	}
}

// A check is what the API says of a tested connection.
type check struct {
	Server          string
	OK              bool
	ProtocolVersion string   `json:"protocol_version"`
	ToolCount       int      `json:"tool_count"`
	ToolNames       []string `json:"tool_names"`
	Error           json.RawMessage
}

func oneCheck(t *testing.T, body []byte) check {
	t.Helper()
	var all struct{ Checks []check }
	if err := json.Unmarshal(body, &all); err != nil || len(all.Checks) != 1 {
		t.Fatalf("no check: %v: %s", err, body)
	}
	return all.Checks[0]
}

// TestM018ChangedConfiguration restarts with another setting of one of two servers.
func TestM018ChangedConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	m := run.StartIn(t, dir, run.Of(run.HTTP("up", s)))
	legacy(t, m).Names()
	m.Stop()
	s.SetTools(fake.Tools("b")...)
	m = run.StartIn(t, dir, run.Of(run.HTTP("up", s, fields{"headers": fields{"X-Team": "other"}})))
	c := legacy(t, m)
	run.Eventually(t, "the list of the new connection", func() bool { return slices.Equal(c.Names(), []string{"up__b"}) })
}

// M019 is in TestC140EarlyList, M021 in TestC55ProtocolErrorKeepsCodeMessageData, M022 in TestC138UnknownTool.
