package session

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
)

// A Stream is a queue of messages to one client, read by at most one Reader at a time.
// Writing to it never blocks: what it holds is bounded, and of the progress of a call
// the last one wins. Streams of a session in a table can be resumed: they also hold
// what was read, so that a client whose connection broke can ask for it again
// (2025-11-25, basic/transports, resumability).
type Stream struct {
	// set when it is made, never changed
	sess      *Session // nil: it cannot be resumed
	ledger    *ledger  // nil: it cannot be resumed
	number    uint64
	listening bool // it belongs to no call
	bytes     int  // how much it may hold
	events    int

	mu        sync.Mutex // guards what follows
	queue     []event    // in order of their positions
	next      int        // the position of the next event
	delivered int        // everything before this position was written to a connection
	size      int        // bytes held
	reader    *Reader
	ended     bool // no event will come any more
	gone      bool // it holds nothing and never will again

	shelved *shelved // guarded by the ledger
}

type event struct {
	at      int
	kind    kind
	message []byte // nil: the empty event that a stream begins with
}

// cost is what an event counts for, its bookkeeping included.
func (e event) cost() int { return len(e.message) + 96 }

type kind uint8

const (
	other    kind = iota
	progress      // a later one says all that an earlier one says
	changed       // a second one that nobody has read says nothing new
)

func kindOf(method string) kind {
	switch {
	case method == protocol.Progress:
		return progress
	case strings.HasSuffix(method, "/list_changed"):
		return changed
	}
	return other
}

const (
	callEvents   = 512     // that the stream of a call may hold
	listenEvents = 32      // that one which belongs to no call may hold
	callBytes    = 1 << 20 // of a stream that cannot be resumed, its last message aside
)

// NewStream returns a stream that cannot be resumed.
func NewStream() *Stream { return &Stream{bytes: callBytes, events: callEvents} }

// Notify adds a notification. It copies params.
func (st *Stream) Notify(method string, params json.RawMessage) {
	st.notify(kindOf(method), jsonrpc.AppendNotification(nil, method, params))
}

// notify adds an event and reports whether it will be read, or need not be because
// another one says the same. It keeps message.
func (st *Stream) notify(k kind, message []byte) bool {
	e := event{kind: k, message: message}
	roomy := st.ledger == nil || st.ledger.makeRoom(e.cost())
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.ended || st.gone || st.listening && st.reader == nil:
		return false
	case k == changed && slices.ContainsFunc(st.unread(), func(u event) bool { return string(u.message) == string(message) }):
		return true
	case !roomy && !st.dropDelivered() || !st.makeRoom(e):
		return false
	}
	st.push(e)
	return true
}

// makeRoom drops what may be dropped for e, and reports whether e fits then.
func (st *Stream) makeRoom(e event) bool {
	for len(st.queue) >= st.events || st.size+e.cost() > st.bytes {
		if !st.dropDelivered() && !(e.kind == progress && st.dropProgress()) {
			return false
		}
	}
	return true
}

func (st *Stream) dropDelivered() bool {
	if len(st.queue) == 0 || st.queue[0].at >= st.delivered {
		return false
	}
	st.drop(0)
	return true
}

// dropProgress drops the last progress that nobody has read.
func (st *Stream) dropProgress() bool {
	unread := st.unread()
	for i := len(unread) - 1; i >= 0; i-- {
		if unread[i].kind == progress {
			st.drop(len(st.queue) - len(unread) + i)
			return true
		}
	}
	return false
}

// unread is the end of the queue that no reader has had.
func (st *Stream) unread() []event {
	from := st.delivered
	if st.reader != nil {
		from = max(from, st.reader.next)
	}
	return st.queue[st.search(from):]
}

func (st *Stream) search(at int) int {
	i, _ := slices.BinarySearchFunc(st.queue, at, func(e event, at int) int { return e.at - at })
	return i
}

func (st *Stream) push(e event) {
	e.at = st.next
	st.next++
	st.queue = append(st.queue, e)
	st.account(e.cost())
	if st.reader != nil {
		st.reader.signal()
	}
}

func (st *Stream) drop(i int) {
	st.account(-st.queue[i].cost())
	st.queue = slices.Delete(st.queue, i, i+1)
}

func (st *Stream) account(change int) {
	st.size += change
	if st.ledger != nil {
		st.ledger.add(change)
	}
}

