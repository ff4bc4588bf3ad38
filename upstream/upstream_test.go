package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/catalog/listing"
	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/dial"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/state"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/upstream"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

func TestMain(m *testing.M) {
	fake.Main()
	os.Exit(m.Run())
}

// server is a configuration entry with the defaults of the file.
func server(edit func(*config.Server)) *config.Server {
	s := &config.Server{
		Name: "srv", Enabled: true, Transport: config.Auto, ProtocolVersion: "auto", Timeout: 10 * time.Second,
		MaxResponseBytes: 1 << 20, CacheTTL: time.Hour, Session: "auto", Hash: "h",
	}
	edit(s)
	return s
}

func overHTTP(f *fake.Server) *config.Server {
	return server(func(s *config.Server) { s.URL, s.ShownURL = f.URL, f.URL })
}

func overStdio(f *fake.Server) *config.Server {
	return server(func(s *config.Server) {
		s.Transport, s.Command, s.Args, s.HasArgs = config.Stdio, f.Command[0], f.Command[1:], true
	})
}

func newSet(t *testing.T, store upstream.Store, servers ...*config.Server) *upstream.Set {
	t.Helper()
	set := upstream.NewSet(t.Context(), &config.Config{Servers: servers}, upstream.Options{
		Version: "test", Log: zerolog.New(zerolog.NewTestWriter(t)), Store: store, Transport: transport.Options{Policy: dial.New(nil), Environ: os.Environ},
	})
	t.Cleanup(set.Close)
	return set
}

func only(t *testing.T, s *config.Server) *upstream.Upstream {
	t.Helper()
	u, _ := newSet(t, nil, s).Get(s.Name)
	return u
}

// run keeps the set running until the test ends.
func run(t *testing.T, set *upstream.Set) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = set.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
}

// until waits for a change after which ok holds.
func until(t *testing.T, set *upstream.Set, what string, ok func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-set.Changed():
		case <-limit:
			t.Fatalf("never: %s", what)
		}
	}
}

func names(l *listing.Listing) []string {
	var out []string
	for _, item := range l.Items(listing.Tools) {
		out = append(out, item.Name)
	}
	return out
}

// A client is a peer, and the sink of its calls.
type client struct {
	key   string
	era   protocol.Era
	heard chan string
}

func newClient(key string) *client {
	return &client{key: key, era: protocol.Legacy, heard: make(chan string, 100)}
}

func (c *client) Key() string                   { return c.key }
func (c *client) Capabilities() json.RawMessage { return json.RawMessage("{}") }
func (c *client) Notify(method string, params json.RawMessage) {
	c.heard <- method + " " + string(params)
}
func (c *client) Ask(_ context.Context, method string, _ json.RawMessage) (jsonrpc.Reply, error) {
	return upstream.Refusal(method), nil
}

func (c *client) call(ctx context.Context, u *upstream.Upstream, params string) (string, error) {
	s, err := u.Open(ctx, c, c.era)
	if err != nil {
		return "", err
	}
	reply, err := s.Call(ctx, "tools/call", jsonrpc.NewParams(json.RawMessage(params)), c)
	if err != nil {
		return "", err
	}
	defer reply.Release()
	return string(reply.Result) + string(reply.Error), nil
}

// answer makes a server that answers everything alike.
func answer(status int, contentType, body string) func(http.ResponseWriter, *http.Request, []byte) bool {
	return func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
		return true
	}
}

func kind(err error) string {
	var e *upstream.Error
	if !errors.As(err, &e) {
		return fmt.Sprint(err)
	}
	return e.Kind
}

