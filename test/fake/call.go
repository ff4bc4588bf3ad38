package fake

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A Call is one request while it is answered.
type Call struct {
	Received
	Modern bool                // it came with the envelope of 2026-07-28
	W      http.ResponseWriter // for answers that are none of MCP; nil over stdio and HTTP+SSE

	server *Server
	out    output
	ctx    context.Context
	cancel context.CancelFunc
}

// An output carries the messages of one call to the client.
type output interface {
	message(m []byte) // one that is not the last
	reply(m []byte)   // the last one
	raw(b []byte)     // bytes as they are
	drop()            // breaks the connection, does not return
}

func (s *Server) newCall(ctx context.Context, r Received, out output) *Call {
	c := &Call{Received: r, server: s, out: out}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

func (c *Call) key() string { return c.Session + " " + string(c.ID) }

// Server returns the server that is called.
func (c *Call) Server() *Server { return c.server }

// Usual gives the answer that the server would have given without a handler of the test's.
func (c *Call) Usual() { c.server.usual(c) }

// Context ends when the client cancels the call or leaves.
func (c *Call) Context() context.Context { return c.ctx }

// Name returns the tool that is called, empty if it is no text.
func (c *Call) Name() string {
	var name string
	_ = json.Unmarshal(c.Param("name"), &name)
	return name
}

// Arguments returns the arguments as they came, nil if there are none.
func (c *Call) Arguments() json.RawMessage { return c.Param("arguments") }

// Result ends the call with a result. To a request of 2026-07-28 the result says that it is complete, unless it says what it is.
func (c *Call) Result(raw string) {
	if c.Modern && strings.HasPrefix(raw, "{") && !strings.Contains(raw, `"resultType"`) {
		rest := strings.TrimLeft(raw[1:], " \n")
		if rest != "}" {
			rest = "," + rest
		}
		raw = `{"resultType":"complete"` + rest
	}
	c.out.reply(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, c.ID, raw))
}

// RawResult ends the call with exactly this result.
func (c *Call) RawResult(raw string) {
	c.out.reply(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, c.ID, raw))
}

// Text ends a call of a tool with one text.
func (c *Call) Text(text string) {
	var quoted bytes.Buffer
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)
	c.Result(`{"content":[{"type":"text","text":` + strings.TrimSpace(quoted.String()) + `}]}`)
}

// Error ends the call with a JSON-RPC error; data is raw and may be empty.
func (c *Call) Error(code int, message, data string) {
	if data != "" {
		data = `,"data":` + data
	}
	quoted, _ := json.Marshal(message)
	c.out.reply(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s%s}}`, c.ID, code, quoted, data))
}

// Notify sends a notification that belongs to the call.
func (c *Call) Notify(method, params string) { c.out.message(notification(method, params)) }

// Progress sends a progress notification, if the client asked for them.
func (c *Call) Progress(n int) {
	token := c.Param("_meta", "progressToken")
	if token == nil {
		return
	}
	c.Notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, token, n))
}

// Ask puts a question to the client and returns the answer, a whole message; nil if the call ends before.
func (c *Call) Ask(method, params string) json.RawMessage {
	return c.server.ask(c.ctx, method, params, c.out.message)
}

// Write sends bytes as they are: in the body of an event stream, or on the standard output.
func (c *Call) Write(b string) { c.out.raw([]byte(b)) }

// Drop breaks the connection, or ends the process, without an answer. It does not return.
func (c *Call) Drop() { c.out.drop() }

// Sleep waits, or returns early, and false, if the call is cancelled.
func (c *Call) Sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// Hold waits for the gate to be closed, or returns early, and false, if the call is cancelled.
func (c *Call) Hold(gate <-chan struct{}) bool {
	select {
	case <-gate:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// agreed notes the version of a new session.
func (c *Call) agreed(version string) {
	s := c.server
	if c.Session == "" && !s.opt.Stateless {
		c.Session = fmt.Sprintf("session-%d", s.ids.Add(1))
	}
	if c.W != nil && !s.opt.Stateless {
		c.W.Header().Set("Mcp-Session-Id", c.Session)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions[c.Session] = version
}
