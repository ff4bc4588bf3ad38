package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

func empty(w http.ResponseWriter, _ *http.Request, m jsonrpc.Message) { respond(w, m, `{}`) }

// headersOf prints what was sent, without what differs from run to run.
func headersOf(h http.Header) string {
	var lines []string
	for name, values := range h {
		if name != "Content-Length" {
			lines = append(lines, name+": "+strings.Join(values, "|"))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Also C125: nothing is sent that nobody configured.
func TestHeaders_C88_C89_C99(t *testing.T) {
	p := newPeer(t, empty)
	c := connect(t, transport.HTTPOptions{URL: p.URL, Header: http.Header{
		"Accept": {"text/plain"}, "content-type": {"text/plain"}, "Mcp-Session-Id": {"stolen"}, "mcp-protocol-version": {"1"},
		"Mcp-Param-X": {"1"}, "Host": {"evil"}, "Connection": {"close"}, "X-Team": {"blue"}, "X-Bad": {"a\r\nX-Injected: 1"},
	}}, nil, false)
	if _, err := call(t, c, "tools/list", `{}`, nil); err != nil {
		t.Fatal(err)
	}
	ctx := transport.WithHeaders(t.Context(), []transport.ParamHeader{{Name: "Region", Value: "eu"}, {Name: "Text", Value: "é"}})
	params := `{"na\u006de":"search\n","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`
	if _, err := c.Call(ctx, "tools/call", jsonrpc.NewParams(json.RawMessage(params)), nil); err != nil {
		t.Fatal(err)
	}
	c.Close()
	const fixed = "Accept-Encoding: identity\nAccept: application/json, text/event-stream\nContent-Type: application/json\n"
	const session = fixed + "Mcp-Protocol-Version: 2025-06-18\nMcp-Session-Id: session-1\nUser-Agent: Mainstem/test\nX-Team: blue"
	rows := []struct{ verb, method, want string }{
		{"POST", "initialize", fixed + "User-Agent: Mainstem/test\nX-Team: blue"},
		{"POST", "notifications/initialized", session},
		{"POST", "tools/list", session},
		{"POST", "tools/call", fixed + "Mcp-Method: tools/call\nMcp-Name: =?base64?c2VhcmNoCg==?=\nMcp-Param-Region: eu\nMcp-Param-Text: =?base64?w6k=?=\n" +
			"Mcp-Protocol-Version: 2026-07-28\nUser-Agent: Mainstem/test\nX-Team: blue"},
		{"DELETE", "", "Accept-Encoding: identity\nAccept: text/event-stream\nCache-Control: no-cache\nMcp-Protocol-Version: 2025-06-18\nMcp-Session-Id: session-1\n" +
			"User-Agent: Mainstem/test\nX-Team: blue"},
	}
	for _, row := range rows {
		got := p.requests(row.verb, row.method)
		if len(got) != 1 || headersOf(got[0].Header) != row.want {
			t.Errorf("%s %s: got %d\n%s\nwant\n%s", row.verb, row.method, len(got), headersOf(got[0].Header), row.want)
		}
	}
}

func TestRedirects(t *testing.T) {
	elsewhere := newPeer(t, empty)
	rows := []struct {
		name, location string
		status         int
		want           string // of the error; "": followed
	}{
		{"C91 slash", "/mcp/", 307, ""},
		{"C91 permanent", "/mcp/", 308, ""},
		{"C195 another origin", elsewhere.URL + "/mcp?key=S", 307, "redirect to " + strings.TrimPrefix(elsewhere.URL, "http://") + " is not followed: another origin (HTTP 307)"},
		{"M014 another origin", "https://u:p@other.example/login?key=S", 302, "redirect to other.example is not followed: another origin (HTTP 302)"},
		{"302 would be a GET", "/mcp/", 302, "would lose the message"},
		{"loop", "/mcp", 307, "more than 5 redirects"},
		{"nowhere", "", 307, "without a usable target"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
				if r.URL.Path == "/mcp" {
					w.Header().Set("Location", row.location)
					w.WriteHeader(row.status)
					return
				}
				respond(w, m, string(m.Params))
			})
			c := newHTTP(t, transport.HTTPOptions{URL: p.URL + "/mcp", Header: http.Header{"X-Key": {"secret"}}}).Open(nil, false)
			got, err := call(t, c, "tools/call", `{"a":1}`, nil)
			switch {
			case row.want == "" && (err != nil || got != `{"a":1}`):
				t.Errorf("got %s, %v", got, err)
			case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
				t.Errorf("got %v, want %s", err, row.want)
			}
			if _, unsent := errors.AsType[*transport.NotSent](err); unsent != (row.want != "" && row.status > 303) {
				t.Errorf("after %d it is not sent: %v", row.status, unsent)
			}
		})
	}
	if n := len(elsewhere.requests("", "")); n != 0 {
		t.Errorf("the other origin got %d requests", n)
	}
}

