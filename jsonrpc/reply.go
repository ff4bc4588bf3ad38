package jsonrpc

import (
	"context"
	"encoding/json"
	"sync"
)

// A Sink takes what a server says while it works on ONE call, in order. It is the only
// interface that is not declared by its caller: four packages hand it on.
type Sink interface {
	// Notify passes a notification on. It never blocks: what it keeps is bounded (the
	// last progress wins) and copied.
	Notify(method string, params json.RawMessage)
	// Ask passes a request on and waits for the answer, which may take a person
	// minutes. It is never called on the goroutine that reads from the server.
	Ask(ctx context.Context, method string, params json.RawMessage) (Reply, error)
}

// A Reply answers a request: exactly one of Result and Error is set. Its bytes are
// valid until Release.
type Reply struct {
	Result json.RawMessage
	Error  json.RawMessage
	buf    *Buffer
}

// NewReply makes a reply of a message whose bytes stand in buf, and owns buf from then
// on. buf may be nil.
func NewReply(m Message, buf *Buffer) Reply {
	return Reply{Result: m.Result, Error: m.Error, buf: buf}
}

// Release gives the reply's memory back. It is called at most once, after the last use.
func (r Reply) Release() {
	if r.buf != nil {
		r.buf.Release()
	}
}

// A Buffer is memory that is used again.
type Buffer struct{ B []byte }

// maxPooled is the size beyond which a buffer is left to the garbage collector: one
// large message must not hold its memory for ever.
const maxPooled = 256 << 10

var buffers = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, 2<<10)} }}

// NewBuffer returns an empty buffer.
func NewBuffer() *Buffer {
	b := buffers.Get().(*Buffer)
	b.B = b.B[:0]
	return b
}

// Release gives the buffer back; nothing of B may be used afterwards.
func (b *Buffer) Release() {
	if cap(b.B) <= maxPooled {
		buffers.Put(b)
	}
}
