package front_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/proxy/front"
)

// An mcp stands for the MCP endpoints. Its answers name the server; a request to
// /servers/slow/mcp waits until it is let go, closed, or its client leaves.
type mcp struct {
	mu      sync.Mutex
	served  int
	drained chan struct{}
	closed  chan struct{}
	entered chan struct{}
	let     chan struct{}
}

func newMCP() *mcp {
	return &mcp{drained: make(chan struct{}), closed: make(chan struct{}), entered: make(chan struct{}, 10), let: make(chan struct{})}
}

func (m *mcp) Drain() { close(m.drained) }
func (m *mcp) Close() { close(m.closed) }

func (m *mcp) Endpoint(server string) (http.Handler, bool) {
	if server == "unknown" {
		return nil, false
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		m.mu.Lock()
		m.served++
		m.mu.Unlock()
		switch server {
		case "broken":
			panic("a fault of ours")
		case "slow", "stream":
			m.entered <- struct{}{}
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			drained := m.drained
			if server == "slow" {
				drained = nil
			}
			select {
			case <-m.let:
			case <-drained:
			case <-m.closed:
			}
		}
		_, _ = io.WriteString(w, "mcp "+server)
	}), true
}

func (m *mcp) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.served
}

func text(s string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) })
}

func ask(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "localhost:8390"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestRoutes(t *testing.T) {
	ready := false
	routes := front.Routes{MCP: newMCP(), Ready: func() bool { return ready }, Metrics: text("metrics"), Console: text("console")}
	h := front.New(routes, front.Options{}).Handler(true)
	for _, c := range []struct {
		path   string
		status int
		want   string
	}{
		{"/mcp", 200, "mcp "},
		{"/mcp/", 404, ""},
		{"/mcp/view", 404, ""},
		{"/mcp/view/deeper", 404, ""},
		{"/servers/files/mcp", 200, "mcp files"},
		{"/servers/fi%6ces/mcp", 200, "mcp files"},
		{"/servers/unknown/mcp", 404, ""},
		{"/servers//mcp", 404, ""},
		{"/servers/files", 404, ""},
		{"/servers/", 404, ""},
		{"/healthz", 200, "ok"},
		{"/readyz", 503, ""},
		{"/metrics", 200, "metrics"},
		{"/api/v1/servers", 200, "console"},
		{"/", 200, "console"},
		{"/mcpx", 200, "console"},
	} {
		w := ask(h, "GET", c.path)
		if w.Code != c.status || !strings.HasPrefix(w.Body.String(), c.want) {
			t.Errorf("%s: got %d %q, want %d %q", c.path, w.Code, w.Body, c.status, c.want)
		}
	}
	ready = true
	if w := ask(h, "GET", "/readyz"); w.Code != http.StatusOK {
		t.Errorf("/readyz when ready: %d", w.Code)
	}
	h = front.New(front.Routes{MCP: newMCP()}, front.Options{}).Handler(true)
	for _, path := range []string{"/", "/metrics", "/api/v1/servers"} {
		if w := ask(h, "GET", path); w.Code != http.StatusNotFound {
			t.Errorf("%s without its part: %d", path, w.Code)
		}
	}
}

// C190: by which names we may be called.
func TestHost(t *testing.T) {
	m := newMCP()
	door := front.New(front.Routes{MCP: m, Console: text("console")}, front.Options{PublicURL: "https://MCP.example.com/base"})
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8390": 200, "LOCALHOST:1": 200, "127.0.0.1:8390": 200, "127.8.7.6": 200, "[::1]:8390": 200, "[::1]": 200,
		"mcp.example.com": 200, "mcp.example.com:443": 200,
		"evil.example": 403, "localhost.evil.example": 403, "127.0.0.1.nip.io": 403, "example.com": 403, "evil-mcp.example.com": 403, "10.0.0.5": 403,
		"0.0.0.0:8390": 403, "": 403, "localhost:80@evil.example": 403, "[::1": 403, "127.1": 403, "2130706433": 403,
	} {
		for _, path := range []string{"/mcp", "/healthz", "/api/v1/servers"} {
			if path == "/healthz" && want == 200 {
				continue
			}
			if w := ask(door.Handler(true), "POST", path, "Host", host); w.Code != want {
				t.Errorf("Host %q at %s: %d, want %d", host, path, w.Code, want)
			}
		}
		if w := ask(door.Handler(false), "POST", "/mcp", "Host", host); w.Code != http.StatusOK {
			t.Errorf("Host %q on an open listener: %d", host, w.Code)
		}
	}
}