func TestURL_C93(t *testing.T) {
	for _, path := range []string{"/a%2Fb/mcp?key=1", "/a//b/?x=%20&y", "/", "/mcp?a=1&a=2#part", "/%E4%BD%A0?q=a+b"} {
		t.Run(path, func(t *testing.T) {
			p := newPeer(t, empty)
			c := newHTTP(t, transport.HTTPOptions{URL: p.URL + path}).Open(nil, false)
			if _, err := call(t, c, "tools/list", `{}`, nil); err != nil {
				t.Fatal(err)
			}
			want, _, _ := strings.Cut(path, "#")
			if got := p.requests("", "")[0].URI; got != want {
				t.Errorf("requested %s, want %s", got, want)
			}
		})
	}
}

func TestSecrets_C199(t *testing.T) {
	closed := httptest.NewServer(nil)
	address := strings.TrimPrefix(closed.URL, "http://")
	closed.Close()
	p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprintf(w, "Authorization was %s", r.Header.Get("Authorization"))
	})
	for _, url := range []string{
		"http://user:password@" + address + "/mcp?key=SECRET", "http://user:password@nosuchhost.invalid/mcp?key=SECRET",
		strings.Replace(p.URL, "http://", "http://user:password@", 1) + "/mcp?key=SECRET", "http://user:password@%zz/?key=SECRET", "ftp://user:password@h/?key=SECRET",
		strings.Replace(p.URL, "http://", "https://user:password@", 1) + "/mcp?key=SECRET",
	} {
		c := newHTTP(t, transport.HTTPOptions{URL: url}).Open(nil, false)
		_, err := call(t, c, "tools/list", `{}`, nil)
		if err == nil {
			t.Fatalf("%s: no error", url)
		}
		for _, secret := range []string{"SECRET", "password", "user:", "dXNlcjpwYXNzd29yZA"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v", url, err)
			}
		}
		if _, unsent := errors.AsType[*transport.NotSent](err); unsent != !strings.Contains(url, "@"+strings.TrimPrefix(p.URL, "http://")) && !strings.HasPrefix(url, "https") {
			t.Errorf("%s: not sent: %v (%v)", url, unsent, err)
		}
	}
	if got := p.requests("POST", "")[0].Header.Get("Authorization"); got != "Basic dXNlcjpwYXNzd29yZA==" {
		t.Errorf("Authorization: %s", got)
	}
}

// A key is a credential that changes when it is challenged.
type key struct {
	generation atomic.Int32
	refuse     error
}

func (k *key) Apply(_ context.Context, h http.Header) error {
	h.Set("Authorization", fmt.Sprint("Bearer token-number-", k.generation.Load()))
	return nil
}

func (k *key) Challenge(_ context.Context, status int, h http.Header) error {
	k.generation.Add(1)
	return k.refuse
}

