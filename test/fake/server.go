// Package fake is an MCP server that behaves, or misbehaves, exactly as a test says, and remembers all that it is told.
//
// It speaks Streamable HTTP, the older HTTP+SSE, and stdio (through a puppet process), in the era of sessions and in that of 2026-07-28.
// By default it is strict: what the specification demands of a client is demanded here.
package fake

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Modern is the version of the protocol that has no sessions.
const Modern = "2026-07-28"

// Legacy lists the versions with a handshake, newest first.
func Legacy() []string { return []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} }

// Options say how a server behaves; the zero value is a well-behaved server without tools that speaks all versions with a handshake.
type Options struct {
	Tools    []string           // definitions as raw JSON, well-formed or not
	PageSize int                // tools a page; 0: all on one
	Calls    map[string]Handler // by raw tool name; the others echo their arguments
	Handlers map[string]Handler // by method, instead of the usual answer

	Modern       bool     // speaks 2026-07-28
	NoHandshake  bool     // and nothing else
	Versions     []string // with a handshake, the first is what it answers to all others; nil: all of them
	Capabilities string   // raw; empty: {"tools":{"listChanged":true}}

	Stateless bool // no session ids
	NoStream  bool // GET is answered 405
	Framing   Framing
	Intercept Interceptor
	// Started is called for each process of a stdio server before it gets its first message.
	Started func(p *Process)
}

// An Interceptor may answer an HTTP request before anything else looks at it; it says whether it did.
type Interceptor func(w http.ResponseWriter, r *http.Request, body []byte) bool

// A Handler answers one request. If it returns without an answer, there is none: the response ends, or on a pipe nothing comes.
type Handler func(c *Call)

// A Server is one fake MCP server. All methods may be called from any goroutine.
type Server struct {
	*record
	URL     string   // of the endpoint; empty over stdio
	Command []string // that starts the server; nil over HTTP

	opt   Options
	front *listener
	ids   atomic.Int64 // of our questions and sessions

	mu        sync.Mutex
	tools     []string
	versions  map[string]string // negotiated version by session
	running   map[string]*Call
	questions map[string]chan json.RawMessage
	feeds     map[*feed]struct{}
	processes []*Process
	intercept Interceptor
}

// A feed is a stream for what the server says on its own: a GET stream, a listen, or a process.
type feed struct {
	send   func(message []byte)
	listen json.RawMessage // id of the subscriptions/listen request, nil for the others
}

func newServer(o Options) *Server {
	return &Server{
		record: newRecord(), opt: o, tools: o.Tools, intercept: o.Intercept,
		versions: map[string]string{}, running: map[string]*Call{},
		questions: map[string]chan json.RawMessage{}, feeds: map[*feed]struct{}{},
	}
}

// Tool returns a well-formed tool definition.
func Tool(name string) string {
	quoted, _ := json.Marshal(name)
	return `{"name":` + string(quoted) + `,"description":"A tool.","inputSchema":{"type":"object","properties":{"q":{"type":"string"}}}}`
}

// Tools returns well-formed definitions of several tools.
func Tools(names ...string) []string {
	var out []string
	for _, name := range names {
		out = append(out, Tool(name))
	}
	return out
}

// SetTools replaces the tools that are listed from now on. Nobody is told; see Announce.
func (s *Server) SetTools(definitions ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = definitions
}

// SetIntercept replaces Options.Intercept from now on.
func (s *Server) SetIntercept(f Interceptor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

// intercepted lets a test answer a request before anything else does.
func (s *Server) intercepted(w http.ResponseWriter, r *http.Request, body []byte) bool {
	s.mu.Lock()
	f := s.intercept
	s.mu.Unlock()
	return f != nil && f(w, r, body)
}

// Announce tells every client that the list of tools has changed.
func (s *Server) Announce() { s.Broadcast("notifications/tools/list_changed", `{}`) }

// Broadcast sends a notification on every stream that is open for what the server says on its own.
func (s *Server) Broadcast(method, params string) {
	for _, f := range s.openFeeds() {
		own := params
		if f.listen != nil {
			own = fmt.Sprintf(`{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}`, f.listen)
		}
		f.send(notification(method, own))
	}
}

// Feeds returns how many such streams are open.
func (s *Server) Feeds() int { return len(s.openFeeds()) }

func (s *Server) openFeeds() []*feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.feeds))
}

func (s *Server) addFeed(f *feed) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feeds[f] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.feeds, f)
	}
}

// ForgetSessions ends every session, as a restarted server does.
func (s *Server) ForgetSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.versions)
}

// Sessions returns how many sessions are known.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.versions)
}

// Ask sends a request of the server's own to every open stream and returns the first answer, a whole message.
func (s *Server) Ask(t testing.TB, method, params string) json.RawMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer := s.ask(ctx, method, params, func(m []byte) {
		for _, f := range s.openFeeds() {
			f.send(m)
		}
	})
	if answer == nil {
		t.Fatalf("no answer to the server's own %s", method)
	}
	return answer
}

