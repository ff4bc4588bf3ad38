package streamable_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/front/streamable"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// A fake is a server with the manners of the proxy. Calls go to the test.
type fake struct {
	served atomic.Int64  // messages that came through
	delay  time.Duration // before an initialize is answered
	call   func(ctx context.Context, r proxy.Request, s proxy.Stream) (jsonrpc.Reply, error)
}

var errCancelled = errors.New("cancelled by the client")

func (f *fake) Endpoint(server string) bool { return server == "files" }

func (f *fake) Serve(ctx context.Context, r proxy.Request, s proxy.Stream) {
	f.served.Add(1)
	if r.Message.IsNotification() {
		if r.Message.Method == protocol.Cancelled {
			r.Session.Cancel(jsonrpc.Get(r.Message.Params, "requestId"), errCancelled)
		}
		return
	}
	ctx, done, err := r.Session.Begin(ctx, r.Message.ID)
	if err != nil {
		_ = s.Reply(failure(protocol.CodeInvalidRequest, err.Error()))
		return
	}
	defer done()
	reply, err := f.answer(ctx, r, s)
	if err == nil {
		_ = s.Reply(reply)
	}
}

func (f *fake) answer(ctx context.Context, r proxy.Request, s proxy.Stream) (jsonrpc.Reply, error) {
	era, known := protocol.EraOf(r.Session.Version())
	if !known {
		era = protocol.Legacy
	}
	method, ok := protocol.MethodOf(r.Message.Method)
	if !ok || !method.Knows(era) {
		return failure(protocol.CodeMethodNotFound, "Method not found"), nil
	}
	switch r.Message.Method {
	case protocol.Initialize:
		time.Sleep(f.delay)
		asked, ok := jsonrpc.Unquote(jsonrpc.Get(r.Message.Params, "protocolVersion"))
		if !ok {
			return failure(protocol.CodeInvalidParams, "no version"), nil
		}
		r.Session.Negotiated(protocol.Negotiate(asked), nil, nil)
		return result(`{"protocolVersion":"` + protocol.Negotiate(asked) + `","capabilities":{},"serverInfo":{"name":"fake","version":"1"}}`), nil
	case protocol.CallTool, protocol.Listen:
		if f.call != nil {
			return f.call(ctx, r, s)
		}
	}
	return result(`{}`), nil
}

func result(raw string) jsonrpc.Reply { return jsonrpc.Reply{Result: json.RawMessage(raw)} }

func failure(code int, text string) jsonrpc.Reply {
	return jsonrpc.Reply{Error: protocol.ErrorObject(code, text, nil)}
}

// A site is a Handler that is being served, and a client of it.
type site struct {
	t       testing.TB
	fake    *fake
	table   *session.Table
	handler *streamable.Handler
	http    *http.Client
	url     string
	session string
}

// open serves on loopback. When the test ends nothing may run any more.
func open(t testing.TB, f *fake) *site {
	t.Helper()
	before := runtime.NumGoroutine()
	s := build(t, f, streamable.Options{}, session.TableOptions{})
	server := httptest.NewServer(s.mux())
	transport := &http.Transport{}
	s.http, s.url = &http.Client{Transport: transport}, server.URL+"/mcp"
	t.Cleanup(func() {
		s.handler.Close()
		transport.CloseIdleConnections()
		server.Close()
		for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				t.Fatalf("goroutines are left:\n%s", stacks[:runtime.Stack(stacks, true)])
			}
			runtime.Gosched()
		}
	})
	return s
}

func build(t testing.TB, f *fake, o streamable.Options, to session.TableOptions) *site {
	s := &site{t: t, fake: f, table: session.NewTable(to)}
	s.handler = streamable.New(f, s.table, o)
	return s
}

func (s *site) mux() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/servers/"), "/mcp")
		h, ok := s.handler.Endpoint(name)
		if !ok {
			http.NotFound(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// openBubble serves in memory, inside a bubble of synctest.
func openBubble(t *testing.T, f *fake, to session.TableOptions) *site {
	s := build(t, f, streamable.Options{}, to)
	ln := newMemory()
	server := &http.Server{Handler: s.mux()}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(ln) })
	transport := &http.Transport{DialContext: ln.dial}
	s.http, s.url = &http.Client{Transport: transport}, "http://memory/mcp"
	t.Cleanup(func() {
		s.handler.Close()
		transport.CloseIdleConnections()
		_ = server.Close()
		serving.Wait()
	})
	return s
}

// memory is a listener whose connections are pipes.
type memory struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newMemory() *memory { return &memory{conns: make(chan net.Conn), done: make(chan struct{})} }

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.done) })
	return nil
}

func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (m *memory) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case m.conns <- far:
		return near, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

const usual = "application/json, text/event-stream"

// do sends a request. Headers are name, value pairs; an empty value removes one.
func (s *site) do(ctx context.Context, method, body string, headers ...string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", usual)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.session != "" {
		r.Header.Set("Mcp-Session-Id", s.session)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	response, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return response
}

// post sends a message and returns the whole answer.
func (s *site) post(body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	response := s.do(s.t.(interface{ Context() context.Context }).Context(), http.MethodPost, body, headers...)
	return response, s.read(response)
}

func (s *site) read(response *http.Response) string {
	s.t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(body)
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// begin opens a session.
func (s *site) begin() *site {
	s.t.Helper()
	response, body := s.post(hello)
	if s.session = response.Header.Get("Mcp-Session-Id"); s.session == "" {
		s.t.Fatalf("no session: %d %s", response.StatusCode, body)
	}
	return s
}

func request(id, method, params string) string {
	if params == "" {
		params = `{}`
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// modern are the headers of a request of 2026-07-28.
func modern(method, name string) []string {
	headers := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		headers = append(headers, "Mcp-Name", name)
	}
	return headers
}

// An events reads an event stream.
type events struct {
	t  testing.TB
	in *bufio.Reader
}

func eventsOf(t testing.TB, response *http.Response) *events {
	t.Helper()
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("status %d, Content-Type %q", response.StatusCode, got)
	}
	return &events{t, bufio.NewReader(response.Body)}
}

// next returns the next event or comment; false at the stream's end.
func (e *events) next() (id, data string, ok bool) {
	for {
		line, err := e.in.ReadString('\n')
		if err != nil {
			return "", "", false
		}
		line = strings.TrimSuffix(line, "\n")
		switch name, value, _ := strings.Cut(line, ": "); name {
		case "":
			if id != "" || data != "" {
				return id, data, true
			}
		case ":":
			return "", ":", true
		case "id":
			id = value
		case "data":
			data = value
		}
	}
}

// rest returns the data of all events that follow.
func (e *events) rest() (data []string) {
	for {
		_, d, ok := e.next()
		if !ok {
			return data
		}
		if d != "" {
			data = append(data, d)
		}
	}
}