func TestEveryKindOfServerIsListed(t *testing.T) {
	tools := fake.Options{Tools: fake.Tools("b", "a")}
	modern, dual, odd := tools, tools, tools
	modern.Modern, modern.NoHandshake, dual.Modern = true, true, true
	odd.Versions = []string{"2024-11-05"}
	for _, tt := range []struct {
		name    string
		s       *config.Server
		version string
	}{
		{"legacy over HTTP", overHTTP(fake.HTTP(t, tools)), "2025-11-25"},
		{"old version over HTTP", overHTTP(fake.HTTP(t, odd)), "2024-11-05"},
		{"modern over HTTP", overHTTP(fake.HTTP(t, modern)), "2026-07-28"},
		{"both eras over HTTP", overHTTP(fake.HTTP(t, dual)), "2026-07-28"},
		{"legacy over SSE, found out", overHTTP(fake.SSE(t, "/messages?sid=%s", tools)), "2025-11-25"},
		{"legacy over stdio", overStdio(fake.Stdio(t, tools)), "2025-11-25"},
		{"modern over stdio", overStdio(fake.Stdio(t, modern)), "2026-07-28"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := only(t, tt.s)
			report, err := u.Check(t.Context())
			if err != nil || report.Version != tt.version || !slices.Equal(report.Tools, []string{"b", "a"}) {
				t.Fatalf("%+v, %v", report, err)
			}
			if got, err := newClient("x").call(t.Context(), u, `{"name":"a","arguments":{"n":9007199254740993}}`); err != nil || !strings.Contains(got, "9007199254740993") {
				t.Errorf("call: %s, %v", got, err)
			}
			if status := u.Status(); status.State != upstream.Healthy || status.Version != tt.version {
				t.Errorf("status %+v", status)
			}
		})
	}
}

func TestC73EveryPage(t *testing.T) {
	var all []string
	for i := range 150 {
		all = append(all, fmt.Sprintf("t%03d", i))
	}
	u := only(t, overHTTP(fake.HTTP(t, fake.Options{Tools: fake.Tools(all...), PageSize: 50})))
	if err := u.Refresh(t.Context()); err != nil || !slices.Equal(names(u.Listing()), all) {
		t.Fatalf("%d tools, %v", len(names(u.Listing())), err)
	}
}

func TestC74CursorThatNeverAdvances(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Handlers: map[string]fake.Handler{
		"tools/list": func(c *fake.Call) { c.Result(`{"tools":[{"name":"a"}],"nextCursor":"same"}`) },
	}})
	u := only(t, overHTTP(f))
	if err := u.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(f.Seen("tools/list")); n != 2 || len(u.Listing().Notes) != 1 {
		t.Errorf("asked %d times, notes %q", n, u.Listing().Notes)
	}
}

func TestC80M009SessionGone(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	u := only(t, overHTTP(f))
	c := newClient("x")
	if _, err := c.call(t.Context(), u, `{"name":"a"}`); err != nil {
		t.Fatal(err)
	}
	f.ForgetSessions()
	before := len(f.Seen("initialize"))
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if _, err := c.call(t.Context(), u, `{"name":"a"}`); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := len(f.Seen("initialize")) - before; n != 1 {
		t.Errorf("%d new sessions for 20 calls, want 1", n)
	}
}

// Servers made after a common example know no 404: they say 400, with an error that has no id.
func TestC80SessionRefusedWith400(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	u := only(t, overHTTP(f))
	c := newClient("x")
	if _, err := c.call(t.Context(), u, `{"name":"a"}`); err != nil {
		t.Fatal(err)
	}
	old := f.Calls("a")[0].Session
	f.SetIntercept(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		return r.Header.Get("Mcp-Session-Id") == old &&
			answer(400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)(w, r, body)
	})
	if got, err := c.call(t.Context(), u, `{"name":"a"}`); err != nil || !strings.Contains(got, "-32000") {
		t.Errorf("the first call: %s, %v", got, err)
	}
	if got, err := c.call(t.Context(), u, `{"name":"a"}`); err != nil || !strings.Contains(got, "content") {
		t.Errorf("the next call: %s, %v", got, err)
	}
	if n := len(f.Calls("a")); n != 3 {
		t.Errorf("%d calls were sent, want 3", n)
	}
}

