package transport_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

// A peer is a scripted server. It records every request before handle answers it.
type peer struct {
	*httptest.Server
	handle func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message)
	stream func(w http.ResponseWriter, r *http.Request) // answers GET; nil: 405

	mu  sync.Mutex
	got []received
}

type received struct {
	Method, URI string
	Header      http.Header
	Body        string
	Message     jsonrpc.Message
}

func newPeer(t testing.TB, handle func(http.ResponseWriter, *http.Request, jsonrpc.Message)) *peer {
	p := &peer{handle: handle}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Server.Close)
	return p
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, _ := jsonrpc.Parse(body)
	p.mu.Lock()
	p.got = append(p.got, received{r.Method, r.RequestURI, r.Header.Clone(), string(body), m})
	p.mu.Unlock()
	switch {
	case r.Method == http.MethodDelete:
	case r.Method == http.MethodGet && p.stream == nil:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Method == http.MethodGet:
		p.stream(w, r)
	case m.IsNotification() || m.IsReply():
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", "session-1")
		respond(w, m, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"peer","version":"1"}}`)
	default:
		p.handle(w, r, m)
	}
}

// requests returns what came, with this HTTP method and JSON-RPC method ("": any).
func (p *peer) requests(verb, method string) []received {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []received
	for _, r := range p.got {
		if (verb == "" || r.Method == verb) && (method == "" || r.Message.Method == method) {
			out = append(out, r)
		}
	}
	return out
}

func respond(w http.ResponseWriter, m jsonrpc.Message, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// events starts an event stream and returns what writes a piece of it at once.
func events(w http.ResponseWriter) func(format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	flush.Flush()
	return func(format string, args ...any) {
		fmt.Fprintf(w, format, args...)
		flush.Flush()
	}
}

// A sink notes what it hears.
type sink struct {
	mu    sync.Mutex
	heard []string
	ask   func(ctx context.Context, method string, params json.RawMessage) (jsonrpc.Reply, error)
	any   chan struct{} // gets a token for each notification, if there is room
}

func newSink() *sink { return &sink{any: make(chan struct{}, 100)} }

func (s *sink) Notify(method string, params json.RawMessage) {
	s.mu.Lock()
	s.heard = append(s.heard, method+" "+string(params))
	s.mu.Unlock()
	select {
	case s.any <- struct{}{}:
	default:
	}
}

func (s *sink) Ask(ctx context.Context, method string, params json.RawMessage) (jsonrpc.Reply, error) {
	s.mu.Lock()
	s.heard = append(s.heard, "? "+method+" "+string(params))
	s.mu.Unlock()
	if s.ask != nil {
		return s.ask(ctx, method, params)
	}
	return jsonrpc.Reply{Result: json.RawMessage(`{"asked":true}`)}, nil
}

func (s *sink) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.heard...)
}

func newHTTP(t testing.TB, o transport.HTTPOptions) *transport.HTTP {
	o.UserAgent = "Mainstem/test"
	h := transport.NewHTTP(o)
	t.Cleanup(h.Close)
	return h
}

// connect returns an initialized session.
func connect(t testing.TB, o transport.HTTPOptions, handler jsonrpc.Sink, listen bool) *transport.HTTPConn {
	t.Helper()
	c := newHTTP(t, o).Open(handler, listen)
	t.Cleanup(func() { c.Close() })
	if _, err := call(t, c, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Notify(t.Context(), "notifications/initialized", nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// A caller is any connection.
type caller interface {
	Call(context.Context, string, jsonrpc.Params, jsonrpc.Sink) (jsonrpc.Reply, error)
}

// call returns result or error of a call as text.
func call(t testing.TB, c caller, method, params string, s jsonrpc.Sink) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	reply, err := c.Call(ctx, method, jsonrpc.NewParams(json.RawMessage(params)), s)
	if err != nil {
		return "", err
	}
	defer reply.Release()
	if reply.Error != nil {
		return "error " + string(reply.Error), nil
	}
	return string(reply.Result), nil
}

// eventually waits for what other goroutines bring about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%s: not within 5 s\n%s", what, buf[:runtime.Stack(buf, true)])
		}
		time.Sleep(5 * time.Millisecond)
	}
}

type sseVector struct {
	ID        string          `json:"id"`
	Title     string          `json:"title"`
	RequestID json.RawMessage `json:"request_id"`
	Stream    string          `json:"stream"`
	Expected  *sseExpected    `json:"expected"`
}

type sseExpected struct {
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// withID makes a vector's stream one for the id that the request has. Where the vector
// asks with a text we ask with a number, and the two change places.
func (v sseVector) withID(id json.RawMessage) string {
	if string(v.RequestID) == `1` {
		return strings.ReplaceAll(v.Stream, `"id":1,`, `"id":`+string(id)+`,`)
	}
	s := strings.ReplaceAll(v.Stream, `"id":1,`, `"id":"`+string(id)+`",`)
	return strings.ReplaceAll(s, `"id":"1",`, `"id":`+string(id)+`,`)
}

func TestEventStreams(t *testing.T) {
	var vectors []sseVector
	data, err := os.ReadFile("testdata/sse.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	vectors = append(vectors, sseVector{ID: "C68", RequestID: []byte("1"), Stream: "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"text\":\"é😀漢\"}}\n\n"})
	vectors[len(vectors)-1].Expected = &sseExpected{Result: []byte(`{"text":"é😀漢"}`)}
	for _, v := range vectors {
		for _, size := range []int{1, 2, 7, 1 << 20} {
			t.Run(fmt.Sprintf("%s_%s_%d", v.ID, v.Title, size), func(t *testing.T) {
				p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
					write := events(w)
					stream := v.withID(m.ID)
					for len(stream) > 0 {
						n := min(size, len(stream))
						write("%s", stream[:n])
						stream = stream[n:]
					}
				})
				c := connect(t, transport.HTTPOptions{URL: p.URL + "/mcp"}, nil, false)
				s := newSink()
				got, err := call(t, c, "tools/call", `{"name":"x"}`, s)
				switch {
				case v.Expected == nil:
					if err == nil {
						t.Fatalf("got %s, want an error", got)
					}
				case err != nil:
					t.Fatal(err)
				case v.Expected.Error != nil:
					compare(t, strings.TrimPrefix(got, "error "), v.Expected.Error)
				default:
					compare(t, got, v.Expected.Result)
				}
				if v.ID == "E008" {
					eventually(t, "the server's request is answered", func() bool {
						return len(s.all()) == 1 && s.all()[0] == "? sampling/createMessage {}"
					})
				}
			})
		}
	}
}

func compare(t *testing.T, got string, want json.RawMessage) {
	t.Helper()
	var b bytes.Buffer
	json.Compact(&b, want)
	if got != b.String() {
		t.Errorf("got %s, want %s", got, b.String())
	}
}

func TestC71_TooLarge(t *testing.T) {
	const limit = 1 << 20
	text := func(m jsonrpc.Message, size int) string {
		frame := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":""}`, m.ID)
		return frame[:len(frame)-2] + strings.Repeat("x", size-len(frame)) + frame[len(frame)-2:]
	}
	rows := []struct {
		name   string
		handle func(http.ResponseWriter, jsonrpc.Message)
		large  bool
	}{
		{"M001 exactly the limit", func(w http.ResponseWriter, m jsonrpc.Message) { io.WriteString(w, text(m, limit)) }, false},
		{"M002 one byte more", func(w http.ResponseWriter, m jsonrpc.Message) {
			w.Header().Set("Content-Length", fmt.Sprint(limit+1))
			io.WriteString(w, text(m, limit+1))
		}, true},
		{"chunked, no length", func(w http.ResponseWriter, m jsonrpc.Message) {
			http.NewResponseController(w).Flush()
			io.WriteString(w, text(m, 6*limit))
		}, true},
		{"M003 gzip", func(w http.ResponseWriter, m jsonrpc.Message) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(gzipped(text(m, 4*limit)))
		}, true},
		{"gzip within the limit", func(w http.ResponseWriter, m jsonrpc.Message) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(gzipped(text(m, limit)))
		}, false},
		{"event", func(w http.ResponseWriter, m jsonrpc.Message) {
			events(w)("data: %s\n\n", text(m, limit+1))
		}, true},
		{"M004 many events", func(w http.ResponseWriter, m jsonrpc.Message) {
			write := events(w)
			for range 8 {
				write("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":\"%s\"}}\n\n", strings.Repeat("x", limit/2))
			}
			write("data: %s\n\n", text(m, limit))
		}, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
				w.Header().Set("Content-Type", "application/json")
				if m.Method == "tools/list" {
					respond(w, m, `{}`)
					return
				}
				row.handle(w, m)
			})
			c := connect(t, transport.HTTPOptions{URL: p.URL, MaxMessage: limit}, nil, false)
			got, err := call(t, c, "tools/call", `{}`, newSink())
			tooLarge, ok := errors.AsType[*transport.TooLarge](err)
			if ok != row.large || ok && tooLarge.Limit != limit || !ok && err != nil {
				t.Errorf("got %.60s, %v, want too large: %v", got, err, row.large)
			}
			if _, err := call(t, c, "tools/list", `{}`, nil); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

