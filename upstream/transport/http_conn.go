package transport

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/upstream/wire"
)

// An HTTPConn is one session over Streamable HTTP, or the place of one if the server
// is stateless.
type HTTPConn struct {
	// set by Open, never changed
	http    *HTTP
	calls   *calls
	listens bool
	done    chan struct{}

	session atomic.Pointer[session] // nil before initialize was answered

	background sync.WaitGroup // listening, and cancellations on their way
	ending     sync.Once      // closes done
	closing    sync.Once

	mu     sync.Mutex         // guards what follows
	closed bool               // no more background
	hush   context.CancelFunc // ends the listening; nil: it does not listen
	last   func()             // takes leave of the server; nil: there is no session
}

// A session is what the answer to initialize settled.
type session struct {
	id        string // "": the server keeps none
	post, get *wire.Head
}

// Time limits of what we send on our own account.
const (
	respondTimeout = 10 * time.Second
	cancelTimeout  = 5 * time.Second
	deleteTimeout  = 2 * time.Second
)

// Call sends a request and returns its answer, of which every message that belongs to
// it has gone to s before. s may be nil. An error says whether the request can have run:
// see NotSent and SessionGone.
func (c *HTTPConn) Call(ctx context.Context, method string, p jsonrpc.Params, s jsonrpc.Sink) (jsonrpc.Reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k := c.calls.newCall(&p, s)
	k.abort = cancel
	if err := c.calls.enter(k); err != nil {
		return jsonrpc.Reply{}, err
	}
	defer c.calls.end(k)
	buf := newMessage()
	defer buf.Release()
	buf.B = appendRequest(buf.B, k.id, method, &p)
	r := request{Request: wire.Request{Method: http.MethodPost, To: c.http.to, Shared: c.head(method, k.modern), Buf: buf.B, Own: make([]wire.Field, 0, 8)}}
	if k.modern {
		describe(ctx, &r, method, &p)
	}
	reply, err := c.exchange(ctx, k, &r, method)
	if err != nil && ctx.Err() != nil {
		if _, unsent := errors.AsType[*NotSent](err); !unsent && !k.modern && method != protocol.Initialize {
			c.cancel(ctx, k)
		}
		err = context.Cause(ctx)
	}
	return reply, err
}

// newMessage returns a buffer to which a message is appended.
func newMessage() *jsonrpc.Buffer {
	buf := jsonrpc.NewBuffer()
	buf.B = slices.Grow(buf.B, wire.Gap)[:wire.Gap]
	return buf
}

// head returns the headers that a POST shares with others. An initialize opens a
// session, and a stateless request belongs to none.
func (c *HTTPConn) head(method string, modern bool) *wire.Head {
	if s := c.session.Load(); s != nil && !modern && method != protocol.Initialize {
		return s.post
	}
	return c.http.post
}

// exchange posts a request and reads its answer.
func (c *HTTPConn) exchange(ctx context.Context, k *call, r *request, method string) (jsonrpc.Reply, error) {
	resp, err := c.http.send(ctx, r)
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	header := resp.Header
	reply, err := c.answer(ctx, k, r, resp)
	if err == nil && method == protocol.Initialize && reply.Result != nil {
		c.begin(ctx, header, reply.Result)
	}
	return reply, err
}

// begin keeps what the answer to initialize says about the session.
func (c *HTTPConn) begin(ctx context.Context, header http.Header, result json.RawMessage) {
	s := &session{id: header.Get(protocol.HeaderSession)}
	if !visible(s.id) {
		c.http.o.Log.Warn().Msg("illegal session id of the server not used")
		s.id = ""
	}
	state := http.Header{}
	if s.id != "" {
		state.Set(protocol.HeaderSession, s.id)
	}
	if version, _ := jsonrpc.Unquote(jsonrpc.Get(result, "protocolVersion")); version != "" && visible(version) {
		state.Set(protocol.HeaderVersion, version)
	}
	s.post = wire.NewHead(c.http.fixed, postHeaders, state)
	s.get = wire.NewHead(c.http.fixed, getHeaders, state)
	c.session.Store(s)
	if s.id == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
		defer cancel()
		r := request{Request: wire.Request{Method: http.MethodDelete, To: c.http.to, Shared: s.get}}
		if resp, err := c.http.send(ctx, &r); err == nil {
			resp.Body.Close() // a server need not support it
		}
	}
}

// visible reports whether an id has only the characters that the specification allows.
func visible(id string) bool {
	return len(id) <= 1024 && !slices.ContainsFunc([]byte(id), func(b byte) bool { return b < 0x21 || b > 0x7e })
}

// A ParamHeader repeats an argument of a call in a header, as its x-mcp-header asks.
type ParamHeader struct {
	Name  string // without Mcp-Param-
	Value string // not encoded
}

