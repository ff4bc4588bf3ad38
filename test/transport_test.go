package test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

// numbered returns names with a number at their end.
func numbered(prefix string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s%03d", prefix, i))
	}
	return names
}

func TestC73AllPages(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools(numbered("t", 150)...), PageSize: 50})
	if got := legacy(t, m).Names(); len(got) != 150 || got[149] != "up__t149" {
		t.Errorf("%d tools", len(got))
	}
	var cursors []string
	for _, r := range s.Seen("tools/list") {
		cursors = append(cursors, string(r.Param("cursor")))
	}
	if !slices.Equal(cursors, []string{"", `"50"`, `"100"`}) {
		t.Errorf("cursors = %q", cursors)
	}
}

// TestEmptyCursor has an empty text as a cursor, which is one.
func TestEmptyCursor(t *testing.T) {
	t.Parallel()
	pages := func(c *fake.Call) {
		if c.Param("cursor") == nil {
			c.Result(`{"tools":[` + fake.Tool("a") + `],"nextCursor":""}`)
			return
		}
		c.Result(`{"tools":[` + fake.Tool("b") + `]}`)
	}
	_, m := behind(t, fake.Options{Handlers: map[string]fake.Handler{"tools/list": pages}})
	if got := legacy(t, m).Names(); !slices.Equal(got, []string{"up__a", "up__b"}) {
		t.Errorf("names = %v", got)
	}
}

func TestC74CursorThatNeverAdvances(t *testing.T) {
	t.Parallel()
	again := func(c *fake.Call) { c.Result(`{"tools":[` + fake.Tool("a") + `],"nextCursor":"same"}`) }
	s, m := behind(t, fake.Options{Handlers: map[string]fake.Handler{"tools/list": again}})
	if got := legacy(t, m).Names(); !slices.Equal(got, []string{"up__a"}) {
		t.Errorf("names = %v", got)
	}
	if n := len(s.Seen("tools/list")); n > 1000 {
		t.Errorf("%d pages were read", n)
	}
	if w := m.Status("up").Warnings; len(w) == 0 {
		t.Error("no warning")
	}
}

func TestC76ListChanged(t *testing.T) {
	t.Parallel()
	servers := map[string]fake.Options{
		"legacy": {Tools: fake.Tools("a")},
		"modern": {Tools: fake.Tools("a"), Modern: true, NoHandshake: true},
		"dual":   {Tools: fake.Tools("a"), Modern: true},
	}
	for name, o := range servers {
		for _, version := range []string{"2024-11-05", client.Latest, client.Modern} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				s, m := behind(t, o)
				c := client.Dial(t, m.Endpoint(), version)
				if got := c.Names(); !slices.Equal(got, []string{"up__a"}) {
					t.Fatalf("names = %v", got)
				}
				if got := string(client.Member(c.Hello.Result, "capabilities", "tools", "listChanged")); got != "true" {
					t.Errorf("listChanged = %s in %s", got, c.Hello.Result)
				}
				feed := c.Listen()
				run.Eventually(t, "Mainstem to listen", func() bool { return s.Feeds() > 0 })
				s.SetTools(fake.Tools("a", "b")...)
				s.Announce()
				feed.Expect("notifications/tools/list_changed")
				awaitNames(t, c, "up__a", "up__b")
			})
		}
	}
}

func TestC76ListChangedOverStdio(t *testing.T) {
	t.Parallel()
	s, m := behindStdio(t, fake.Options{Tools: fake.Tools("a")})
	c := legacy(t, m)
	c.Names()
	feed := c.Listen()
	s.SetTools(fake.Tools("b")...)
	s.Announce()
	feed.Expect("notifications/tools/list_changed")
	awaitNames(t, c, "up__b")
}

// TestC78Burst sends 200 notifications and looks how often the list is read, and that the last change is seen.
func TestC78Burst(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := legacy(t, m)
	c.Names()
	feed := c.Listen()
	run.Eventually(t, "Mainstem to listen", func() bool { return s.Feeds() > 0 })
	before := len(s.Seen("tools/list"))
	for i := range 200 {
		s.SetTools(fake.Tools(fmt.Sprintf("t%03d", i))...)
		s.Announce()
	}
	run.Eventually(t, "the last change", func() bool { return slices.Equal(c.Names(), []string{"up__t199"}) })
	feed.Expect("notifications/tools/list_changed")
	if n := len(s.Seen("tools/list")) - before; n > 15 {
		t.Errorf("the list was read %d times", n)
	}
}