// End ends the stream with its last message; nil if there is none. It keeps message.
// instead is what a client is told that is away while the message is too large to be
// kept for it.
func (st *Stream) End(message, instead []byte) {
	last := event{message: message}
	roomy := message == nil || st.ledger == nil || st.ledger.makeRoom(last.cost())
	st.mu.Lock()
	if st.ended || st.gone {
		st.mu.Unlock()
		return
	}
	if message != nil {
		if st.reader == nil && (!roomy || last.cost() > st.bytes) {
			last.message = instead
		}
		// The answer matters more than what came before it, unless somebody is reading.
		for st.reader == nil && len(st.queue) > 0 && st.size+last.cost() > st.bytes {
			st.drop(0)
		}
		st.push(last)
	}
	st.ended = true
	attached, heard := st.reader != nil, st.delivered == st.next
	if attached {
		st.reader.signal()
	}
	st.mu.Unlock()
	if !attached {
		st.shelve(heard)
	}
}

// shelve starts the time for which a stream that nobody reads and nobody writes is kept.
func (st *Stream) shelve(heard bool) {
	if st.ledger != nil {
		st.ledger.shelve(st, heard)
	}
}

// discard gives up everything that the stream holds.
func (st *Stream) discard() {
	st.mu.Lock()
	st.ended, st.gone = true, true
	st.account(-st.size)
	st.queue = nil
	if st.reader != nil {
		st.reader.signal()
	}
	st.mu.Unlock()
	if st.ledger != nil {
		st.ledger.unshelve(st)
		st.sess.forget(st)
	}
}

// read makes a new reader the one that has the stream, from a position on. The one
// that had it finds the stream ended.
func (st *Stream) read(from int) *Reader {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.reader != nil {
		st.reader.signal()
	}
	st.reader = &Reader{st: st, next: from, ready: make(chan struct{}, 1)}
	st.reader.signal()
	return st.reader
}

// Read returns the reader of the stream, from its beginning.
func (st *Stream) Read() *Reader { return st.read(0) }

// A Reader hands out what a stream holds. It belongs to one goroutine.
type Reader struct {
	st    *Stream
	ready chan struct{}
	next  int // guarded by the stream: the position to hand out next
}

// An Event is what a Reader hands out. ID is "" if the stream cannot be resumed, and
// Message is nil for the event that only carries an id.
type Event struct {
	ID      string
	Message []byte
}

// Listening reports whether the stream belongs to no call.
func (r *Reader) Listening() bool { return r.st.listening }

// Version is the protocol version of the stream's client, "" of a stream that cannot be
// resumed.
func (r *Reader) Version() string {
	if r.st.sess == nil {
		return ""
	}
	return r.st.sess.Version()
}

func (r *Reader) signal() {
	select {
	case r.ready <- struct{}{}:
	default: // it has not yet looked since the last time
	}
}

// Ready receives when Next may have something to say.
func (r *Reader) Ready() <-chan struct{} { return r.ready }

// Next returns the next event. ok is false when there is none at the moment; then
// ended says that there never will be.
func (r *Reader) Next() (e Event, ok, ended bool) {
	st := r.st
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.reader != r || st.gone {
		return Event{}, false, true
	}
	i := st.search(r.next)
	if i == len(st.queue) {
		return Event{}, false, st.ended
	}
	r.next = st.queue[i].at + 1
	return Event{ID: st.id(st.queue[i].at), Message: st.queue[i].message}, true, false
}

// Wrote says that everything which Next has handed out was written to the client.
func (r *Reader) Wrote() {
	st := r.st
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.reader != r {
		return
	}
	st.delivered = max(st.delivered, r.next)
	for st.ledger == nil && len(st.queue) > 0 && st.queue[0].at < st.delivered {
		st.drop(0)
	}
}

// Close ends the reading. The stream goes on, for a client that may come back.
func (r *Reader) Close() {
	st := r.st
	st.mu.Lock()
	if st.reader != r {
		st.mu.Unlock()
		return
	}
	var missed []event
	if st.listening {
		missed = slices.Clone(st.queue[st.search(st.delivered):])
		for range missed {
			st.drop(len(st.queue) - 1)
		}
	}
	st.reader = nil
	ended, heard := st.ended, st.delivered == st.next
	st.mu.Unlock()
	if st.listening && st.sess != nil {
		st.sess.stopListening(st, missed)
	}
	if ended || st.listening {
		st.shelve(heard || st.listening)
	}
}

// id names an event: which stream, and where in it. Numbers of streams are unique among
// all sessions, so that an id of one session means nothing in another.
func (st *Stream) id(at int) string {
	if st.ledger == nil {
		return ""
	}
	id := strconv.AppendUint(make([]byte, 0, 24), st.number, 36)
	return string(strconv.AppendInt(append(id, '-'), int64(at), 10))
}

// parseID undoes id.
func parseID(id string) (number uint64, at int, ok bool) {
	stream, position, found := strings.Cut(id, "-")
	number, err := strconv.ParseUint(stream, 36, 64)
	at64, err2 := strconv.ParseUint(position, 10, 31)
	return number, int(at64), found && err == nil && err2 == nil
}