func TestC184LostConnectionIsNotSentAgain(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Calls: map[string]fake.Handler{"a": func(c *fake.Call) { c.Drop() }}})
	_, err := newClient("x").call(t.Context(), only(t, overHTTP(f)), `{"name":"a"}`)
	if n := len(f.Calls("a")); n != 1 || kind(err) != upstream.UnknownOutcome || !strings.Contains(err.Error(), "srv: ") || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("ran %d times; %s: %v", n, kind(err), err)
	}
}

func TestC143ProgressRestartsTheWait(t *testing.T) {
	step := make(chan struct{})
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("slow"), Calls: map[string]fake.Handler{"slow": func(c *fake.Call) {
		for i := range 6 {
			c.Sleep(200 * time.Millisecond)
			c.Progress(i)
		}
		if string(c.Param("arguments", "end")) == "true" {
			c.Text("done")
			return
		}
		c.Hold(step)
	}}})
	s := overHTTP(f)
	s.Timeout = time.Second
	u := only(t, s)
	if got, err := newClient("x").call(t.Context(), u, `{"name":"slow","arguments":{"end":true},"_meta":{"progressToken":"p1"}}`); err != nil || !strings.Contains(got, "done") {
		t.Errorf("%s, %v", got, err)
	}
	c := newClient("y")
	_, err := c.call(t.Context(), u, `{"name":"slow","_meta":{"progressToken":"p1"}}`)
	if kind(err) != upstream.Timeout || !strings.HasPrefix(err.Error(), "srv: timeout") || !strings.HasSuffix(err.Error(), "the outcome is unknown") {
		t.Errorf("%s: %v", kind(err), err)
	}
	if got := <-c.heard; !strings.Contains(got, `"progressToken":"p1"`) {
		t.Errorf("heard %s", got)
	}
	if got := f.Wait(t, "notifications/cancelled", 1)[0]; string(got.Param("reason")) != `"timed out"` {
		t.Errorf("the server is told %s", got.Body)
	}
	close(step)
}

func TestFailuresHaveTheirKind(t *testing.T) {
	gone := fake.HTTP(t, fake.Options{})
	url := gone.URL
	gone.Shut()
	for _, tt := range []struct {
		name string
		s    *config.Server
		kind string
		text string
	}{
		{"refused", server(func(s *config.Server) { s.URL = url }), upstream.Unreachable, "srv: unreachable: "},
		{"no such command", server(func(s *config.Server) { s.Transport, s.Command, s.HasArgs = config.Stdio, "nosuchcmd", true }), upstream.Unreachable, "nosuchcmd"},
		{"unset variable", server(func(s *config.Server) { s.URL, s.Failed = url, "environment variable T is not set" }), upstream.Other, "srv: environment variable T is not set"},
		{"page of a login", overHTTP(fake.HTTP(t, fake.Options{Intercept: answer(200, "text/html", "<html>hello")})), upstream.BadMessage, "text/html"},
		{"401", overHTTP(fake.HTTP(t, fake.Options{Intercept: answer(401, "text/plain", "no")})), upstream.Auth, "mainstem login srv"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := only(t, tt.s)
			err := u.Refresh(t.Context())
			if kind(err) != tt.kind || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: %v; want %s, %q", kind(err), err, tt.kind, tt.text)
			}
			if tt.kind == upstream.Auth && u.Status().State != upstream.NeedsLogin {
				t.Errorf("state %s", u.Status().State)
			}
		})
	}
}

func TestC168KilledChildComesBack(t *testing.T) {
	f := fake.Stdio(t, fake.Options{Tools: fake.Tools("a")})
	set := newSet(t, nil, overStdio(f))
	run(t, set)
	u, _ := set.Get("srv")
	until(t, set, "listed", func() bool { return u.Status().State == upstream.Healthy })
	f.Processes()[0].Kill()
	until(t, set, "seen dead", func() bool { return u.Status().State == upstream.Degraded })
	if names(u.Listing())[0] != "a" {
		t.Error("its tools are no longer listed")
	}
	until(t, set, "back", func() bool { return u.Status().State == upstream.Healthy })
	if n := len(f.Processes()); n != 2 {
		t.Errorf("%d processes", n)
	}
}

