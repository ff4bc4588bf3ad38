package transport

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/upstream/wire"
)

// An SSEConn is one session over the HTTP+SSE transport of 2024-11-05: everything that
// the server says comes on one stream, everything that we say is a POST to the endpoint
// that the stream named first.
type SSEConn struct {
	// set by OpenSSE, never changed
	http     *HTTP
	calls    *calls
	endpoint *wire.Target
	hush     context.CancelFunc // ends the stream
	done     chan struct{}

	background sync.WaitGroup // the stream, and cancellations on their way
	closing    sync.Once

	mu     sync.Mutex // guards closed
	closed bool       // no more background
}

// OpenSSE opens the stream and waits for the endpoint, as long as ctx lets it. h hears
// what belongs to no call.
func (t *HTTP) OpenSSE(ctx context.Context, h jsonrpc.Sink) (*SSEConn, error) {
	stream, hush := context.WithCancel(context.WithoutCancel(ctx))
	c := &SSEConn{http: t, hush: hush, done: make(chan struct{})}
	c.calls = newCalls(&t.ids, h, c.respond, t.o.Log)
	detach := context.AfterFunc(ctx, hush)
	resp, events, err := c.open(stream)
	if !detach() { // ctx ended first
		if err == nil {
			resp.Body.Close()
		}
		err = context.Cause(ctx)
	}
	if err != nil {
		hush()
		return nil, err
	}
	c.background.Go(func() { c.run(stream, resp, events) })
	return c, nil
}

// open gets the stream, up to and with the endpoint.
func (c *SSEConn) open(ctx context.Context) (*wire.Response, *jsonrpc.EventReader, error) {
	r := request{Request: wire.Request{Method: http.MethodGet, To: c.http.to, Shared: wire.NewHead(c.http.fixed, getHeaders)}}
	resp, err := c.http.send(ctx, &r)
	if err != nil {
		return nil, nil, err
	}
	var events *jsonrpc.EventReader
	if resp.Status == http.StatusOK && mediaType(resp) == eventStream {
		events, err = c.findEndpoint(&r, resp)
	} else {
		start, _ := readSome(nil, resp)
		err = c.http.statusError(&r, resp, start)
	}
	if err != nil {
		resp.Body.Close()
	}
	return resp, events, err
}

var errNoEndpoint = errors.New("the stream names no endpoint")

// findEndpoint reads the stream up to the event that says where to post. That is
// another path of the same origin: what is posted carries the credential.
func (c *SSEConn) findEndpoint(r *request, resp *wire.Response) (*jsonrpc.EventReader, error) {
	body, err := decoded(resp)
	if err != nil {
		return nil, err
	}
	limit := c.http.o.MaxMessage
	events := jsonrpc.NewEventReader(&cutter{r: body, limit: 2*limit + 4<<10}, 2*limit+8<<10)
	for range 100 {
		e, err := events.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if e.Name != "endpoint" {
			continue
		}
		at, err := r.To.Resolve(string(e.Data))
		if err != nil || len(e.Data) > 4<<10 {
			return nil, errNoEndpoint
		}
		if !c.http.to.SameOrigin(at) {
			return nil, errors.New("the stream names an endpoint of another origin: " + at.Host)
		}
		c.endpoint = wire.NewTarget(at)
		return events, nil
	}
	return nil, errNoEndpoint
}

var errStreamEnded = errors.New("the stream of the session ended")

// run hears the server until the stream ends. Then nothing can be answered any more.
func (c *SSEConn) run(ctx context.Context, resp *wire.Response, events *jsonrpc.EventReader) {
	defer close(c.done)
	defer resp.Body.Close()
	for {
		e, err := events.Next()
		if err != nil {
			c.calls.fail(errStreamEnded)
			return
		}
		switch {
		case len(e.Data) == 0 || e.Name != "" && e.Name != "message":
		case len(e.Data) > c.http.o.MaxMessage:
			c.calls.broken(e.Data, e.Data, &TooLarge{c.http.o.MaxMessage})
		default:
			buf := jsonrpc.NewBuffer()
			buf.B = append(buf.B, e.Data...)
			c.calls.receive(ctx, buf)
		}
	}
}