// C189: which pages may use us.
func TestOrigin(t *testing.T) {
	m := newMCP()
	h := front.New(front.Routes{MCP: m, Console: text("console")},
		front.Options{AllowedOrigins: []string{"https://App.example.com/", "http://plain.example:80"}, PublicURL: "https://mcp.example.com:8443/x"}).Handler(true)
	for origin, want := range map[string]int{
		"http://localhost": 200, "http://localhost:3000": 200, "https://127.0.0.1:8390": 200, "http://[::1]:5173": 200,
		"https://app.example.com": 200, "https://app.example.com:443": 200, "http://plain.example": 200, "https://mcp.example.com:8443": 200,
		"https://evil.example": 403, "null": 403, "": 403, "http://app.example.com": 403, "https://app.example.com:8443": 403, "https://mcp.example.com": 403,
		"http://localhost.evil.example": 403, "http://localhost@evil.example": 403, "http://evil.example/http://localhost": 403, "file://": 403,
		"chrome-extension://localhost": 403, "http://127.0.0.1.nip.io": 403, "http://10.0.0.5:8390": 403,
	} {
		for _, path := range []string{"/mcp", "/healthz", "/api/v1/servers"} {
			before := m.count()
			w := ask(h, "POST", path, "Origin", origin)
			if w.Code != want {
				t.Errorf("Origin %q at %s: %d, want %d", origin, path, w.Code, want)
			}
			got, exposed := w.Header().Get("Access-Control-Allow-Origin"), w.Header().Get("Access-Control-Expose-Headers")
			if want == 200 && (got != origin || !strings.Contains(exposed, "Mcp-Session-Id")) || want == 403 && got != "" {
				t.Errorf("Origin %q at %s: allowed %q, exposed %q", origin, path, got, exposed)
			}
			if want == 403 && m.count() != before {
				t.Errorf("Origin %q reached the endpoint", origin)
			}
		}
	}
	if w := ask(h, "POST", "/mcp", "Origin", "http://localhost", "Origin", "https://evil.example"); w.Code != http.StatusForbidden {
		t.Errorf("two origins: %d", w.Code)
	}
	open := front.New(front.Routes{MCP: m}, front.Options{}).Handler(false)
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{"10.0.0.5:8390", "http://10.0.0.5:8390", 200}, // our own pages
		{"10.0.0.5:8390", "http://10.0.0.6:8390", 403},
		{"evil.example:8390", "http://evil.example:8390", 403}, // rebound
	} {
		if w := ask(open, "POST", "/mcp", "Host", c.host, "Origin", c.origin); w.Code != c.want {
			t.Errorf("Origin %s at %s: %d, want %d", c.origin, c.host, w.Code, c.want)
		}
	}
}

// A refusal is, on the REST routes, an error like theirs.
func TestRefusal(t *testing.T) {
	h := front.New(front.Routes{MCP: newMCP(), Console: text("console")}, front.Options{}).Handler(true)
	for _, header := range [][2]string{{"Host", "evil.example"}, {"Origin", "https://evil.example"}} {
		w := ask(h, "GET", "/api/v1/servers", header[0], header[1])
		var problem struct {
			Status int
			Detail string
			Error  struct{ Kind, Message string }
		}
		err := json.Unmarshal(w.Body.Bytes(), &problem)
		if err != nil || w.Code != 403 || w.Header().Get("Content-Type") != "application/problem+json" ||
			problem.Status != 403 || problem.Error.Kind != "other" || problem.Error.Message == "" || problem.Detail != problem.Error.Message {
			t.Errorf("%s: %d %s %q: %v", header[0], w.Code, w.Header().Get("Content-Type"), w.Body, err)
		}
		if w := ask(h, "GET", "/healthz", header[0], header[1]); !strings.HasPrefix(w.Body.String(), "this ") {
			t.Errorf("%s at /healthz: %q", header[0], w.Body)
		}
	}
}

// C149: browsers may send what the protocol needs, and read errors too.
func TestPreflight(t *testing.T) {
	m := newMCP()
	h := front.New(front.Routes{MCP: m}, front.Options{}).Handler(true)
	w := ask(h, "OPTIONS", "/mcp", "Origin", "http://localhost:6274", "Access-Control-Request-Method", "DELETE",
		"Access-Control-Request-Headers", "content-type, mcp-session-id,mcp-param-Region, x-other")
	if w.Code != http.StatusNoContent || m.count() != 0 {
		t.Errorf("got %d, %d requests reached the endpoint", w.Code, m.count())
	}
	for header, want := range map[string][]string{
		"Access-Control-Allow-Origin":  {"http://localhost:6274"},
		"Access-Control-Allow-Methods": {"GET", "POST", "DELETE"},
		"Access-Control-Allow-Headers": {"Content-Type", "Authorization", "Last-Event-ID", "Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "mcp-param-region"},
		"Vary":                         {"Origin"},
	} {
		for _, part := range want {
			if got := w.Header().Get(header); !strings.Contains(got, part) || strings.Contains(got, "x-other") {
				t.Errorf("%s: %q, want %q in it", header, got, part)
			}
		}
	}
	if w := ask(h, "OPTIONS", "/mcp", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST"); w.Code != http.StatusForbidden {
		t.Errorf("a foreign preflight: %d", w.Code)
	}
	if w := ask(h, "GET", "/mcp/view", "Origin", "http://localhost"); w.Code != 404 || w.Header().Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("an error: %d %v", w.Code, w.Header())
	}
}