func TestC76ListChanged(t *testing.T) {
	modern := fake.Options{Tools: fake.Tools("a"), Modern: true, NoHandshake: true}
	for name, s := range map[string]*fake.Server{"legacy": fake.HTTP(t, fake.Options{Tools: fake.Tools("a")}), "modern": fake.HTTP(t, modern)} {
		t.Run(name, func(t *testing.T) {
			set := newSet(t, nil, overHTTP(s))
			run(t, set)
			u, _ := set.Get("srv")
			until(t, set, "listed", func() bool { return u.Listing() != nil })
			for s.Feeds() == 0 { // the stream that carries the news is opened after the list
				runtime.Gosched()
			}
			s.SetTools(fake.Tools("a", "b")...)
			for range 200 {
				s.Announce()
			}
			until(t, set, "the new tool", func() bool { return len(names(u.Listing())) == 2 })
			if n := len(s.Seen("tools/list")); n > 6 {
				t.Errorf("asked %d times for 200 notifications", n)
			}
		})
	}
}

// C78: only "changed" without a change makes a server wait for the next question.
func TestC76AfterManyRefreshesOfTheSameList(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	s := overHTTP(f)
	s.CacheTTL = 20 * time.Millisecond
	set := newSet(t, nil, s)
	run(t, set)
	u, _ := set.Get("srv")
	f.Wait(t, "tools/list", 20)
	for f.Feeds() == 0 {
		runtime.Gosched()
	}
	f.Announce() // without a change
	f.SetTools(fake.Tools("a", "b")...)
	until(t, set, "the new tool", func() bool { return len(names(u.Listing())) == 2 })
}

// C209: a server that went away unnoticed is seen as soon as somebody calls it.
func TestCallFindsTheServerDown(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), NoStream: true})
	set := newSet(t, nil, overHTTP(f))
	run(t, set)
	u, _ := set.Get("srv")
	until(t, set, "listed", func() bool { return u.Status().State == upstream.Healthy })
	f.Shut()
	if _, err := newClient("x").call(t.Context(), u, `{"name":"a"}`); kind(err) != upstream.Unreachable {
		t.Errorf("%s: %v", kind(err), err)
	}
	until(t, set, "seen down", func() bool { return u.Status().State == upstream.Degraded })
	f.Reopen(t)
	until(t, set, "back", func() bool { return u.Status().State == upstream.Healthy })
}

// hanging is a server that never answers a message with any of these words in it.
func hanging(words ...string) fake.Interceptor {
	return func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
		for _, word := range words {
			if r.Method == word || strings.Contains(string(body), word) {
				<-r.Context().Done()
				return true
			}
		}
		return false
	}
}

// C204: a session that is still being opened ends at once.
func TestCloseWhileTheServerKeepsSilent(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Intercept: hanging("initialize")})
	u := only(t, overHTTP(f))
	ctx, cancel := context.WithCancel(t.Context())
	s, err := u.Open(ctx, newClient("x"), protocol.Legacy)
	if err != nil {
		t.Fatal(err)
	}
	var calling sync.WaitGroup
	calling.Go(func() {
		_, _ = s.Call(ctx, "tools/call", jsonrpc.NewParams(json.RawMessage(`{"name":"a"}`)), newClient("x"))
	})
	f.Wait(t, "initialize", 1)
	cancel()
	calling.Wait()
	began := time.Now()
	_ = s.Close()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// C166: nobody waits until a lost session has ended.