func TestC80_SessionGone(t *testing.T) {
	rows := []struct {
		name, body string
		want       string // the reply; "": session gone
	}{
		{"C80 empty body", "", ""},
		{"C80 text", "Session not found", ""},
		{"C80 JSON-RPC error", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`, ""},
		{"H11 method not found", `{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no such method","data":[1]}}`, `error {"code":-32601,"message":"no such method","data":[1]}`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusNotFound)
				io.WriteString(w, row.body)
			})
			c := connect(t, transport.HTTPOptions{URL: p.URL}, nil, false)
			got, err := call(t, c, "prompts/list", `{}`, nil)
			_, gone := errors.AsType[*transport.SessionGone](err)
			if gone != (row.want == "") || got != row.want {
				t.Errorf("got %q, %v, want %q", got, err, row.want)
			}
			select {
			case <-c.Done():
				if !gone {
					t.Error("the connection is done")
				}
			default:
				if gone {
					t.Error("the connection is not done")
				}
			}
			c.Close()
			if n := len(p.requests("DELETE", "")); (n == 0) != gone {
				t.Errorf("%d DELETE requests", n)
			}
		})
	}
}

func TestC86_StreamWithoutAnswer(t *testing.T) {
	rows := []struct {
		name string
		cut  func(w http.ResponseWriter)
	}{
		{"C86 ends", func(http.ResponseWriter) {}},
		{"C86 breaks", func(w http.ResponseWriter) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			conn.Close()
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
				events(w)("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n")
				row.cut(w)
			})
			c := connect(t, transport.HTTPOptions{URL: p.URL}, nil, false)
			s := newSink()
			began := time.Now()
			_, err := call(t, c, "tools/call", `{}`, s)
			if err == nil || !strings.Contains(err.Error(), "outcome is unknown") || time.Since(began) > 5*time.Second {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
			if got := s.all(); len(got) != 1 {
				t.Errorf("heard %q", got)
			}
			if n := len(p.requests("POST", "tools/call")); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

func TestC87_StreamStaysOpen(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/1.1 over TLS", "HTTP/2"} {
		t.Run(proto, func(t *testing.T) {
			var conns sync.Map
			p := &peer{handle: func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
				events(w)("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.ID)
				<-r.Context().Done()
			}}
			p.Server = httptest.NewUnstartedServer(p)
			p.Config.ConnState = func(c net.Conn, s http.ConnState) {
				if s == http.StateClosed {
					conns.Delete(c)
				} else {
					conns.Store(c, s)
				}
			}
			if p.EnableHTTP2 = proto == "HTTP/2"; proto == "HTTP/1.1" {
				p.Start()
			} else {
				p.StartTLS()
			}
			defer p.Close()
			h := newHTTP(t, transport.HTTPOptions{URL: p.URL})
			h.Trust(p.Server)
			before := runtime.NumGoroutine()
			c := h.Open(nil, false)
			for range 100 {
				if _, err := call(t, c, "tools/call", `{}`, nil); err != nil {
					t.Fatal(err)
				}
			}
			c.Close()
			eventually(t, "sockets gone", func() bool {
				n := 0
				conns.Range(func(any, any) bool { n++; return true })
				return n <= 1 // HTTP/2 keeps its one connection
			})
			eventually(t, "goroutines gone", func() bool { return runtime.NumGoroutine() <= before+6 })
		})
	}
}

func TestConcurrentCalls_C152(t *testing.T) {
	p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
		if len(m.ID)%2 == 0 {
			events(w)("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, jsonrpc.Get(m.Params, "arguments"))
			return
		}
		respond(w, m, string(jsonrpc.Get(m.Params, "arguments")))
	})
	h := newHTTP(t, transport.HTTPOptions{URL: p.URL})
	var running sync.WaitGroup
	for n := range 20 {
		running.Go(func() {
			c := h.Open(nil, false)
			defer c.Close()
			for i := range 10 {
				want := fmt.Sprintf(`{"echo":"%d/%d"}`, n, i)
				if got, err := call(t, c, "tools/call", `{"name":"echo","arguments":`+want+`}`, nil); got != want {
					t.Errorf("got %s, %v, want %s", got, err, want)
				}
			}
		})
	}
	running.Wait()
	seen := map[string]bool{}
	for _, r := range p.requests("POST", "tools/call") {
		if seen[string(r.Message.ID)] {
			t.Fatalf("id %s twice", r.Message.ID)
		}
		seen[string(r.Message.ID)] = true
	}
}

