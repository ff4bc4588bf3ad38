package streamable

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

const (
	heartbeat   = 15 * time.Second // between comments on an open stream
	writeTime   = 30 * time.Second // for a client to take what we write, however small
	slowest     = 64 << 10         // bytes a second that a client must take of what is large
	copyLimit   = 150 << 10        // bytes of a result that are copied to be written at once
	batchLimit  = 32 << 10         // bytes of events written at once
	sniffedSize = 2 << 10          // up to here net/http itself counts the bytes of an answer
)

// Values of headers that every answer has; nobody changes them.
var (
	jsonType   = []string{"application/json"}
	streamType = []string{"text/event-stream"}
	noCache    = []string{"no-cache, no-transform"}
	noBuffer   = []string{"no"}
)

// deadline gives the client a time in which to take n bytes. Without it a client that
// stopped reading would hold us for ever.
func deadline(w http.ResponseWriter, n int) {
	// A writer without deadlines is one of a test.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime + time.Duration(n/slowest)*time.Second))
}

// writeJSON writes a whole answer at once.
func writeJSON(w http.ResponseWriter, status int, body []byte) error {
	h := w.Header()
	h["Content-Type"] = jsonType
	if len(body) > sniffedSize {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	deadline(w, len(body))
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		return fmt.Errorf("client: write answer: %w", err)
	}
	return nil
}

// writeLarge writes a result without copying it.
func (c *call) writeLarge(r jsonrpc.Reply) error {
	head := append(append([]byte(`{"jsonrpc":"2.0","id":`), c.id...), `,"result":`...)
	size := len(head) + len(r.Result) + 1
	h := c.w.Header()
	h["Content-Type"] = jsonType
	h.Set("Content-Length", strconv.Itoa(size))
	deadline(c.w, size)
	for _, part := range [][]byte{head, r.Result, {'}'}} {
		if _, err := c.w.Write(part); err != nil {
			return fmt.Errorf("client: write answer: %w", err)
		}
	}
	return nil
}

// copyEvents writes a stream to a client until the stream ends, the client goes, or
// stop is closed.
func copyEvents(w http.ResponseWriter, r *http.Request, from *session.Reader, stop <-chan struct{}) {
	h := w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Accel-Buffering"] = streamType, noCache, noBuffer
	out := http.NewResponseController(w)
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for open := deliver(w, out, from, true); open; open = deliver(w, out, from, false) {
		select {
		case <-from.Ready():
		case <-tick.C:
			if !send(w, out, comment) {
				return
			}
		case <-r.Context().Done():
			return
		case <-stop:
			deliver(w, out, from, false)
			return
		}
	}
}

var comment = []byte(":\n\n")

// deliver writes the events that are there, and the headers if they are still to be
// written. It reports whether there may be others later. It keeps no memory: most
// streams say nothing most of the time.
func deliver(w http.ResponseWriter, out *http.ResponseController, from *session.Reader, headers bool) bool {
	buf := jsonrpc.NewBuffer()
	defer buf.Release()
	for ; ; headers = false {
		var ended bool
		buf.B, ended = gather(buf.B[:0], from)
		if len(buf.B) == 0 && !headers {
			return !ended
		}
		if !send(w, out, buf.B) {
			return false
		}
		from.Wrote()
		if ended {
			return false
		}
	}
}

// gather appends the events that are there. ended means that there will be no others.
func gather(dst []byte, from *session.Reader) ([]byte, bool) {
	for len(dst) < batchLimit {
		e, ok, ended := from.Next()
		if !ok {
			return dst, ended
		}
		if e.Message == nil && from.Version() < protocol.V20251125 {
			// Clients of that time take the data of any event for a message, and
			// give up over an empty one. Without data it only sets the last id.
			dst = append(append(append(dst, "id: "...), e.ID...), '\n', '\n')
			continue
		}
		dst = jsonrpc.AppendEvent(dst, e.ID, e.Message)
	}
	return dst, false
}

// send writes and flushes; false if the client has gone or takes nothing.
func send(w http.ResponseWriter, out *http.ResponseController, b []byte) bool {
	deadline(w, len(b))
	if _, err := w.Write(b); err != nil {
		return false
	}
	return out.Flush() == nil
}
