package fake

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// HTTP starts a server of Streamable HTTP on loopback; it ends with the test.
func HTTP(t testing.TB, o Options) *Server {
	t.Helper()
	s := newServer(o)
	s.listenOn(t, Listen(t), http.HandlerFunc(s.streamable))
	s.URL = "http://" + s.front.addr + "/mcp"
	return s
}

// A listener is the door of a server, which can be shut and opened again.
type listener struct {
	addr    string
	handler http.Handler
	server  *http.Server
}

func (s *Server) listenOn(t testing.TB, l net.Listener, h http.Handler) {
	t.Helper()
	s.front = &listener{addr: l.Addr().String(), handler: h, server: &http.Server{Handler: h}}
	go s.front.server.Serve(l)
	t.Cleanup(s.Shut)
}

// Shut breaks every connection and refuses new ones.
func (s *Server) Shut() { _ = s.front.server.Close() }

// Reopen takes connections again, on the same port.
func (s *Server) Reopen(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", s.front.addr)
	if err != nil {
		t.Fatal(err)
	}
	s.listenOn(t, l, s.front.handler)
}

// Host returns host and port.
func (s *Server) Host() string { return s.front.addr }

func (s *Server) receive(r *http.Request) (Received, error) {
	body, err := io.ReadAll(r.Body)
	got := Received{
		HTTP: r.Method, URI: r.RequestURI, Header: r.Header.Clone(), Host: r.Host, Body: body,
		Session: r.Header.Get("Mcp-Session-Id"),
	}
	got.parse()
	if r.Method != http.MethodPost {
		got.Method = r.Method
	}
	return got, err
}

func (s *Server) streamable(w http.ResponseWriter, r *http.Request) {
	got, err := s.receive(r)
	if err != nil {
		return
	}
	s.add(got)
	if s.intercepted(w, r, got.Body) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, got)
	case http.MethodGet:
		s.stream(w, r, got)
	case http.MethodDelete:
		s.mu.Lock()
		delete(s.versions, got.Session)
		s.mu.Unlock()
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, got Received) {
	if accept := r.Header.Get("Accept"); !strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream") {
		http.Error(w, "Accept must list application/json and text/event-stream", http.StatusNotAcceptable)
		return
	}
	out := &response{framing: s.opt.Framing, r: r, w: w}
	defer out.end()
	c := s.newCall(r.Context(), got, out)
	defer c.cancel()
	c.W = w
	c.Modern = s.opt.Modern && (r.Header.Get("Mcp-Protocol-Version") == Modern || got.Method == "server/discover")
	if !s.admitted(c) {
		return
	}
	switch {
	case got.ID != nil && got.Method != "reply":
		s.serve(c)
	case got.Method == "reply":
		s.answered(got)
		w.WriteHeader(http.StatusAccepted)
	default:
		s.noted(got)
		w.WriteHeader(http.StatusAccepted)
	}
}

// noted does what a notification asks for.
func (s *Server) noted(m Received) {
	if m.Method == "notifications/cancelled" {
		s.cancelled(m)
	}
}

// admitted checks what the specification demands of the headers of a POST, and refuses the request if it is not so.
func (s *Server) admitted(c *Call) bool {
	if c.Modern {
		return c.modernHeaders()
	}
	if c.Method == "initialize" || s.opt.Stateless {
		return true
	}
	return s.known(c.W, c.Received)
}

// known checks the session and its version.
func (s *Server) known(w http.ResponseWriter, got Received) bool {
	s.mu.Lock()
	version, ok := s.versions[got.Session]
	s.mu.Unlock()
	sent := got.Header.Get("Mcp-Protocol-Version")
	switch {
	case got.Session == "":
		http.Error(w, "Bad Request: no valid session ID", http.StatusBadRequest)
	case !ok:
		http.Error(w, "session not found", http.StatusNotFound)
	case sent != version && (sent != "" || version >= "2025-06-18"):
		http.Error(w, fmt.Sprintf("version header %q, agreed on %q", sent, version), http.StatusBadRequest)
	default:
		return true
	}
	return false
}

// modernHeaders checks the envelope of a request of 2026-07-28.
func (c *Call) modernHeaders() bool {
	var version, name string
	_ = json.Unmarshal(c.Param("_meta", "io.modelcontextprotocol/protocolVersion"), &version)
	_ = json.Unmarshal(c.Param("name"), &name)
	wrong := ""
	switch h := c.Header; {
	case c.ID != nil && version != h.Get("Mcp-Protocol-Version"):
		wrong = fmt.Sprintf("version header %q, body %q", h.Get("Mcp-Protocol-Version"), version)
	case h.Get("Mcp-Method") != c.Method:
		wrong = fmt.Sprintf("method header %q, body %q", h.Get("Mcp-Method"), c.Method)
	case decoded(h.Get("Mcp-Name")) != name:
		wrong = fmt.Sprintf("name header %q, body %q", h.Get("Mcp-Name"), name)
	case c.ID != nil && c.Param("_meta", "io.modelcontextprotocol/clientCapabilities") == nil:
		wrong = "no client capabilities"
	default:
		return true
	}
	c.W.Header().Set("Content-Type", "application/json")
	c.W.WriteHeader(http.StatusBadRequest)
	c.Error(-32020, wrong, "")
	return false
}

// decoded undoes the sentinel of a header value.
func decoded(value string) string {
	inner, ok := strings.CutPrefix(value, "=?base64?")
	if !ok {
		return value
	}
	b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
	if err != nil {
		return value
	}
	return string(b)
}

// stream serves the GET stream of a session.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, got Received) {
	if s.opt.NoStream || s.opt.Stateless || s.opt.NoHandshake {
		http.Error(w, "no stream", http.StatusMethodNotAllowed)
		return
	}
	if !s.known(w, got) {
		return
	}
	out := &response{framing: s.opt.Framing, r: r, w: w}
	defer out.end()
	out.mu.Lock()
	remove := s.addFeed(&feed{send: out.message}) // before the client can know that it listens
	defer remove()
	out.open()
	_ = http.NewResponseController(w).Flush()
	out.mu.Unlock()
	<-r.Context().Done()
}