func TestC186_Order(t *testing.T) {
	const message = `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"n":%d}}` + "\n\n"
	p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
		write := events(w)
		write(message, 1)
		write(message, 2)
		write("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":1,\"progressToken\":%s}}\n\n", m.ID)
		write("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}\n\n", m.ID)
		write("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
		write("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.ID)
	})
	session := newSink()
	c := connect(t, transport.HTTPOptions{URL: p.URL}, session, false)
	s := newSink()
	got, err := call(t, c, "tools/call", `{"name":"x","_meta":{"progressToken":"mine","k":1}}`, s)
	if got != "{}" || err != nil {
		t.Fatal(got, err)
	}
	want := `notifications/message {"n":1}|notifications/message {"n":2}|notifications/progress {"progress":1,"progressToken":"mine"}`
	if heard := strings.Join(s.all(), "|"); heard != want {
		t.Errorf("heard %s, want %s", heard, want)
	}
	if heard := session.all(); len(heard) != 1 || !strings.HasPrefix(heard[0], "notifications/tools/list_changed") {
		t.Errorf("the session heard %q", heard)
	}
	sent := p.requests("POST", "tools/call")[0]
	if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%[1]s,"method":"tools/call","params":{"name":"x","_meta":{"k":1,"progressToken":%[1]s}}}`, sent.Message.ID); sent.Body != want {
		t.Errorf("sent %s, want %s", sent.Body, want)
	}
	eventually(t, "N1 ping is answered", func() bool {
		for _, r := range p.requests("POST", "") {
			if r.Body == fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, sent.Message.ID) {
				return true
			}
		}
		return false
	})
}

func TestC182_Progress(t *testing.T) {
	both := make(chan struct{})
	var ids sync.WaitGroup
	ids.Add(2)
	go func() { ids.Wait(); close(both) }()
	p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
		ids.Done()
		<-both
		write := events(w)
		token := jsonrpc.Get(jsonrpc.Get(m.Params, "_meta"), "progressToken")
		write("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":1,\"message\":%s}}\n\n", token, jsonrpc.Get(m.Params, "name"))
		write("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":999999,\"progress\":1}}\n\n")
		write("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.ID)
	})
	c := connect(t, transport.HTTPOptions{URL: p.URL}, nil, false)
	var running sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		running.Go(func() {
			s := newSink()
			if _, err := call(t, c, "tools/call", `{"name":"`+name+`","_meta":{"progressToken":1}}`, s); err != nil {
				t.Error(err)
			}
			want := `notifications/progress {"progressToken":1,"progress":1,"message":"` + name + `"}`
			if got := s.all(); len(got) != 1 || got[0] != want {
				t.Errorf("heard %q, want %q", got, want)
			}
		})
	}
	running.Wait()
}

func TestQuestion(t *testing.T) {
	answered := make(chan string, 1)
	p := newPeer(t, nil)
	p.handle = func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
		write := events(w)
		write("data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{\"m\":1}}\n\n")
		eventually(t, "answer", func() bool {
			for _, r := range p.requests("POST", "") {
				if r.Message.IsReply() {
					answered <- r.Body
					return true
				}
			}
			return false
		})
		write("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.ID)
	}
	rows := []struct {
		name string
		ask  func(context.Context, string, json.RawMessage) (jsonrpc.Reply, error)
		want string
	}{
		{"result", nil, `{"jsonrpc":"2.0","id":"q","result":{"asked":true}}`},
		{"error", func(context.Context, string, json.RawMessage) (jsonrpc.Reply, error) {
			return jsonrpc.Reply{}, &jsonrpc.Error{Code: -32601, Message: "no"}
		}, `{"jsonrpc":"2.0","id":"q","error":{"code":-32601,"message":"no"}}`},
		{"internal error is not told", func(context.Context, string, json.RawMessage) (jsonrpc.Reply, error) {
			return jsonrpc.Reply{}, errors.New("secret")
		}, `{"jsonrpc":"2.0","id":"q","error":{"code":-32603,"message":"the request could not be answered"}}`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p.mu.Lock()
			p.got = nil
			p.mu.Unlock()
			c := connect(t, transport.HTTPOptions{URL: p.URL}, nil, false)
			s := newSink()
			s.ask = row.ask
			if _, err := call(t, c, "tools/call", `{}`, s); err != nil {
				t.Fatal(err)
			}
			if got := <-answered; got != row.want {
				t.Errorf("answered %s, want %s", got, row.want)
			}
		})
	}
}

func TestC98_NoAnswer(t *testing.T) {
	rows := []struct {
		name, kind, body string
		status           int
		want             string
	}{
		{"C98 login page", "text/html; charset=utf-8", "<html>\x00<h1>Log\nin</h1>", 200, "unexpected answer: HTTP 200, text/html: <html> <h1>Log in</h1>"},
		{"C98 envelope", "application/json", `{"Output":1}`, 200, `unexpected answer: HTTP 200, application/json: {"Output":1}`},
		{"C97 method not allowed", "", "", 405, "unexpected answer: HTTP 405, no content type"},
		{"no body", "application/json", "", 200, "unexpected answer: HTTP 200, application/json"},
		{"C70 invalid UTF-8", "application/json", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xe9\"}", 200, `unexpected answer: HTTP 200, application/json: {"jsonrpc":"2.0","id":1,"result":"` + "\uFFFD" + `"}`},
		{"M013", "text/plain", "upstream secret-header-value is down", 502, "unexpected answer: HTTP 502, text/plain: upstream [redacted] is down"},
		{"another id", "application/json", `{"jsonrpc":"2.0","id":"1","result":{}}`, 200, `unexpected answer: HTTP 200, application/json: {"jsonrpc":"2.0","id":"1","result":{}}`},
		{"large error page", "text/html", strings.Repeat("x", 6<<20), 500, "unexpected answer: HTTP 500, text/html: " + strings.Repeat("x", 200) + "…"},
		{"error that is none", "application/json", `{"jsonrpc":"2.0","id":1,"error":"x"}`, 400, `unexpected answer: HTTP 400, application/json: {"jsonrpc":"2.0","id":1,"error":"x"}`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
				w.Header()["Content-Type"] = nil
				if row.kind != "" {
					w.Header().Set("Content-Type", row.kind)
				}
				w.WriteHeader(row.status)
				io.WriteString(w, row.body)
			})
			c := newHTTP(t, transport.HTTPOptions{URL: p.URL, Header: http.Header{"X-Key": {"secret-header-value"}}}).Open(nil, false)
			_, err := call(t, c, "tools/call", `{}`, nil)
			status, ok := errors.AsType[*transport.StatusError](err)
			if !ok || status.Status != row.status || err.Error() != row.want {
				t.Errorf("got %v, want %s", err, row.want)
			}
		})
	}
}

func TestErrorBodies(t *testing.T) {
	for _, status := range []int{200, 400, 403, 404, 500} {
		t.Run(fmt.Sprint("C55_C102_", status), func(t *testing.T) {
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"x","data":{"n":9007199254740993}}}`, m.ID)
			})
			c := newHTTP(t, transport.HTTPOptions{URL: p.URL}).Open(nil, false)
			got, err := call(t, c, "resources/list", `{}`, nil)
			if want := `error {"code":-32601,"message":"x","data":{"n":9007199254740993}}`; got != want || err != nil {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		})
	}
}

func gzipped(s string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, s)
	w.Close()
	return b.Bytes()
}
