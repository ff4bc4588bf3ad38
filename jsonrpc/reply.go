package jsonrpc

import (
	"context"
	"encoding/json"
	"slices"
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

	longest json.RawMessage // the longest string in the message; nil: not known
	buf     *Buffer
}

// NewReply makes a reply of a message whose bytes stand in buf, and owns buf from then
// on. buf may be nil.
func NewReply(m Message, buf *Buffer) Reply {
	return Reply{Result: m.Result, Error: m.Error, longest: m.longest, buf: buf}
}

// StringAt returns the string in Result that starts at i, with its quotes. Most results
// are one large text: where that ends is known from when the message was checked, so
// that it need not be looked through again.
func (r Reply) StringAt(i int) json.RawMessage {
	if len(r.longest) > 0 && &r.longest[0] == &r.Result[i] {
		return r.longest
	}
	return r.Result[i:Skip(r.Result, i)]
}

// Release gives the reply's memory back. It is called at most once, after the last use.
func (r Reply) Release() {
	if r.buf != nil {
		r.buf.Release()
	}
}

// A Buffer is memory that is used again.
type Buffer struct{ B []byte }

// classes are the sizes of memory that are kept. One pool for all would hand small
// memory to large messages, which then throw it away, and large to small ones. What is
// larger than the last is left to the garbage collector: one huge message must not hold
// its memory for ever.
var classes = [...]int{4 << 10, 32 << 10, 160 << 10}

var buffers [len(classes)]sync.Pool

// NewBuffer returns an empty buffer.
func NewBuffer() *Buffer { return newBuffer(0) }

func newBuffer(class int) *Buffer {
	b, ok := buffers[class].Get().(*Buffer)
	if !ok {
		return &Buffer{B: make([]byte, 0, classes[class])}
	}
	b.B = b.B[:0]
	return b
}

// Grow makes room for n more bytes.
func (b *Buffer) Grow(n int) {
	size := len(b.B) + n
	if size <= cap(b.B) {
		return
	}
	for class := range classes {
		if size <= classes[class] {
			larger := newBuffer(class)
			larger.B = append(larger.B, b.B...)
			b.B, larger.B = larger.B, b.B
			larger.Release()
			return
		}
	}
	b.B = slices.Grow(b.B, n)
}

// Release gives the buffer back; nothing of B may be used afterwards.
func (b *Buffer) Release() {
	for class := len(classes) - 1; class >= 0; class-- {
		if cap(b.B) >= classes[class] {
			if cap(b.B) <= 2*classes[len(classes)-1] {
				buffers[class].Put(b)
			}
			return
		}
	}
}
