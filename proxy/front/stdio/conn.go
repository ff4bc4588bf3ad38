package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/access"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// Limits of what one client can have running.
const (
	maxRunning      = 1000
	maxRunningBytes = 64 << 20
)

// A conn is one run: everything between us and the client.
type conn struct {
	// set by Run, never changed
	*Front
	session *session.Session
	ctx     context.Context // of the calls
	out     *outbox

	calls     sync.WaitGroup // and the relay
	left      chan struct{}  // receives when a call has ended
	listening bool           // of the reading goroutine

	mu      sync.Mutex // guards what follows
	running map[string]*call
	bytes   int  // of the messages that running calls came in
	closing bool // no call begins any more
}

// read takes messages until the input ends. It never waits for the client to read: one
// that does not read before it has written everything must not block us both.
func (c *conn) read(in io.Reader) error {
	lines := bufio.NewReaderSize(in, 32<<10)
	for {
		buf := jsonrpc.NewBuffer()
		err := readLine(lines, buf, c.maxRequest)
		switch {
		case errors.Is(err, errTooLarge):
			c.refuse(nil, invalid("the message is larger than limits.max_request_bytes"))
			buf.Release()
			continue
		case len(bytes.TrimSpace(buf.B)) > 0:
			c.take(buf)
		default:
			buf.Release()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("stdio: read: %w", err)
		}
	}
}

var errTooLarge = errors.New("the message is too large")

// readLine reads a line into buf; one that is too large is passed over.
func readLine(r *bufio.Reader, buf *jsonrpc.Buffer, limit int) error {
	for {
		piece, err := r.ReadSlice('\n')
		if len(buf.B) <= limit {
			buf.B = append(buf.B, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(bytes.TrimRight(buf.B, "\r\n")) > limit {
			return errTooLarge // an error beside it comes again
		}
		return err
	}
}

// take acts on one message, whose bytes it owns.
func (c *conn) take(buf *jsonrpc.Buffer) {
	m, err := jsonrpc.Parse(buf.B)
	var said session.Declaration
	if err == nil {
		said, err = session.Declare(m.Params)
	}
	switch {
	case err != nil:
		if !m.IsNotification() {
			c.refuse(m.ID, err)
		}
	case m.IsNotification():
		c.notified(m, said)
	case m.IsRequest():
		c.request(m, said, buf)
		return
	}
	buf.Release()
}

// notified acts on a notification, in the order in which it came.
func (c *conn) notified(m jsonrpc.Message, said session.Declaration) {
	if m.Method == protocol.Cancelled {
		c.cancel(jsonrpc.Get(m.Params, "requestId"))
		return
	}
	if said.Version != nil {
		return // 2026-07-28 knows no other one of a client
	}
	c.server.Serve(c.ctx, proxy.Request{Session: c.session, Message: m}, silence{})
	if m.Method == protocol.Initialized && !c.listening {
		c.listening = true
		listener := c.session.Listen()
		c.calls.Go(func() { c.relay(listener) })
	}
}

// relay writes what belongs to no call.
func (c *conn) relay(from *session.Reader) {
	defer from.Close()
	for {
		e, ok, ended := from.Next()
		switch {
		case ok && e.Message != nil:
			c.out.put(line(bytes.Clone(e.Message)), roomForReplies)
			from.Wrote()
		case ended:
			return
		case !ok:
			select {
			case <-from.Ready():
			case <-c.ctx.Done():
				return
			}
		}
	}
}

// request begins a call. It owns buf, in which the message stands.
func (c *conn) request(m jsonrpc.Message, said session.Declaration, buf *jsonrpc.Buffer) {
	one := &call{conn: c, id: m.ID, buf: buf, listens: m.Method == protocol.Listen}
	r := proxy.Request{Session: c.session, Message: m}
	if said.Version != nil {
		if err := said.Check(); err != nil {
			c.refuse(m.ID, err)
			buf.Release()
			return
		}
		r.Session = said.Session(access.Caller{}, "")
		one.alone = r.Session
	}
	ctx, err := c.enter(one)
	if err != nil {
		c.refuse(m.ID, err)
		buf.Release()
		return
	}
	// What follows an initialize depends on it, and a ping is about how soon it is
	// answered: neither can take long.
	if m.Method == protocol.Initialize || m.Method == protocol.Ping {
		one.hurried = true
		one.serve(ctx, r)
		return
	}
	go one.serve(ctx, r)
}

// enter notes a call as running.
func (c *conn) enter(one *call) (context.Context, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closing:
		return nil, errEnding
	case c.running[string(one.id)] != nil:
		return nil, invalid("a request with this id is still running")
	case len(c.running) >= maxRunning || c.bytes+len(one.buf.B) > maxRunningBytes:
		return nil, &jsonrpc.Error{Code: protocol.CodeInternal, Message: "too many requests are running"}
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	one.cancel = cancel
	c.running[string(one.id)] = one
	c.bytes += len(one.buf.B)
	c.calls.Add(1)
	return ctx, nil
}

func (c *conn) leave(one *call) {
	c.mu.Lock()
	delete(c.running, string(one.id))
	c.bytes -= len(one.buf.B)
	c.mu.Unlock()
	one.cancel(nil)
	one.buf.Release()
	c.calls.Done()
	select {
	case c.left <- struct{}{}:
	default: // drain has not yet looked since the last time
	}
}

// cancel ends a call that the client wants no answer to any more.
func (c *conn) cancel(id json.RawMessage) {
	c.mu.Lock()
	one := c.running[string(id)]
	c.mu.Unlock()
	if one != nil {
		one.end(errCancelled)
	}
}

// drain waits for the calls that run, but not for longer than the grace. A stream of
// changes ends at once, and its client is told (2026-07-28,
// basic/patterns/subscriptions).
func (c *conn) drain(cancel context.CancelCauseFunc) {
	c.mu.Lock()
	c.closing = true
	listens := map[string]*call{}
	for id, one := range c.running {
		if one.listens {
			listens[id] = one
		}
	}
	c.mu.Unlock()
	for id, one := range listens {
		one.end(errEnding)
		c.out.put(line(jsonrpc.AppendNotification(nil, protocol.Cancelled, []byte(`{"requestId":`+id+`,"reason":"the server is stopping"}`))), roomForAll)
	}
	late := time.NewTimer(c.grace)
	defer late.Stop()
	for waiting := true; waiting && c.busy(); {
		select {
		case <-c.left:
		case <-c.ctx.Done():
			waiting = false
		case <-late.C:
			waiting = false
		}
	}
	cancel(errEnding)
	c.out.hurry()
	c.calls.Wait()
}

func (c *conn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.running) > 0
}

// refuse answers a message that is not served.
func (c *conn) refuse(id json.RawMessage, err error) {
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		e = &jsonrpc.Error{Code: protocol.CodeInternal, Message: err.Error()}
	}
	if id == nil {
		id = json.RawMessage("null")
	}
	reply := jsonrpc.Reply{Error: protocol.ErrorObject(e.Code, e.Message, e.Data)}
	c.out.put(line(jsonrpc.AppendReply(nil, id, reply)), roomForAll)
}

func invalid(what string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: protocol.CodeInvalidRequest, Message: "invalid request: " + what}
}
