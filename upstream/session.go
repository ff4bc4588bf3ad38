package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

// A Peer is whoever a session with a server is opened for. It outlives calls.
type Peer interface {
	jsonrpc.Sink
	Key() string                   // one session for each: a session id, or a caller
	Capabilities() json.RawMessage // as declared; we declare no more than this
}

// A Session is one session with a server. It connects when it is first used, and anew
// when the connection was lost. Any goroutine may use it.
type Session struct {
	u     *Upstream
	peer  Peer // nil for the house's own
	house bool
	key   string
	era   protocol.Era // in which a server of both eras is to be spoken to; 0: either

	mu      sync.Mutex // guards what follows
	link    *link      // nil while there is none
	opening *opening   // the attempt that is running; nil: none
	failed  error      // how the last attempt ended
	tried   time.Time  // when
	closed  bool
}

// opening is one attempt to connect, which any number of calls may wait for.
type opening struct {
	done   chan struct{}      // closed at the end; link and err are set before
	giveUp context.CancelFunc // when nobody will use it
	link   *link
	err    error
}

// Open returns the session in which a peer's calls go to the server. Nothing is sent
// yet. Whether peers share one is decided by the server's `session` and transport. A
// server of both eras is spoken to in that of the peer.
func (u *Upstream) Open(_ context.Context, p Peer, era protocol.Era) (*Session, error) {
	if err := u.usable(); err != nil {
		return nil, err
	}
	if !u.perPeer(era) {
		return u.house, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil, u.fail(errClosed)
	}
	if s := u.peers[p.Key()]; s != nil {
		return s, nil
	}
	if u.server.Transport == config.Stdio {
		if u.processes.Add(1) > int64(u.o.MaxProcesses) {
			u.processes.Add(-1)
			text := fmt.Sprintf("%s: no process for this client: %d are running already (limits.max_processes)", u.server.Name, u.o.MaxProcesses)
			return nil, &Error{Server: u.server.Name, Kind: Other, Text: text}
		}
	}
	s := &Session{u: u, peer: p, key: p.Key(), era: era}
	u.peers[s.key] = s
	return s, nil
}