func TestC78NotifiesOnEveryList(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a"), Handlers: map[string]fake.Handler{"tools/list": func(c *fake.Call) {
		c.Usual()
		c.Server().Announce()
	}}})
	legacy(t, m).Names()
	time.Sleep(3 * time.Second) // nothing announces that a loop does not go on
	if n := len(s.Seen("tools/list")); n > 12 {
		t.Errorf("the list was read %d times in 3 s", n)
	}
}

func TestC80SessionLost(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := legacy(t, m)
	c.Tool("up__a", `{"n":1}`)
	s.ForgetSessions()
	known := len(s.Seen("initialize"))
	if got := c.Tool("up__a", `{"n":2}`).Text(); got != `{"n":2}` {
		t.Errorf("got %q", got)
	}
	hellos := s.Seen("initialize")[known:]
	if len(hellos) == 0 || hellos[0].Session != "" {
		t.Errorf("%d new handshakes: %v", len(hellos), hellos)
	}
	if n := len(s.Calls("a")); n != 3 {
		t.Errorf("%d calls, want 3: one, one refused, one again", n)
	}
}

func TestC84EventStreams(t *testing.T) {
	t.Parallel()
	var servers []run.Server
	framings := map[string]fake.Framing{
		"crlf": {SSE: true, EOL: "\r\n"}, "split": {SSE: true, EOL: "\r\n", Split: true}, "cr": {SSE: true, EOL: "\r"},
		"lines": {SSE: true, MultiLine: true}, "cut": {SSE: true, Truncate: true}, "ids": {SSE: true, Ids: true}, "open": {SSE: true, Open: true},
		"gzip": {Gzip: true}, "plain": {},
	}
	for name, framing := range framings {
		servers = append(servers, run.HTTP(name, fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Framing: framing})))
	}
	c := legacy(t, run.Start(t, run.Of(servers...)))
	if got := c.Names(); len(got) != len(framings) {
		t.Errorf("names = %v", got)
	}
	for name := range framings {
		if got := c.Tool(name+"__a", `{"x":1,"y":2}`).Text(); got != `{"x":1,"y":2}` {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestC86StreamEndsWithoutReply(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a"), Calls: map[string]fake.Handler{"a": func(c *fake.Call) {
		c.Notify("notifications/message", `{"level":"info","data":"x"}`)
	}}})
	c := legacy(t, m)
	start := time.Now()
	failed(t, c.Tool("up__a", "{}").Message, "up")
	quick(t, "the error", start, soon)
}

func TestC87StreamStaysOpenAfterReply(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a"), Framing: fake.Framing{SSE: true, Open: true}})
	c := legacy(t, m)
	c.Tool("up__a", "{}")
	before := m.Files()
	for range 100 {
		start := time.Now()
		if got := c.Tool("up__a", "{}").Text(); got != "{}" {
			t.Fatalf("got %q", got)
		}
		quick(t, "a call", start, soon)
	}
	run.Eventually(t, "sockets to be closed", func() bool { return m.Files() <= before+10 })
}

// TestC88AcceptHeader has headers of the user's own, which must not take the place of ours. Every fake server wants both types.
func TestC88AcceptHeader(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")}, fields{"headers": fields{"X-Team": "t"}})
	c := legacy(t, m)
	c.Tool("up__a", "{}")
	c.Close()
	s.Wait(t, "notifications/initialized", 1)
	for _, r := range s.Seen() {
		accept := r.Header.Get("Accept")
		if r.HTTP == http.MethodPost && (!strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream")) {
			t.Errorf("%s: Accept = %q", r.Method, accept)
		}
		if r.Header.Get("X-Team") != "t" || !strings.HasPrefix(r.Header.Get("User-Agent"), "Mainstem/") {
			t.Errorf("%s %s: X-Team %q, User-Agent %q", r.HTTP, r.Method, r.Header.Get("X-Team"), r.Header.Get("User-Agent"))
		}
	}
}