func TestFaultsAndLog(t *testing.T) {
	var log bytes.Buffer
	h := front.New(front.Routes{MCP: newMCP()}, front.Options{Log: zerolog.New(&log)}).Handler(true)
	if w := ask(h, "POST", "/servers/broken/mcp?token=secret"); w.Code != http.StatusInternalServerError {
		t.Errorf("got %d", w.Code)
	}
	for _, want := range []string{`"panic":"a fault of ours"`, `"level":"error"`, `"status":500`, `"path":"/servers/broken/mcp"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("a query was logged: %s", log.String())
	}
}

// A hall is a Door that serves on loopback.
type hall struct {
	mcp   *mcp
	url   string
	http  *http.Client
	stop  context.CancelFunc
	ended chan error
}

func serve(t *testing.T, o front.Options) *hall {
	t.Helper()
	before := runtime.NumGoroutine()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	transport := &http.Transport{}
	h := &hall{newMCP(), "http://" + ln.Addr().String(), &http.Client{Transport: transport}, stop, make(chan error, 1)}
	go func() { h.ended <- front.New(front.Routes{MCP: h.mcp}, o).Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		transport.CloseIdleConnections()
		for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				t.Fatalf("goroutines are left:\n%s", stacks[:runtime.Stack(stacks, true)])
			}
			runtime.Gosched()
		}
	})
	return h
}

// start sends a request and returns its whole body later.
func (h *hall) start(t *testing.T, path string) chan string {
	body := make(chan string, 1)
	go func() {
		response, err := h.http.Get(h.url + path)
		if err != nil {
			body <- err.Error()
			return
		}
		defer response.Body.Close()
		b, err := io.ReadAll(response.Body)
		if err != nil {
			b = append(b, " "+err.Error()...)
		}
		body <- string(b)
	}()
	<-h.mcp.entered
	return body
}

// C204: an open stream does not hold us, a call is let finish.
func TestStop(t *testing.T) {
	h := serve(t, front.Options{})
	stream, call := h.start(t, "/servers/stream/mcp"), h.start(t, "/servers/slow/mcp")
	h.stop()
	if got := <-stream; got != "mcp stream" {
		t.Errorf("the stream: %s", got)
	}
	select {
	case <-h.mcp.closed:
		t.Error("closed while a call runs")
	default:
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://")); err == nil {
		t.Error("still accepting")
	}
	close(h.mcp.let)
	if got := <-call; got != "mcp slow" {
		t.Errorf("the call: %s", got)
	}
	if err := <-h.ended; err != nil {
		t.Error(err)
	}
	<-h.mcp.closed
}

// C204: a call that takes too long is ended.
func TestStopAfterGrace(t *testing.T) {
	h := serve(t, front.Options{Grace: 10 * time.Millisecond})
	call := h.start(t, "/servers/slow/mcp")
	h.stop()
	if err := <-h.ended; err != nil {
		t.Error(err)
	}
	<-call
}

func TestListenerFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	if err := front.New(front.Routes{MCP: newMCP()}, front.Options{}).Serve(t.Context(), ln); err == nil {
		t.Error("no error")
	}
}

// H40: headers are limited; what is no HTTP ends nothing but its connection.
func TestHostileConnections(t *testing.T) {
	h := serve(t, front.Options{})
	address := strings.TrimPrefix(h.url, "http://")
	for name, c := range map[string]struct{ request, want string }{
		"large headers": {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", "431"},
		"two hosts":     {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", "400"},
		"no HTTP":       {"\x16\x03\x01\x02\x00\r\n\r\n", "400"},
		"absolute form": {"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "403"},
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(conn, c.request) }() // may be cut off
		b := make([]byte, 64)
		n, _ := io.ReadAtLeast(conn, b, 16)
		if !strings.Contains(string(b[:n]), " "+c.want+" ") {
			t.Errorf("%s: %q", name, b[:n])
		}
		_ = conn.Close()
	}
	response, err := h.http.Get(h.url + "/healthz")
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %v", err)
	}
	response.Body.Close()
	h.stop()
	<-h.ended
}

func FuzzHostAndOrigin(f *testing.F) {
	f.Add("localhost:8390", "http://localhost")
	f.Add("[::1", "http://[::1]:80/")
	f.Add("a@b", "null")
	h := front.New(front.Routes{MCP: newMCP()}, front.Options{}).Handler(true)
	f.Fuzz(func(t *testing.T, host, origin string) {
		w := ask(h, "POST", "/mcp", "Host", host, "Origin", origin)
		if w.Code == http.StatusOK && strings.Contains(strings.ToLower(host+origin), "evil") {
			t.Errorf("Host %q, Origin %q were let in", host, origin)
		}
	})
}