// perPeer reports whether each peer has a session of its own. A modern server keeps
// nothing between requests, so there all may share one.
func (u *Upstream) perPeer(era protocol.Era) bool {
	switch u.server.Session {
	case "shared":
		return false
	case "per_client":
		return true
	}
	if u.server.Transport == config.Stdio {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.known.era != protocol.Modern || u.known.dual && era == protocol.Legacy
}

// Close ends the session. The house's own ends only with the Upstream.
func (s *Session) Close() error {
	u := s.u
	if !s.house {
		u.mu.Lock()
		mine := u.peers[s.key] == s
		if mine {
			delete(u.peers, s.key)
		}
		u.mu.Unlock()
		if mine && u.server.Transport == config.Stdio {
			u.processes.Add(-1)
		}
	} else if !isClosed(u.done) {
		return nil
	}
	s.mu.Lock()
	s.closed = true
	l, o := s.link, s.opening
	s.link = nil
	s.mu.Unlock()
	if o != nil { // it closes what it opens, having seen that we are closed
		o.giveUp()
		<-o.done
	}
	if l != nil {
		return l.close()
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Era is the era in which the server is spoken to, as far as is known.
func (s *Session) Era() protocol.Era {
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l != nil {
		return l.era
	}
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	return s.u.known.era
}

// Call sends a request and waits for its reply. sink hears what the server says
// meanwhile. A call is sent a second time only when the first cannot have run. The
// error is an *Error, or the cause of ctx when that ended.
func (s *Session) Call(ctx context.Context, method string, p jsonrpc.Params, sink jsonrpc.Sink) (jsonrpc.Reply, error) {
	limits := newWatch(ctx, sink, s.u.server.Timeout, s.u.o.MaxCallDuration)
	defer limits.stop()
	for again := true; ; again = false {
		l, err := s.connected(limits.ctx)
		if err != nil {
			return jsonrpc.Reply{}, s.ended(ctx, err)
		}
		sent := p
		l.address(&sent, s.capabilities())
		limits.restart()
		reply, err := l.conn.Call(limits.ctx, method, sent, limits)
		if err == nil {
			s.release(l)
			s.u.accepted()
			return reply, nil
		}
		unsent := s.lostLink(l, err)
		s.release(l)
		if unsent && again {
			continue
		}
		return jsonrpc.Reply{}, s.ended(ctx, uncertain(err))
	}
}

func (s *Session) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err = s.u.fail(err)
	if e, ok := errors.AsType[*Error](err); ok {
		switch e.Kind {
		case Auth:
			s.u.refused(err)
		case Unreachable, UnknownOutcome: // asking for the list shows whether it is down
			s.u.wake()
		}
	}
	return err
}

// lostLink gives up a link that is of no more use, and reports whether the call that
// found out cannot have run and may go through a new one.
func (s *Session) lostLink(l *link, err error) bool {
	var gone *transport.SessionGone
	var unsent *transport.NotSent
	var status *transport.StatusError
	switch {
	case errors.As(err, &gone):
		s.drop(l)
		return true
	case isClosed(l.conn.Done()):
		s.drop(l)
		return errors.As(err, &unsent)
	case errors.As(err, &status) && status.Status < 500 && !passing(status.Status):
		// perhaps another server answers there now
		s.drop(l)
		s.u.forget()
	}
	return false
}

// passing reports whether a status is about one request, or the moment, and not about
// the session.
func passing(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusRequestEntityTooLarge || status == http.StatusTooManyRequests
}

// drop gives up a link, unless another caller did so before. Calls that are still on
// it end by themselves; the last one closes it.
func (s *Session) drop(l *link) {
	s.mu.Lock()
	if s.link == l {
		s.link = nil
	}
	l.retired = true
	s.mu.Unlock()
	if s.house {
		s.u.wake()
	}
}

// hangUp ends the connection once nobody uses it. The next use makes a new one.
func (s *Session) hangUp() {
	s.mu.Lock()
	l := s.link
	if l != nil {
		l.users++ // so that release closes it
	}
	s.mu.Unlock()
	if l != nil {
		s.drop(l)
		s.release(l)
	}
}

// release ends one use of a link.
func (s *Session) release(l *link) {
	s.mu.Lock()
	l.users--
	last := l.retired && l.users == 0
	s.mu.Unlock()
	if last {
		s.u.discard(l)
	}
}

// restartPause keeps calls from starting a server that dies at once at full speed.
const restartPause = time.Second

// connected returns the link for one use, connecting if there is none. One attempt
// serves all who wait, and goes on when they leave. Each link is released after use.
func (s *Session) connected(ctx context.Context) (*link, error) {
	s.mu.Lock()
	if l := s.link; l != nil {
		if !isClosed(l.conn.Done()) {
			l.users++
			s.mu.Unlock()
			return l, nil
		}
		l.users++ // so that release closes it
		l.retired, s.link = true, nil
		defer s.release(l)
	}
	o := s.opening
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil, errClosed
	case o == nil && s.failed != nil && s.u.server.Transport == config.Stdio && time.Since(s.tried) < restartPause:
		err := s.failed
		s.mu.Unlock()
		return nil, err
	case o == nil:
		o = s.startOpening(ctx)
	}
	s.mu.Unlock()
	select {
	case <-o.done:
		if o.err != nil {
			return nil, o.err
		}
		s.mu.Lock()
		o.link.users++
		s.mu.Unlock()
		return o.link, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// startOpening is called under s.mu.
func (s *Session) startOpening(ctx context.Context) *opening {
	ctx, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	s.opening = &opening{done: make(chan struct{}), giveUp: giveUp}
	go s.open(ctx, s.opening)
	return s.opening
}

func (s *Session) open(ctx context.Context, o *opening) {
	defer o.giveUp()
	ctx, cancel := context.WithTimeoutCause(ctx, s.u.o.ListTimeout, errTimeout)
	defer cancel()
	stop := closeOn(s.u.done, cancel)
	defer stop()
	l, err := s.u.connect(ctx, s)
	err = harmless(err)
	if err != nil && ctx.Err() != nil {
		err = &transport.NotSent{Err: context.Cause(ctx)}
	}
	s.mu.Lock()
	s.opening, s.failed, s.tried = nil, err, time.Now()
	closed := s.closed
	if err == nil && !closed {
		s.link = l
	}
	s.mu.Unlock()
	if closed {
		if err == nil {
			_ = l.close()
		}
		err = errClosed
	}
	o.link, o.err = l, err
	close(o.done)
}

// gone is closed when the connection ends by itself; nil while there is none.
func (s *Session) gone() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil {
		return nil
	}
	return s.link.conn.Done()
}

func (s *Session) capabilities() json.RawMessage {
	if s.peer == nil {
		return noCapabilities
	}
	return s.peer.Capabilities()
}

var noCapabilities = json.RawMessage("{}")

// Notify hears what the server says outside any call (jsonrpc.Sink).
func (s *Session) Notify(method string, params json.RawMessage) {
	if method == protocol.ToolsChanged {
		s.u.wake()
		return
	}
	if s.peer != nil {
		s.peer.Notify(method, params)
		return
	}
	s.u.log.Debug().Str("method", method).Msg("notification for nobody")
}

// Ask answers what the server asks outside any call (jsonrpc.Sink). What cannot be
// traced to a call of one client is refused, never guessed.
func (s *Session) Ask(ctx context.Context, method string, params json.RawMessage) (jsonrpc.Reply, error) {
	if s.peer != nil {
		return s.peer.Ask(ctx, method, params)
	}
	return Refusal(method), nil
}

// Refusal is the answer to a question that no client can be asked.
func Refusal(method string) jsonrpc.Reply {
	return jsonrpc.Reply{Error: protocol.ErrorObject(protocol.CodeMethodNotFound, "Method not found: "+method, nil)}
}

// A ParamHeader repeats an argument of a call in a header, as its x-mcp-header asks.
type ParamHeader = transport.ParamHeader

// WithHeaders gives a Call headers of that kind. Only a modern server gets them.
func WithHeaders(ctx context.Context, headers []ParamHeader) context.Context {
	return transport.WithHeaders(ctx, headers)
}

// address makes params ready for the link's era: a modern server wants to know with
// each request who asks, a legacy one knows from initialize.
func (l *link) address(p *jsonrpc.Params, capabilities json.RawMessage) {
	if l.era == protocol.Modern {
		p.SetMeta(protocol.MetaVersion, l.quotedVersion)
		p.SetMeta(protocol.MetaClientInfo, l.ours)
		p.SetMeta(protocol.MetaClientCapabilities, capabilities)
		return
	}
	if !bytes.Contains(p.Raw(), []byte("io.modelcontextprotocol/")) {
		return
	}
	for _, key := range []string{protocol.MetaVersion, protocol.MetaClientInfo, protocol.MetaClientCapabilities} {
		if p.Meta(key) != nil {
			p.SetMeta(key, nil)
		}
	}
}
