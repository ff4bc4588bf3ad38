package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// A call is one request on its way, and the proxy.Stream that takes its answer.
type call struct {
	// set before it is served, not changed afterwards
	conn    *conn
	id      json.RawMessage // aliases buf
	buf     *jsonrpc.Buffer // the message
	alone   *session.Session
	cancel  context.CancelCauseFunc
	listens bool
	hurried bool // the reading goroutine waits for it

	mu   sync.Mutex // guards what follows
	over bool       // answered, or cancelled: nothing more is said
}

func (one *call) serve(ctx context.Context, r proxy.Request) {
	defer one.conn.leave(one)
	one.conn.server.Serve(ctx, r, one)
	one.close()
	if one.alone != nil {
		one.alone.Close()
	}
}

// end cancels the call.
func (one *call) end(cause error) {
	one.close()
	one.cancel(cause)
}

// close reports whether something could be said until now.
func (one *call) close() bool {
	one.mu.Lock()
	defer one.mu.Unlock()
	before := one.over
	one.over = true
	return !before
}

// Notify passes a notification on. It never blocks.
func (one *call) Notify(method string, params json.RawMessage) {
	line := line(jsonrpc.AppendNotification(nil, method, params))
	one.mu.Lock()
	defer one.mu.Unlock()
	if !one.over {
		one.conn.out.note(one, method == protocol.Progress, line)
	}
}

var (
	errAnswered = errors.New("the request is answered already")
	errAsk      = errors.New("clients are asked nothing")
)

// Ask refuses.
func (one *call) Ask(context.Context, string, json.RawMessage) (jsonrpc.Reply, error) {
	return jsonrpc.Reply{}, errAsk
}

// Reply answers the request. It waits while the client has much to read.
func (one *call) Reply(r jsonrpc.Reply) error {
	if !one.close() {
		return errAnswered
	}
	room := roomForReplies
	if one.hurried {
		room = roomForAll
	}
	one.conn.out.put(line(jsonrpc.AppendReply(nil, one.id, r)), room)
	return nil
}

// silence takes the answer to a notification: there is none.
type silence struct{}

func (silence) Notify(string, json.RawMessage) {}

func (silence) Ask(context.Context, string, json.RawMessage) (jsonrpc.Reply, error) {
	return jsonrpc.Reply{}, errAsk
}

func (silence) Reply(jsonrpc.Reply) error { return errAnswered }

// line makes a message one line: a line end within it would begin a message of its own.
func line(message []byte) []byte {
	jsonrpc.Unline(message)
	return append(message, '\n')
}