func TestLeaveTakingHoldsNoCallBack(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	u := only(t, overHTTP(f))
	if _, err := newClient("x").call(t.Context(), u, `{"name":"a"}`); err != nil {
		t.Fatal(err)
	}
	hang := hanging("DELETE")
	f.SetIntercept(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		return hang(w, r, body) || strings.Contains(string(body), "tools/call") && answer(400, "text/plain", "bad")(w, r, body)
	})
	began := time.Now()
	if _, err := newClient("x").call(t.Context(), u, `{"name":"a"}`); kind(err) != upstream.BadMessage {
		t.Errorf("%s: %v", kind(err), err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %v", took)
	}
	f.Wait(t, "DELETE", 1)
}

// L16: another server on the same address is found out about at the first try.
func TestReplacedByOneOfTheNewTransport(t *testing.T) {
	old := fake.SSE(t, "/messages?sid=%s", fake.Options{Tools: fake.Tools("a")})
	u := only(t, overHTTP(old))
	if err := u.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(fake.HTTP(t, fake.Options{Tools: fake.Tools("b")}).URL)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL = to }}
	old.SetIntercept(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
		return true
	})
	old.Shut()
	old.Reopen(t)
	if err := u.Refresh(t.Context()); err != nil || names(u.Listing())[0] != "b" {
		t.Errorf("%v, %q", err, names(u.Listing()))
	}
}

// An upstream session has a state: what is only too much at the moment does not end it.
func TestTooManyRequestsEndNoSession(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	u := only(t, overHTTP(f))
	c := newClient("x")
	for _, busy := range []bool{false, true, false} {
		f.SetIntercept(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
			return busy && answer(429, "text/plain", "slower")(w, r, body)
		})
		if _, err := c.call(t.Context(), u, `{"name":"a"}`); (err != nil) != busy {
			t.Errorf("busy %v: %v", busy, err)
		}
	}
	if n := len(f.Seen("initialize")); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// C199: a server that echoes what it was sent does not make us show it.