func TestC89NegotiatedVersionHeader(t *testing.T) {
	t.Parallel()
	for _, version := range fake.Legacy() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s, m := behind(t, fake.Options{Tools: fake.Tools("a"), Versions: []string{version}})
			if got := legacy(t, m).Tool("up__a", "{}").Text(); got != "{}" {
				t.Errorf("got %q", got)
			}
			for _, r := range s.Seen("notifications/initialized", "tools/list", "tools/call", "GET") {
				if got := r.Header.Get("Mcp-Protocol-Version"); got != version && (got != "" || version >= "2025-06-18") {
					t.Errorf("%s: version header %q, agreed on %s", r.Method, got, version)
				}
			}
			if got := m.Status("up"); got.ProtocolVersion != version || got.Era != "legacy" {
				t.Errorf("status = %+v", got)
			}
		})
	}
}

func TestC90NoStream(t *testing.T) {
	t.Parallel()
	html := func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.Method != http.MethodGet {
			return false
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html>welcome</html>")
		return true
	}
	for name, o := range map[string]fake.Options{"405": {NoStream: true}, "html": {Intercept: html}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Tools = fake.Tools("a")
			s, m := behind(t, o)
			if got := legacy(t, m).Tool("up__a", "{}").Text(); got != "{}" {
				t.Errorf("got %q", got)
			}
			s.Wait(t, "GET", 1)
			if got := m.Status("up"); got.Status != "healthy" {
				t.Errorf("status = %+v", got)
			}
		})
	}
}

func TestC91RedirectOnTheSameHost(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		slash := func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if r.URL.Path == "/mcp" {
				http.Redirect(w, r, "/mcp/", status)
				return true
			}
			return false
		}
		_, m := behind(t, fake.Options{Tools: fake.Tools("a"), Intercept: slash}, fields{"headers": fields{"X-Key": "k"}})
		if got := legacy(t, m).Tool("up__a", `{"q":1}`).Text(); got != `{"q":1}` {
			t.Errorf("%d: got %q", status, got)
		}
	}
}

func TestC93URLAsConfigured(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	m := run.Start(t, run.Of(run.HTTP("up", s, fields{"url": "http://" + s.Host() + "/a%2Fb/mcp?key=1&x=%20y"})))
	legacy(t, m).Tool("up__a", "{}")
	for _, r := range s.Seen() {
		if r.URI != "/a%2Fb/mcp?key=1&x=%20y" {
			t.Errorf("%s %s asked for %s", r.HTTP, r.Method, r.URI)
		}
	}
}

