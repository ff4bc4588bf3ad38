// Package session keeps one downstream session: what its client negotiated, the calls
// that run in it, and the event streams that it listens to or may come back for.
package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/proxy/access"
)

// ErrEnded is why the calls of a session are cancelled that ends before them.
var ErrEnded = errors.New("the session has ended")

// A Session is one MCP session of a client, or what stands for it where there is none:
// a request of 2026-07-28 gets one of its own that ends with it. Its methods may be
// called from any goroutine.
type Session struct {
	// set when it is made, never changed
	id       string // "" of a session that stands alone
	caller   access.Caller
	endpoint string
	table    *Table // nil: it stands alone

	mu           sync.Mutex // guards what follows
	version      string
	capabilities json.RawMessage
	clientInfo   json.RawMessage
	level        string
	initialized  bool
	ended        bool
	done         chan struct{} // made when somebody asks for it
	running      []running
	kept         []keepsake
	streams      map[uint64]*Stream // those a client may come back to, by number
	listeners    []*Stream          // the last one gets what belongs to no call
	unheard      [][]byte           // notifications that wait for a listener

	// guarded by the table
	holds int       // requests and streams that keep it from being idle
	used  time.Time // when the last of them ended
	older *Session
	newer *Session
}

// A running call can be cancelled by the id that the client gave it. Sessions have few
// at a time, which a list finds sooner than a map.
type running struct {
	id     string
	cancel context.CancelCauseFunc
}

type keepsake struct {
	key string
	c   io.Closer
}

// NewThrowaway returns a session that stands alone: in no table, with no id. The raw
// values are kept, not copied.
func NewThrowaway(caller access.Caller, endpoint, version string, capabilities, clientInfo json.RawMessage) *Session {
	return &Session{caller: caller, endpoint: endpoint, version: version, capabilities: capabilities, clientInfo: clientInfo, initialized: true}
}

// ID is what the client sends in Mcp-Session-Id; "" of a session that stands alone.
func (s *Session) ID() string { return s.id }

// Caller is whose session it is.
func (s *Session) Caller() access.Caller { return s.caller }

// Endpoint is where the session was opened; it is valid nowhere else.
func (s *Session) Endpoint() string { return s.endpoint }

// Version is the negotiated protocol version, "" before initialize was answered.
func (s *Session) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Capabilities are the client's, as it declared them.
func (s *Session) Capabilities() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.capabilities
}

// ClientInfo is what the client calls itself; nil if it said nothing.
func (s *Session) ClientInfo() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clientInfo
}

// What a session keeps of an initialize for as long as it lives. Real clients need a
// few hundred bytes; a session must not be a way to fill our memory.
const (
	maxCapabilities = 8 << 10
	maxClientInfo   = 2 << 10
)

// Negotiated notes what initialize agreed on. The raw values are copied; one that is
// unreasonably large counts as not given.
func (s *Session) Negotiated(version string, capabilities, clientInfo json.RawMessage) {
	capabilities, clientInfo = keep(capabilities, maxCapabilities), keep(clientInfo, maxClientInfo)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.capabilities, s.clientInfo = version, capabilities, clientInfo
}

func keep(raw json.RawMessage, limit int) json.RawMessage {
	if len(raw) > limit {
		return nil
	}
	return bytes.Clone(raw)
}

// Initialized notes that the client has sent notifications/initialized.
func (s *Session) Initialized() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.initialized = true
}

// IsInitialized reports whether requests may be sent to the client (2025-11-25,
// basic/lifecycle).
func (s *Session) IsInitialized() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initialized
}

// Level is the log level that the client asked for, "" if it never did.
func (s *Session) Level() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

// SetLevel notes the log level that the client asks for.
func (s *Session) SetLevel(level string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}

// Begin makes a request of the client cancellable by its id: by Cancel, and by the end
// of the session. Whoever serves the request calls it, and the returned func when the
// request is answered. An id that is in use is an *jsonrpc.Error.
func (s *Session) Begin(ctx context.Context, id json.RawMessage) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, nil, ErrEnded
	}
	if s.find(id) >= 0 {
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: a request with this id is still running"}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	call := running{string(id), cancel}
	s.running = append(s.running, call)
	return ctx, func() { s.finish(call) }, nil
}

func (s *Session) find(id []byte) int {
	for i := range s.running {
		if s.running[i].id == string(id) {
			return i
		}
	}
	return -1
}

func (s *Session) finish(call running) {
	s.mu.Lock()
	if i := s.find([]byte(call.id)); i >= 0 {
		last := len(s.running) - 1
		s.running[i] = s.running[last]
		s.running[last] = running{}
		s.running = s.running[:last]
		if last == 0 && cap(s.running) > 16 { // a burst must not cost memory for ever
			s.running = nil
		}
	}
	s.mu.Unlock()
	call.cancel(nil)
}

// Cancel cancels a running request: cause becomes context.Cause of its context. It
// reports whether there was one; an id that is not or no longer known means nothing
// (2025-11-25, basic/utilities/cancellation).
func (s *Session) Cancel(id json.RawMessage, cause error) bool {
	s.mu.Lock()
	i := s.find(id)
	var cancel context.CancelCauseFunc
	if i >= 0 {
		cancel = s.running[i].cancel
	}
	s.mu.Unlock()
	if cancel == nil {
		return false
	}
	cancel(cause)
	return true
}

// Keep ties c to the session: it is closed with it, or now if the session has ended.
// What was kept under the same key is closed.
func (s *Session) Keep(key string, c io.Closer) {
	s.mu.Lock()
	var old io.Closer
	i := slices.IndexFunc(s.kept, func(k keepsake) bool { return k.key == key })
	switch {
	case s.ended:
		old = c
	case i >= 0 && s.kept[i].c == c: // two calls brought the same one
	case i >= 0:
		old, s.kept[i].c = s.kept[i].c, c
	default:
		s.kept = append(s.kept, keepsake{key, c})
	}
	s.mu.Unlock()
	if old != nil {
		_ = old.Close() // nothing depends on how it went away
	}
}

// Kept returns what was kept under key.
func (s *Session) Kept(key string) (io.Closer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kept {
		if k.key == key {
			return k.c, true
		}
	}
	return nil, false
}

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done == nil {
		s.done = make(chan struct{})
		if s.ended {
			close(s.done)
		}
	}
	return s.done
}

// Close ends the session: its calls are cancelled, its streams end, what was kept is
// closed. A session of a table is ended by the table.
func (s *Session) Close() {
	for _, k := range s.end() {
		_ = k.c.Close() // nothing depends on how it went away
	}
}

// end does all of Close but closing what was kept, which may take a while.
func (s *Session) end() []keepsake {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return nil
	}
	s.ended = true
	if s.done != nil {
		close(s.done)
	}
	calls, kept, streams, listeners := s.running, s.kept, s.streams, s.listeners
	s.running, s.kept, s.streams, s.listeners, s.unheard = nil, nil, nil, nil, nil
	s.mu.Unlock()

	for _, call := range calls {
		call.cancel(ErrEnded)
	}
	for _, st := range streams {
		st.discard()
	}
	for _, st := range listeners {
		st.discard()
	}
	return kept
}
