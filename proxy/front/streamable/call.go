package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// patience is how long an answer may take before it becomes a stream, so that no
// client gives up waiting for headers.
const patience = 2 * time.Second

// A call is one request on its way, and the proxy.Stream that takes its answer: a JSON
// document if it comes soon and alone, else an event stream. Which of the two is
// decided once; then only one goroutine writes to the client, that of the handler or
// that of pump.
type call struct {
	// set before begin, not changed afterwards
	w      http.ResponseWriter
	r      *http.Request
	sess   *session.Session
	id     json.RawMessage // aliases the body
	accept acceptance
	modern bool
	opens  bool                    // the request opens the session
	cancel context.CancelCauseFunc // called when the stream ends; nil: the end of a stream cancels nothing
	stop   <-chan struct{}         // ends the stream; nil: nothing does
	timer  *time.Timer             // nil: the answer may not become a stream

	// of the handler's goroutine
	succeeded bool
	returned  bool // Serve came back

	mu     sync.Mutex // guards what follows
	state  state
	stream *session.Stream
	reader *session.Reader
	pumped chan struct{} // closed when the stream is no longer written
}

type state uint8

const (
	quiet     state = iota // nothing was sent
	streaming              // the answer is a stream
	answered               // nothing more will be sent
	lost                   // the client left before it had an event id: it cannot come back
)

func (p *post) call(sess *session.Session) *call {
	return &call{w: p.w, r: p.r, sess: sess, id: p.message.ID, accept: p.accept}
}

// begin is called before the request is served.
func (c *call) begin() {
	switch {
	case !c.accept.stream:
	case !c.accept.json:
		c.timer = time.AfterFunc(0, c.turn)
	default:
		c.timer = time.AfterFunc(patience, c.turn)
	}
}

// turn makes the answer a stream, if nothing was sent yet.
func (c *call) turn() {
	c.mu.Lock()
	turned := c.open()
	c.mu.Unlock()
	if turned {
		c.pump()
	}
}

// open decides for a stream; whoever called it has to run pump then.
func (c *call) open() bool {
	if c.state != quiet {
		return false
	}
	if !c.modern && c.r.Context().Err() != nil {
		c.state = lost
		return false
	}
	c.state = streaming
	c.stream = c.sess.Open()
	c.reader = c.stream.Read()
	c.pumped = make(chan struct{})
	return true
}

// pump writes the stream until it ends or the client has gone.
func (c *call) pump() {
	defer close(c.pumped)
	defer c.reader.Close()
	if c.opens {
		c.w.Header()[protocol.HeaderSession] = []string{c.sess.ID()}
	}
	copyEvents(c.w, c.r, c.reader, c.stop)
	if c.cancel != nil {
		c.cancel(errGone)
	}
}

var (
	errGone     = errors.New("the client has closed the stream")
	errAnswered = errors.New("the request is answered already")
	errAsk      = errors.New("clients are asked nothing")
)

// Notify passes a notification on, which makes the answer a stream. It never blocks.
func (c *call) Notify(method string, params json.RawMessage) {
	c.mu.Lock()
	if c.timer != nil && c.open() {
		c.timer.Stop()
		go c.pump()
	}
	st := c.stream
	c.mu.Unlock()
	if st != nil {
		st.Notify(method, params)
	}
}

// Ask refuses.
func (c *call) Ask(context.Context, string, json.RawMessage) (jsonrpc.Reply, error) {
	return jsonrpc.Reply{}, errAsk
}

// Reply answers the request. It returns when the answer was written, or is kept for a
// client that has gone.
func (c *call) Reply(r jsonrpc.Reply) error {
	c.succeeded = r.Error == nil
	c.mu.Lock()
	before := c.state
	c.state = answered
	c.mu.Unlock()
	switch before {
	case quiet:
		if c.timer != nil {
			c.timer.Stop()
		}
		return c.write(r)
	case streaming:
		c.stream.End(jsonrpc.AppendReply(nil, c.id, r), c.tooLarge())
		<-c.pumped
		return nil
	case lost:
		return errGone
	}
	return errAnswered
}

// tooLarge is what a client finds in place of an answer that could not be kept for it.
func (c *call) tooLarge() []byte {
	const text = "the connection broke, and the answer is too large to be kept for a new one"
	return jsonrpc.AppendReply(nil, c.id, jsonrpc.Reply{Error: protocol.ErrorObject(protocol.CodeInternal, text, nil)})
}

// finish is called when the request has been served, in whatever way.
func (c *call) finish() {
	c.mu.Lock()
	before := c.state
	c.state = answered
	c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
	switch {
	case before == streaming:
		c.stream.End(nil, nil)
		<-c.pumped
	case before == quiet && c.returned:
		// It was cancelled. The client wants no answer; an empty stream is the one way of
		// HTTP to give none.
		c.w.Header().Set("Content-Type", "text/event-stream")
		c.w.WriteHeader(http.StatusOK)
	}
}

// write sends the answer as a JSON document.
func (c *call) write(r jsonrpc.Reply) error {
	status := http.StatusOK
	if r.Error != nil && c.modern {
		status = statusOf(r.Error)
	}
	if c.opens && c.succeeded {
		c.w.Header()[protocol.HeaderSession] = []string{c.sess.ID()}
	}
	if len(r.Result) > copyLimit {
		return c.writeLarge(r)
	}
	buf := jsonrpc.NewBuffer()
	defer buf.Release()
	buf.Grow(len(r.Result) + len(r.Error) + len(c.id) + 64)
	buf.B = jsonrpc.AppendReply(buf.B, c.id, r)
	return writeJSON(c.w, status, buf.B)
}

// statusOf is the status of an error for a modern client.
func statusOf(object json.RawMessage) int {
	var code int
	if json.Unmarshal(jsonrpc.Get(object, "code"), &code) != nil {
		return http.StatusOK
	}
	return protocol.Status(code)
}

// silence takes the answer to a notification: there is none.
type silence struct{}

func (silence) Notify(string, json.RawMessage) {}

func (silence) Ask(context.Context, string, json.RawMessage) (jsonrpc.Reply, error) {
	return jsonrpc.Reply{}, errAsk
}

func (silence) Reply(jsonrpc.Reply) error { return errAnswered }