func TestCredential_C118(t *testing.T) {
	refused := errors.New("no refresh token")
	rows := []struct {
		name   string
		key    *key
		status int
		accept string
		sent   int
		login  bool
	}{
		{"once more", &key{}, 401, "Bearer token-number-1", 2, false},
		{"403 with a challenge", &key{}, 403, "Bearer token-number-1", 2, false},
		{"only once", &key{}, 401, "never", 2, true},
		{"cannot", &key{refuse: refused}, 401, "never", 1, true},
		{"no credential", nil, 401, "never", 1, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
				if r.Header.Get("Authorization") == row.accept {
					respond(w, m, `{}`)
					return
				}
				w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="x"`)
				w.WriteHeader(row.status)
			})
			o := transport.HTTPOptions{URL: p.URL}
			if row.key != nil {
				o.Credential = row.key
			}
			_, err := call(t, newHTTP(t, o).Open(nil, false), "tools/call", `{}`, nil)
			login, ok := errors.AsType[*transport.LoginError](err)
			if ok != row.login || !ok && err != nil {
				t.Errorf("got %v", err)
			}
			if ok && (login.Status != row.status || login.Challenge != `Bearer resource_metadata="x"` || row.key != nil && row.key.refuse != nil && !errors.Is(err, refused)) {
				t.Errorf("got %+v", login)
			}
			if n := len(p.requests("", "")); n != row.sent {
				t.Errorf("sent %d times, want %d", n, row.sent)
			}
		})
	}
}

func TestCancel_C2_C183(t *testing.T) {
	rows := []struct {
		name, method, params string
		want                 bool // notifications/cancelled is sent
	}{
		{"legacy", "tools/call", `{}`, true},
		{"C4 initialize", "initialize", `{}`, false},
		{"modern", "tools/call", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			started, ended := make(chan jsonrpc.Message, 2), make(chan struct{}, 2)
			p := &peer{}
			p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				m, _ := jsonrpc.Parse(body)
				p.mu.Lock()
				p.got = append(p.got, received{Method: r.Method, Message: m, Body: string(body)})
				p.mu.Unlock()
				if m.IsRequest() {
					events(w)(": hello\n\n")
					started <- m
					<-r.Context().Done()
					ended <- struct{}{}
				}
			}))
			t.Cleanup(p.Close)
			c := newHTTP(t, transport.HTTPOptions{URL: p.URL}).Open(nil, false)
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("enough")
			other := make(chan error)
			otherCtx, stopOther := context.WithCancel(t.Context())
			go func() {
				_, err := c.Call(otherCtx, row.method, jsonrpc.NewParams(json.RawMessage(row.params)), nil)
				other <- err
			}()
			<-started
			go func() { <-started; cancel(why) }()
			if _, err := c.Call(ctx, row.method, jsonrpc.NewParams(json.RawMessage(row.params)), nil); err != why {
				t.Errorf("got %v, want the cause", err)
			}
			<-ended // H23: the server sees the stream close
			want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"cancelled by the caller"}}`, p.requests("", row.method)[1].Message.ID)
			if row.want {
				eventually(t, "cancelled", func() bool { return len(p.requests("", "notifications/cancelled")) == 1 })
				if got := p.requests("", "notifications/cancelled")[0].Body; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			select {
			case err := <-other:
				t.Errorf("the other call ended: %v", err)
			default:
			}
			stopOther()
			<-other
			c.Close()
			if n := len(p.requests("", "notifications/cancelled")); (n > 0) != row.want {
				t.Errorf("%d cancellations", n)
			}
		})
	}
}

func TestClose(t *testing.T) {
	started := make(chan struct{})
	p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
		close(started)
		<-r.Context().Done()
	})
	c := connect(t, transport.HTTPOptions{URL: p.URL}, nil, false)
	failed := make(chan error)
	go func() {
		_, err := c.Call(t.Context(), "tools/call", jsonrpc.Params{}, nil)
		failed <- err
	}()
	<-started
	c.Close()
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("the running call: %v", err)
	}
	<-c.Done()
	_, err := call(t, c, "tools/call", `{}`, nil)
	if _, ok := errors.AsType[*transport.NotSent](err); !ok {
		t.Errorf("a later call: %v", err)
	}
	if n := len(p.requests("DELETE", "")); n != 1 {
		t.Errorf("%d DELETE requests", n)
	}
	if n := len(p.requests("", "notifications/cancelled")); n != 0 {
		t.Errorf("%d cancellations", n)
	}
}

