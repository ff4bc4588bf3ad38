package transport

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// An outbox writes lines into a pipe, in order, on one goroutine: whoever has something to say may stop waiting for a server
// that does not read, and nobody holds a lock meanwhile.
type outbox struct {
	// set by newOutbox, never changed
	pipe  io.WriteCloser
	wake  chan struct{} // has room for one: something was put
	ended chan struct{} // closed when run has returned: every letter is settled

	mu     sync.Mutex // guards what follows
	queue  []*letter
	closed bool // by us, or because the pipe broke
}

// errNoReader is why something cannot be put any more.
var errNoReader = errors.New("the server's process takes no more input")

// A letter is one message on its way.
type letter struct {
	buf     *jsonrpc.Buffer
	settled chan struct{} // closed when it has been written, or never will be
	sent    bool          // valid once settled: the server may have read it
}

func newOutbox(pipe io.WriteCloser) *outbox {
	return &outbox{pipe: pipe, wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// put queues a message as one line, and owns buf from then on. It never waits.
func (o *outbox) put(buf *jsonrpc.Buffer) (*letter, error) {
	jsonrpc.Unline(buf.B)
	buf.B = append(buf.B, '\n')
	l := &letter{buf: buf, settled: make(chan struct{})}
	o.mu.Lock()
	closed := o.closed
	if !closed {
		o.queue = append(o.queue, l)
	}
	o.mu.Unlock()
	if closed {
		buf.Release()
		return nil, &NotSent{Err: errNoReader}
	}
	o.ring()
	return l, nil
}

// takeBack takes a message off the queue. It reports false if writing had begun: a line cannot be left half written.
func (o *outbox) takeBack(l *letter) bool {
	o.mu.Lock()
	i := slices.Index(o.queue, l)
	if i >= 0 {
		o.queue = slices.Delete(o.queue, i, i+1)
	}
	o.mu.Unlock()
	if i < 0 {
		return false
	}
	l.settle(false)
	return true
}

// deliver puts a message and waits until it has been written.
func (o *outbox) deliver(ctx context.Context, buf *jsonrpc.Buffer) error {
	l, err := o.put(buf)
	if err != nil {
		return err
	}
	select {
	case <-l.settled:
	case <-ctx.Done():
		if o.takeBack(l) {
			return &NotSent{Err: context.Cause(ctx)}
		}
		return context.Cause(ctx)
	}
	if !l.sent {
		return &NotSent{Err: errNoReader}
	}
	return nil
}

// run writes until close, or until the pipe breaks.
func (o *outbox) run() {
	defer close(o.ended)
	for {
		l, more := o.first()
		if !more {
			return
		}
		if l == nil {
			<-o.wake
			continue
		}
		n, err := o.pipe.Write(l.buf.B)
		l.settle(n >= len(l.buf.B)-1) // without its end a line may pass as the last one
		if err != nil {
			o.stop()
		}
	}
}

// first takes the first message off the queue; nil if there is none.
func (o *outbox) first() (l *letter, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, false
	}
	if len(o.queue) == 0 {
		return nil, true
	}
	l = o.queue[0]
	o.queue = slices.Delete(o.queue, 0, 1)
	return l, true
}

// close closes the pipe and returns when every message is settled.
func (o *outbox) close() {
	o.stop()
	<-o.ended
}

func (o *outbox) stop() {
	o.mu.Lock()
	left := o.queue
	o.queue, o.closed = nil, true
	o.mu.Unlock()
	o.pipe.Close() // a write that is under way ends with an error
	for _, l := range left {
		l.settle(false)
	}
	o.ring()
}

func (o *outbox) ring() {
	select {
	case o.wake <- struct{}{}:
	default: // it is rung already
	}
}

func (l *letter) settle(sent bool) {
	l.sent = sent
	l.buf.Release()
	l.buf = nil
	close(l.settled)
}