type paramHeaders struct{}

// WithHeaders makes a stateless call that is made with the returned context carry these
// headers.
func WithHeaders(ctx context.Context, headers []ParamHeader) context.Context {
	return context.WithValue(ctx, paramHeaders{}, headers)
}

// describe repeats in headers what the body of a stateless request says. The name is
// taken from the params as they are sent.
func describe(ctx context.Context, r *request, method string, p *jsonrpc.Params) {
	if version, ok := jsonrpc.Unquote(p.Meta(protocol.MetaVersion)); ok {
		r.Add(protocol.HeaderVersion, version)
	}
	r.Add(protocol.HeaderMethod, method)
	if m, ok := protocol.MethodOf(method); ok && m.NameMember != "" {
		sent := jsonrpc.Get(r.Body(), "params")
		if name, ok := jsonrpc.Unquote(jsonrpc.Get(sent, m.NameMember)); ok {
			r.Add(protocol.HeaderName, protocol.EncodeHeader(name))
		}
	}
	headers, _ := ctx.Value(paramHeaders{}).([]ParamHeader)
	for _, h := range headers {
		r.Add(http.CanonicalHeaderKey(protocol.HeaderParamPrefix+h.Name), protocol.EncodeHeader(h.Value))
	}
}

// Notify sends a notification. It returns when the server has taken it.
func (c *HTTPConn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	p := jsonrpc.NewParams(params)
	buf := newMessage()
	defer buf.Release()
	buf.B = appendNotification(buf.B, method, &p)
	modern := p.Meta(protocol.MetaVersion) != nil
	r := request{Request: wire.Request{Method: http.MethodPost, To: c.http.to, Shared: c.head(method, modern), Buf: buf.B}}
	if modern {
		describe(ctx, &r, method, &p)
	}
	if err := c.post(ctx, &r); err != nil {
		return err
	}
	if method == protocol.Initialized && c.listens {
		c.startListening(ctx)
	}
	return nil
}

// post sends what has no answer.
func (c *HTTPConn) post(ctx context.Context, r *request) error {
	resp, err := c.http.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.Status < 300 {
		return nil
	}
	if resp.Status == http.StatusNotFound && c.hasSession(r) {
		return c.gone(resp.Status)
	}
	start, _ := readSome(nil, resp)
	return c.http.statusError(r, resp, start)
}

// hasSession reports whether r was sent within a session.
func (c *HTTPConn) hasSession(r *request) bool {
	s := c.session.Load()
	return s != nil && s.id != "" && (r.Shared == s.post || r.Shared == s.get)
}

// gone ends the connection because the server does not know its session any more.
func (c *HTTPConn) gone(status int) error {
	c.mu.Lock()
	c.last = nil // there is nothing to take leave of
	c.mu.Unlock()
	c.ending.Do(func() { close(c.done) })
	return &SessionGone{status}
}

// respond sends the answer to a request of the server.
func (c *HTTPConn) respond(ctx context.Context, message []byte) error {
	return c.deliver(ctx, respondTimeout, message)
}

func (c *HTTPConn) deliver(ctx context.Context, timeout time.Duration, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	buf := newMessage()
	defer buf.Release()
	buf.B = append(buf.B, message...)
	return c.post(ctx, &request{Request: wire.Request{Method: http.MethodPost, To: c.http.to, Shared: c.head("", false), Buf: buf.B}})
}

// cancel tells a legacy server that nobody waits for k any more. The caller does not
// wait for that. To end the exchange is not enough: for such a server a lost connection
// means nothing.
func (c *HTTPConn) cancel(ctx context.Context, k *call) {
	cause := context.Cause(ctx)
	if errors.Is(cause, errClosed) {
		return // the session ends
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.background.Go(func() {
		err := c.deliver(context.WithoutCancel(ctx), cancelTimeout, appendCancel(nil, k.id, cause))
		if err != nil {
			c.http.o.Log.Debug().Err(err).Msg("cancellation not delivered")
		}
	})
}

// Done is closed when the connection is of no use any more: it was closed, or the
// server has forgotten the session.
func (c *HTTPConn) Done() <-chan struct{} { return c.done }

// Close ends the calls that still run, takes leave of the server, and returns when
// nothing of the connection runs any more.
func (c *HTTPConn) Close() error {
	c.closing.Do(func() {
		c.calls.fail(errClosed)
		c.mu.Lock()
		c.closed = true
		hush, last := c.hush, c.last
		c.mu.Unlock()
		if hush != nil {
			hush()
		}
		if last != nil {
			last()
		}
		c.background.Wait()
		c.calls.close()
		c.ending.Do(func() { close(c.done) })
	})
	return nil
}