func TestC98AnswersThatAreNone(t *testing.T) {
	t.Parallel()
	page := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html>Please sign in</html>")
	}
	bare := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"Output":1}`)
	}
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("page", "bare", "good"), Calls: map[string]fake.Handler{
		"page": func(c *fake.Call) { page(c.W) },
		"bare": func(c *fake.Call) { bare(c.W) },
	}})
	wall := fake.HTTP(t, fake.Options{Intercept: func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		page(w)
		return true
	}})
	m := run.Start(t, run.Of(run.HTTP("up", s), run.HTTP("wall", wall)))
	c := legacy(t, m)
	start := time.Now()
	failed(t, c.Tool("up__page", "{}").Message, "up", "200", "text/html", "sign in")
	failed(t, c.Tool("up__bare", "{}").Message, "up", "Output")
	quick(t, "the errors", start, 2*soon)
	if got := c.Tool("up__good", "{}").Text(); got != "{}" {
		t.Errorf("the next call got %q", got)
	}
	got := m.WaitStatus("wall", "failed")
	for _, want := range []string{"200", "text/html"} {
		if !strings.Contains(got.Error, want) {
			t.Errorf("status %+v lacks %q", got, want)
		}
	}
}

func TestC99EveryPairOfVersions(t *testing.T) {
	t.Parallel()
	var servers []run.Server
	for _, version := range fake.Legacy() {
		servers = append(servers, run.HTTP("v"+version, fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Versions: []string{version}})))
	}
	servers = append(servers,
		run.HTTP("modern", fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Modern: true, NoHandshake: true})),
		run.HTTP("dual", fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Modern: true})),
		run.HTTP("stateless", fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Stateless: true})),
		run.Stdio("pipe", fake.Stdio(t, fake.Options{Tools: fake.Tools("a")})),
		run.Stdio("pipe-modern", fake.Stdio(t, fake.Options{Tools: fake.Tools("a"), Modern: true, NoHandshake: true})),
		run.Server{Name: "old", Fields: fields{"url": fake.SSE(t, "/messages?sid=%s", fake.Options{Tools: fake.Tools("a")}).URL, "transport": "sse"}},
	)
	m := run.Start(t, run.Of(servers...))
	for _, version := range client.Versions() {
		c := client.Dial(t, m.Endpoint(), version)
		names := c.Names()
		if len(names) != len(servers) {
			t.Errorf("%s: names = %v", version, names)
		}
		for _, name := range names {
			if got := c.Tool(name, `{"q":1}`); got.Text() != `{"q":1}` {
				t.Errorf("%s calls %s: got %s%s", version, name, got.Result, got.Error)
			}
		}
	}
}

// TestModernUpstreamHeaders looks at what a server of 2026-07-28 is sent: the name in the header is its own.
func TestModernUpstreamHeaders(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("search é", "=?base64?eA==?="), Modern: true, NoHandshake: true})
	for _, c := range []*client.HTTP{legacy(t, m), modern(t, m)} {
		for _, name := range c.Names() {
			if got := c.Tool(name, "{}"); got.Text() != "{}" {
				t.Errorf("%s calls %s: got %s%s", c.Version, name, got.Result, got.Error)
			}
		}
	}
	for _, r := range s.Seen() {
		if r.HTTP != http.MethodPost || r.Session != "" || r.Header.Get("Mcp-Protocol-Version") != fake.Modern || r.Header.Get("Mcp-Method") != r.Method {
			t.Errorf("%s %s with %v", r.HTTP, r.Method, r.Header)
		}
		if got := string(r.Param("_meta", "io.modelcontextprotocol/clientCapabilities")); r.ID != nil && got != "{}" {
			t.Errorf("%s: capabilities %s, the client has none", r.Method, got)
		}
	}
}

func TestC101EmptyFirstList(t *testing.T) {
	if testing.Short() {
		t.Skip("an empty list is asked for again within 30 s")
	}
	t.Parallel()
	s, m := behind(t, fake.Options{})
	c := legacy(t, m)
	if got := c.Names(); len(got) != 0 {
		t.Errorf("names = %v", got)
	}
	s.SetTools(fake.Tools(numbered("t", 5)...)...)
	start := time.Now()
	for len(c.Names()) != 5 {
		if time.Since(start) > 35*time.Second {
			t.Fatal("the tools did not appear")
		}
		time.Sleep(time.Second)
	}
}

func TestC102MethodsThatAreMissing(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a"), Capabilities: `{"tools":{},"resources":{},"prompts":{}}`})
	if got := legacy(t, m).Names(); !slices.Equal(got, []string{"up__a"}) {
		t.Errorf("names = %v", got)
	}
	if got := m.Status("up"); got.Status != "healthy" {
		t.Errorf("status = %+v", got)
	}
}

// TestDualEraServer is spoken to in the era of each client.
func TestDualEraServer(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a"), Modern: true})
	legacy(t, m).Tool("up__a", `{"from":1}`)
	modern(t, m).Tool("up__a", `{"from":2}`)
	calls := s.Calls("a")
	if len(calls) != 2 || calls[0].Session == "" || calls[1].Session != "" || calls[1].Header.Get("Mcp-Protocol-Version") != fake.Modern {
		t.Errorf("%d calls: the first one should be in a session, the second one in none: %v", len(calls), calls)
	}
}

// TestNoSuchMethodIsNoLostSession has a server of 2026-07-28 that answers a call with 404 and the error that goes with it.
func TestNoSuchMethodIsNoLostSession(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a"), Modern: true, NoHandshake: true, Calls: map[string]fake.Handler{"a": func(c *fake.Call) {
		c.W.Header().Set("Content-Type", "application/json")
		c.W.WriteHeader(http.StatusNotFound)
		c.Error(-32601, "no such method", "")
	}}})
	if a := modern(t, m).Tool("up__a", "{}"); a.Code() != -32601 || a.ErrorText() != "no such method" {
		t.Errorf("got %s%s", a.Result, a.Error)
	}
	if n := len(s.Calls("a")); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestPingOnTheStream has a server that asks on its GET stream whether we are alive.
func TestPingOnTheStream(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	legacy(t, m).Names()
	run.Eventually(t, "Mainstem to listen", func() bool { return s.Feeds() > 0 })
	same(t, "ping", client.Member(s.Ask(t, "ping", "{}"), "result"), "{}")
	if answer := s.Ask(t, "sampling/createMessage", `{"messages":[],"maxTokens":1}`); client.Member(answer, "error") == nil {
		t.Errorf("a question that belongs to no call was answered %s", answer)
	}
}