// Call sends a request and waits for the stream to bring its answer. s may be nil.
func (c *SSEConn) Call(ctx context.Context, method string, p jsonrpc.Params, s jsonrpc.Sink) (jsonrpc.Reply, error) {
	k, err := c.calls.start(&p, s)
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	defer c.calls.end(k)
	buf := newMessage()
	buf.B = appendRequest(buf.B, k.id, method, &p)
	err = c.post(ctx, buf.B, k)
	buf.Release()
	var reply jsonrpc.Reply
	if err == nil {
		reply, err = c.calls.wait(ctx, k)
	}
	if err != nil && ctx.Err() != nil {
		if _, unsent := errors.AsType[*NotSent](err); !unsent && method != protocol.Initialize {
			c.cancel(ctx, k)
		}
		err = context.Cause(ctx)
	}
	return reply, err
}

// Notify sends a notification.
func (c *SSEConn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	p := jsonrpc.NewParams(params)
	buf := newMessage()
	defer buf.Release()
	buf.B = appendNotification(buf.B, method, &p)
	return c.post(ctx, buf.B, nil)
}

// post sends a message. Some servers answer k, the request in it, right here.
func (c *SSEConn) post(ctx context.Context, message []byte, k *call) error {
	select {
	case <-c.done:
		return &NotSent{Err: errStreamEnded}
	default:
	}
	r := request{Request: wire.Request{Method: http.MethodPost, To: c.endpoint, Shared: c.http.post, Buf: message}}
	resp, err := c.http.send(ctx, &r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.Status < 300 && (k == nil || mediaType(resp) != "application/json") {
		return nil
	}
	buf := jsonrpc.NewBuffer()
	defer buf.Release()
	if err := c.http.readAll(buf, resp); err != nil {
		return err
	}
	m, err := jsonrpc.Parse(buf.B)
	if k != nil && err == nil && m.IsReply() {
		answered := jsonrpc.NewBuffer()
		answered.B = append(answered.B, buf.B...)
		m, _ = jsonrpc.Parse(answered.B)
		if id, ok := number(m.ID); ok && id == k.id || resp.Status >= 400 {
			c.calls.deliver(k.id, answer{reply: jsonrpc.NewReply(m, answered)})
			return nil
		}
		answered.Release()
	}
	switch {
	case resp.Status < 300:
		return nil // the stream decides
	case resp.Status == http.StatusNotFound:
		return &SessionGone{resp.Status}
	}
	return c.http.statusError(&r, resp, buf.B)
}

func (c *SSEConn) respond(ctx context.Context, message []byte) error {
	return c.send(ctx, respondTimeout, message)
}

func (c *SSEConn) send(ctx context.Context, timeout time.Duration, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	buf := newMessage()
	defer buf.Release()
	buf.B = append(buf.B, message...)
	return c.post(ctx, buf.B, nil)
}

// cancel tells the server that nobody waits for k any more.
func (c *SSEConn) cancel(ctx context.Context, k *call) {
	cause := context.Cause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.background.Go(func() {
		if err := c.send(context.WithoutCancel(ctx), cancelTimeout, appendCancel(nil, k.id, cause)); err != nil {
			c.http.o.Log.Debug().Err(err).Msg("cancellation not delivered")
		}
	})
}

// Done is closed when the stream has ended, and with it the session.
func (c *SSEConn) Done() <-chan struct{} { return c.done }

// Close ends the session and the calls that still run, and returns when nothing of it
// runs any more.
func (c *SSEConn) Close() error {
	c.closing.Do(func() {
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		c.calls.fail(errClosed)
		c.hush()
		c.background.Wait()
		c.calls.close()
	})
	return nil
}