func TestC199ErrorsOfServersShowNoSecret(t *testing.T) {
	for _, method := range []string{"initialize", "tools/list"} {
		f := fake.HTTP(t, fake.Options{Handlers: map[string]fake.Handler{
			method: func(c *fake.Call) { c.Error(-32600, "bad "+c.Header.Get("Authorization"), "") },
		}})
		s := overHTTP(f)
		s.Auth = config.Auth{Type: config.AuthHeader, Header: "Authorization", Credential: config.NewSecret("Bearer s3cr3t-value")}
		err := only(t, s).Refresh(t.Context())
		if err == nil || strings.Contains(err.Error(), "s3cr3t") || !strings.Contains(err.Error(), "[redacted]") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// L16: a modern server that an older one took the place of, which says so in JSON.
func TestReplacedByALegacyServer(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Modern: true, NoHandshake: true})
	u := only(t, overHTTP(f))
	if err := u.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(fake.HTTP(t, fake.Options{Tools: fake.Tools("b")}).URL)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL = to }}
	refuse := answer(400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`)
	f.SetIntercept(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Header.Get("Mcp-Session-Id") == "" && !strings.Contains(string(body), `"initialize"`) {
			return refuse(w, r, body)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
		return true
	})
	if err := u.Refresh(t.Context()); err != nil || names(u.Listing())[0] != "b" || u.Status().Version != "2025-11-25" {
		t.Errorf("%v, %q, %+v", err, names(u.Listing()), u.Status())
	}
}

func TestListsOutliveUs(t *testing.T) {
	store, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	first, _ := newSet(t, store, overHTTP(f)).Get("srv")
	if err := first.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Shut()
	u, _ := newSet(t, store, overHTTP(f)).Get("srv")
	if l := u.Listing(); l == nil || names(l)[0] != "a" {
		t.Fatalf("kept %+v", l)
	}
	if err := u.Refresh(t.Context()); kind(err) != upstream.Unreachable || u.Status().State != upstream.Degraded || u.Listing() == nil {
		t.Errorf("%v, %+v", err, u.Status())
	}
	changed := overHTTP(f)
	changed.Hash = "other"
	if u, _ := newSet(t, store, changed).Get("srv"); u.Listing() != nil {
		t.Error("a list of another configuration is used")
	}
}

func TestOneRefreshHoweverManyAsk(t *testing.T) {
	gate := make(chan struct{})
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Handlers: map[string]fake.Handler{
		"tools/list": func(c *fake.Call) { c.Hold(gate); c.Usual() },
	}})
	u := only(t, overHTTP(f))
	var asking sync.WaitGroup
	for range 10 {
		asking.Go(func() {
			if err := u.Refresh(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	f.Wait(t, "tools/list", 1)
	close(gate)
	asking.Wait()
	if n := len(f.Seen("tools/list")); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestSessionsPerPeer(t *testing.T) {
	for _, tt := range []struct {
		session string
		want    int // sessions for two peers
	}{{"auto", 2}, {"per_client", 2}, {"shared", 1}} {
		f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
		s := overHTTP(f)
		s.Session = tt.session
		u := only(t, s)
		for _, key := range []string{"x", "y", "x"} {
			if _, err := newClient(key).call(t.Context(), u, `{"name":"a"}`); err != nil {
				t.Fatal(err)
			}
		}
		ids := map[string]bool{}
		for _, r := range f.Calls("a") {
			ids[r.Session] = true
		}
		if len(ids) != tt.want {
			t.Errorf("%s: %d sessions, want %d", tt.session, len(ids), tt.want)
		}
	}
}

func TestDualEraServerIsSpokenToInTheClientsEra(t *testing.T) {
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Modern: true})
	u := only(t, overHTTP(f))
	if err := u.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, era := range []protocol.Era{protocol.Legacy, protocol.Modern} {
		c := newClient("x")
		c.era = era
		if _, err := c.call(t.Context(), u, `{"name":"a"}`); err != nil {
			t.Fatal(err)
		}
		calls := f.Calls("a")
		want := "2025-11-25"
		if era == protocol.Modern {
			want = "2026-07-28"
		}
		if got := calls[len(calls)-1].Header.Get("Mcp-Protocol-Version"); got != want {
			t.Errorf("%s client: the server was spoken to in %s", era, got)
		}
	}
}

func TestC118CallThatNeedsASignIn(t *testing.T) {
	locked := make(chan bool, 1)
	f := fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Intercept: func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if !strings.Contains(string(body), `"tools/call"`) || !<-locked {
			return false
		}
		w.WriteHeader(401)
		return true
	}})
	u := only(t, overHTTP(f))
	if err := u.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		locked bool
		want   upstream.State
	}{{false, upstream.Healthy}, {true, upstream.NeedsLogin}, {false, upstream.Healthy}} {
		locked <- tt.locked
		_, err := newClient("x").call(t.Context(), u, `{"name":"a"}`)
		if got := u.Status().State; got != tt.want || (err != nil) != tt.locked {
			t.Errorf("locked %v: state %s, %v; want %s", tt.locked, got, err, tt.want)
		}
	}
}

// A modern server that takes longer to start than the probe waits.
func TestSlowModernServerIsNotTakenForALegacyOne(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the probe to give up")
	}
	var first sync.Once
	f := fake.Stdio(t, fake.Options{Tools: fake.Tools("a"), Modern: true, NoHandshake: true, Handlers: map[string]fake.Handler{
		"server/discover": func(c *fake.Call) {
			slow := false
			first.Do(func() { slow = true })
			if !slow {
				c.Usual()
			}
		},
	}})
	u := only(t, overStdio(f))
	report, err := u.Check(t.Context())
	if err != nil || report.Version != "2026-07-28" {
		t.Fatalf("%+v, %v", report, err)
	}
	if n := len(f.Processes()); n != 1 {
		t.Errorf("%d processes", n)
	}
	if n := len(f.Seen("notifications/cancelled")); n != 0 {
		t.Errorf("the probe was taken back %d times before the handshake", n)
	}
}