func (s *Server) ask(ctx context.Context, method, params string, send func([]byte)) json.RawMessage {
	id := fmt.Sprintf(`"ask-%d"`, s.ids.Add(1))
	answer := make(chan json.RawMessage, 1)
	s.mu.Lock()
	s.questions[id] = answer
	s.mu.Unlock()
	send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	select {
	case m := <-answer:
		return m
	case <-ctx.Done():
		return nil
	}
}

// answered hands the answer to a question to whoever asked it.
func (s *Server) answered(m Received) {
	s.mu.Lock()
	waiting := s.questions[string(m.ID)]
	delete(s.questions, string(m.ID))
	s.mu.Unlock()
	if waiting != nil {
		waiting <- json.RawMessage(m.Body)
	}
}

// serve answers a request; it returns when the answer is complete.
func (s *Server) serve(c *Call) {
	key := c.key()
	s.mu.Lock()
	s.running[key] = c
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.running, key)
		s.mu.Unlock()
	}()
	if h := s.opt.Handlers[c.Method]; h != nil {
		h(c)
		return
	}
	s.usual(c)
}

// cancelled ends the context of the call that a notifications/cancelled names.
func (s *Server) cancelled(m Received) {
	s.mu.Lock()
	c := s.running[m.Session+" "+string(m.Param("requestId"))]
	s.mu.Unlock()
	if c != nil {
		c.cancel()
	}
}

// usual gives the answer of a server as it should be.
func (s *Server) usual(c *Call) {
	switch c.Method {
	case "initialize":
		s.initialize(c)
	case "server/discover":
		s.discover(c)
	case "ping", "logging/setLevel":
		c.Result(`{}`)
	case "tools/list":
		s.list(c)
	case "tools/call":
		h := s.opt.Calls[c.Name()]
		if h == nil {
			h = Echo
		}
		h(c)
	case "subscriptions/listen":
		s.listen(c)
	default:
		c.Error(-32601, "Method not found", "")
	}
}

// Echo answers a call with its arguments as text.
func Echo(c *Call) { c.Text(string(c.Arguments())) }

func (s *Server) initialize(c *Call) {
	if s.opt.NoHandshake {
		c.Error(-32022, "Unsupported protocol version", `{"supported":["`+Modern+`"]}`)
		return
	}
	known := s.opt.Versions
	if known == nil {
		known = Legacy()
	}
	var asked string
	_ = json.Unmarshal(c.Param("protocolVersion"), &asked)
	version := known[0]
	if slices.Contains(known, asked) {
		version = asked
	}
	c.agreed(version)
	c.Result(fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"fake","version":"1"}}`, version, s.capabilities()))
}

func (s *Server) discover(c *Call) {
	if !s.opt.Modern {
		c.Error(-32601, "Method not found", "")
		return
	}
	versions := []string{Modern}
	if !s.opt.NoHandshake {
		versions = append(versions, Legacy()...)
	}
	list, _ := json.Marshal(versions)
	c.Result(fmt.Sprintf(`{"supportedVersions":%s,"capabilities":%s,"ttlMs":60000,"cacheScope":"public"}`, list, s.capabilities()))
}

func (s *Server) capabilities() string {
	if s.opt.Capabilities != "" {
		return s.opt.Capabilities
	}
	return `{"tools":{"listChanged":true}}`
}

// list gives one page of the tools; the cursor is the number of the first tool on it.
func (s *Server) list(c *Call) {
	s.mu.Lock()
	tools := s.tools
	s.mu.Unlock()
	var cursor string
	_ = json.Unmarshal(c.Param("cursor"), &cursor)
	first, _ := strconv.Atoi(cursor)
	if first < 0 || first > len(tools) {
		c.Error(-32602, "unknown cursor", "")
		return
	}
	last, next := len(tools), ""
	if size := s.opt.PageSize; size > 0 && first+size < len(tools) {
		last = first + size
		next = fmt.Sprintf(`,"nextCursor":"%d"`, last)
	}
	c.Result(`{"tools":[` + strings.Join(tools[first:last], ",") + `]` + next + s.hints(c) + `}`)
}

// hints are what a result that may be cached has in 2026-07-28.
func (s *Server) hints(c *Call) string {
	if !c.Modern {
		return ""
	}
	return `,"ttlMs":60000,"cacheScope":"public"`
}

// listen keeps a subscription open until the client leaves.
func (s *Server) listen(c *Call) {
	if !c.Modern {
		c.Error(-32601, "Method not found", "")
		return
	}
	// Whoever has seen the acknowledgement must not miss what is said next, nor see it before.
	var acknowledged sync.Mutex
	acknowledged.Lock()
	remove := s.addFeed(&feed{listen: c.ID, send: func(message []byte) {
		acknowledged.Lock()
		defer acknowledged.Unlock()
		c.out.message(message)
	}})
	defer remove()
	c.Notify("notifications/subscriptions/acknowledged",
		fmt.Sprintf(`{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}`, c.ID))
	acknowledged.Unlock()
	<-c.Context().Done()
}

func notification(method, params string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}