func TestResume_H36(t *testing.T) {
	rows := []struct {
		name   string
		resume func(w http.ResponseWriter, r *http.Request, id string)
		want   string // "": outcome unknown
	}{
		{"reply on the second stream", func(w http.ResponseWriter, r *http.Request, id string) {
			events(w)("id: 3\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"n\":%s}}\n\n", id, r.Header.Get("Last-Event-ID"))
		}, `{"n":2}`},
		{"not offered", func(w http.ResponseWriter, r *http.Request, id string) { w.WriteHeader(405) }, ""},
		{"session gone", func(w http.ResponseWriter, r *http.Request, id string) { w.WriteHeader(404) }, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var id atomic.Value
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
				id.Store(string(m.ID))
				events(w)("id: 1\nretry: 60\ndata:\n\nid: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n")
			})
			p.stream = func(w http.ResponseWriter, r *http.Request) { row.resume(w, r, id.Load().(string)) }
			c := connect(t, transport.HTTPOptions{URL: p.URL}, nil, false)
			began := time.Now()
			got, err := call(t, c, "tools/call", `{}`, nil)
			if took := time.Since(began); took < 60*time.Millisecond || took > 5*time.Second {
				t.Errorf("resumed after %v", took)
			}
			if got != row.want || (err == nil) != (row.want != "") {
				t.Errorf("got %s, %v, want %s", got, err, row.want)
			}
			if _, gone := errors.AsType[*transport.SessionGone](err); gone || err != nil && !strings.Contains(err.Error(), "outcome is unknown") {
				t.Errorf("got %v", err)
			}
			if n := len(p.requests("POST", "tools/call")); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

func TestListen_C76_C90(t *testing.T) {
	t.Run("C76 notifications and questions", func(t *testing.T) {
		p := newPeer(t, empty)
		var streams atomic.Int32
		p.stream = func(w http.ResponseWriter, r *http.Request) {
			write := events(w)
			if streams.Add(1) == 1 {
				write("id: a1\nretry: 50\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
				return
			}
			write("data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"roots/list\"}\n\n")
			<-r.Context().Done()
		}
		session := newSink()
		c := connect(t, transport.HTTPOptions{URL: p.URL}, session, true)
		eventually(t, "answer to the server", func() bool {
			return slices.ContainsFunc(p.requests("POST", ""), func(r received) bool { return r.Body == `{"jsonrpc":"2.0","id":7,"result":{"asked":true}}` })
		})
		if got := strings.Join(session.all(), "|"); got != "notifications/tools/list_changed |? roots/list " {
			t.Errorf("heard %s", got)
		}
		if got := p.requests("GET", "")[1].Header.Get("Last-Event-ID"); got != "a1" {
			t.Errorf("Last-Event-ID: %q", got)
		}
		c.Close()
	})
	for _, status := range []int{405, 404, 200} {
		t.Run(fmt.Sprint("C90 ", status), func(t *testing.T) {
			p := newPeer(t, empty)
			p.stream = func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(status)
			}
			c := connect(t, transport.HTTPOptions{URL: p.URL}, nil, true)
			eventually(t, "GET", func() bool { return len(p.requests("GET", "")) == 1 })
			if _, err := call(t, c, "tools/list", `{}`, nil); err != nil {
				t.Error(err)
			}
			select {
			case <-c.Done():
				t.Error("the connection is done")
			default:
			}
		})
	}
}

// C184, M012: with either wire underneath; net/http must not repeat by itself.
func TestOnce_C184(t *testing.T) {
	for _, proto := range []string{"plain", "TLS", "HTTP/2"} {
		t.Run(proto, func(t *testing.T) {
			var calls atomic.Int32
			p := &peer{handle: func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
				if calls.Add(1) > 1 {
					panic(http.ErrAbortHandler)
				}
				respond(w, m, `{}`)
			}}
			p.Server = httptest.NewUnstartedServer(p)
			if p.EnableHTTP2 = proto == "HTTP/2"; proto == "plain" {
				p.Start()
			} else {
				p.StartTLS()
			}
			defer p.Close()
			h := newHTTP(t, transport.HTTPOptions{URL: p.URL})
			h.Trust(p.Server)
			c := h.Open(nil, false)
			if _, err := call(t, c, "tools/call", `{}`, nil); err != nil {
				t.Fatal(err)
			}
			_, err := call(t, c, "tools/call", `{}`, nil)
			if _, unsent := errors.AsType[*transport.NotSent](err); err == nil || unsent || !strings.Contains(err.Error(), "outcome is unknown") {
				t.Errorf("got %v", err)
			}
			if n := calls.Load(); n != 2 {
				t.Errorf("sent %d times, want once", n-1)
			}
		})
	}
}
