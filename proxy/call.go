package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mainstem-mcp/mainstem/catalog"
	"github.com/mainstem-mcp/mainstem/catalog/listing"
	"github.com/mainstem-mcp/mainstem/catalog/result"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/naming"
	"github.com/mainstem-mcp/mainstem/observe"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy/access"
	"github.com/mainstem-mcp/mainstem/proxy/session"
	"github.com/mainstem-mcp/mainstem/upstream"
)

// Members of a tools/call by which we route and permit, or which we change.
const (
	callName = iota
	callArguments
	callMembers
)

var callNames = []string{callName: "name", callArguments: "arguments"}

// A call is one tools/call on its way.
type call struct {
	r       Request
	name    string // public
	entry   catalog.Entry
	members [callMembers]jsonrpc.Member
	level   int // lowest log level that the client wants; -1: all
	note    observe.Call
}

// callTool forwards a tools/call and brings back the answer. What goes wrong on the way
// becomes a result that the model can read.
func (p *Proxy) callTool(ctx context.Context, r Request, s Stream) (jsonrpc.Reply, error) {
	c := call{r: r, note: observe.Call{Era: r.era().String()}}
	reply, err := p.noted(ctx, &c, s)
	var e *upstream.Error
	if err != nil && ctx.Err() == nil && errors.As(err, &e) {
		p.log.Debug().Str("upstream", e.Server).Str("tool", c.entry.Ref.Raw).AnErr("err", e.Err).Msg("call failed")
		return c.failure(e.Text), nil
	}
	return reply, err
}

// Call calls a tool for a person or a program that does not speak MCP to us. What it
// returns is the result as an MCP client would get it. The error is an *upstream.Error,
// an *jsonrpc.Error with the server's own, or ErrUnknownTool.
func (p *Proxy) Call(ctx context.Context, caller access.Caller, ref naming.Ref, args json.RawMessage, s jsonrpc.Sink) (json.RawMessage, error) {
	public, ok := p.Fresh().Public(ref)
	if !ok {
		return nil, ErrUnknownTool
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	params := append(jsonrpc.AppendQuote([]byte(`{"name":`), public), `,"arguments":`...)
	c := call{r: Request{
		Caller:  caller,
		Session: session.NewThrowaway(caller, "", protocol.LatestLegacy, nil, nil),
		Message: jsonrpc.Message{Params: append(append(params, args...), '}')},
	}}
	reply, err := p.noted(ctx, &c, s)
	if err != nil {
		return nil, err
	}
	defer reply.Release()
	if reply.Error != nil {
		var code int
		_ = json.Unmarshal(jsonrpc.Get(reply.Error, "code"), &code)
		message, _ := jsonrpc.Unquote(jsonrpc.Get(reply.Error, "message"))
		return nil, &jsonrpc.Error{Code: code, Message: message, Data: bytes.Clone(jsonrpc.Get(reply.Error, "data"))}
	}
	return bytes.Clone(reply.Result), nil
}

// ErrUnknownTool is what a Call of a tool gets that is not listed.
var ErrUnknownTool = errors.New("unknown tool")

// noted is a call of which one line is written down.
func (p *Proxy) noted(ctx context.Context, c *call, s jsonrpc.Sink) (jsonrpc.Reply, error) {
	begun := time.Now()
	c.note.Outcome = observe.Refused
	reply, err := p.call(ctx, c, s)
	var e *upstream.Error
	switch {
	case ctx.Err() != nil:
		c.note.Outcome = observe.Cancelled
	case errors.As(err, &e):
		c.note.Outcome = outcomes[e.Kind]
	}
	c.note.Caller, c.note.Duration = c.r.Caller.Name, time.Since(begun)
	c.note.BytesIn, c.note.BytesOut = len(c.members[callArguments].Value), len(reply.Result)+len(reply.Error)
	p.observe.Call(c.note)
	return reply, err
}

var outcomes = map[string]observe.Outcome{
	upstream.Unreachable: observe.Unreachable, upstream.Timeout: observe.Timeout, upstream.Auth: observe.Auth, upstream.TooLarge: observe.TooLarge,
	upstream.UnknownOutcome: observe.UnknownOutcome, upstream.BadMessage: observe.BadMessage, upstream.Other: observe.Other,
}

func (p *Proxy) call(ctx context.Context, c *call, s jsonrpc.Sink) (jsonrpc.Reply, error) {
	if err := c.read(); err != nil {
		return jsonrpc.Reply{}, err
	}
	if err := p.find(ctx, c); err != nil {
		return jsonrpc.Reply{}, err
	}
	if err := c.checkHeaders(); err != nil {
		return jsonrpc.Reply{}, err
	}
	sess, err := p.open(ctx, c)
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	reply, err := c.send(ctx, sess, s)
	if err == nil && c.headersRefused(reply) && p.relearn(ctx, c) {
		reply.Release()
		reply, err = c.send(ctx, sess, s)
	}
	switch {
	case err != nil:
		return jsonrpc.Reply{}, err
	case reply.Error != nil:
		return c.relayError(reply)
	}
	return p.normalize(c, sess, reply)
}

func (c *call) send(ctx context.Context, sess *upstream.Session, s jsonrpc.Sink) (jsonrpc.Reply, error) {
	if len(c.entry.Raw) > 0 {
		ctx = upstream.WithHeaders(ctx, c.paramHeaders())
	}
	return sess.Call(ctx, protocol.CallTool, c.params(sess), sink{s, c.level})
}

// headersRefused reports whether the server did not take the call because of its
// headers: what it wants in them may have changed since it was listed. The call has not
// run then (2026-07-28, basic/transports/streamable-http, server validation).
func (c *call) headersRefused(reply jsonrpc.Reply) bool {
	return reply.Error != nil && string(jsonrpc.Get(reply.Error, "code")) == strconv.Itoa(protocol.CodeHeaderMismatch)
}

// relearn lists the call's server anew and finds the tool in what came. It reports
// whether the server wants other headers now.
func (p *Proxy) relearn(ctx context.Context, c *call) bool {
	u, ok := p.set.Get(c.entry.Ref.Server)
	if !ok || u.Refresh(ctx) != nil {
		return false
	}
	e, ok := view(p.Fresh(), c.r.Endpoint).Find(listing.Tools, c.name)
	if !ok || e.Ref != c.entry.Ref || slices.EqualFunc(e.Raw, c.entry.Raw, sameHeader) {
		return false
	}
	c.entry = e
	return true
}

// read finds the members that matter and proves that there is one of each.
func (c *call) read() error {
	params := c.r.Message.Params
	if err := jsonrpc.Pick(params, callNames, c.members[:]); err != nil {
		return err
	}
	name, ok := jsonrpc.Unquote(c.members[callName].Value)
	if !ok {
		return invalidParams("tools/call: name must be a string")
	}
	c.name, c.note.Tool = name, name
	args := c.members[callArguments].Value
	if args != nil && !jsonrpc.IsNull(args) && !jsonrpc.IsObject(args) {
		return invalidParams("tools/call: arguments must be an object")
	}
	c.level = protocol.Level(c.r.Session.Level()) // -1 if none was set
	if c.level < 0 && c.r.era() == protocol.Modern {
		c.level = noLevel
	}
	return nil
}

func isNumber(value json.RawMessage) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// find looks the tool up. What is not in the caller's catalog is unknown, and its
// server hears nothing of it.
func (p *Proxy) find(ctx context.Context, c *call) error {
	name := c.name
	e, ok := view(p.Catalog(), c.r.Endpoint).Find(listing.Tools, name)
	if !ok {
		p.await(ctx, c.r.Endpoint)
		e, ok = view(p.Catalog(), c.r.Endpoint).Find(listing.Tools, name)
	}
	if !ok {
		c.note.Outcome = observe.UnknownTool
		return invalidParams("Unknown tool: " + name)
	}
	c.entry = e
	c.note.Server, c.note.Tool = e.Ref.Server, e.Ref.Raw
	return nil
}

// params notes what the server is to read differently: its own name of the tool, its
// own names of arguments, {} for none.
func (c *call) params(sess *upstream.Session) jsonrpc.Params {
	p := jsonrpc.NewParams(c.r.Message.Params)
	name, args := c.members[callName], c.members[callArguments]
	p.Replace(name.At, name.End(), c.entry.Quoted)
	switch {
	case args.Value == nil:
		p.Add(callNames[callArguments], []byte("{}"))
	case jsonrpc.IsNull(args.Value):
		p.Replace(args.At, args.End(), []byte("{}"))
	case !c.entry.Keys.Empty():
		for _, e := range c.entry.Keys.Restore(args.Value) {
			p.Replace(args.At+e.Start, args.At+e.End, e.With)
		}
	}
	if c.r.era() == protocol.Legacy && c.level >= 0 && sess.Era() == protocol.Modern {
		p.SetMeta(protocol.MetaLogLevel, jsonrpc.AppendQuote(nil, c.r.Session.Level()))
	}
	return p
}

// badMessage says that the server broke the protocol.
func (c *call) badMessage(text string) error {
	return &upstream.Error{Server: c.entry.Ref.Server, Kind: upstream.BadMessage, Text: text}
}

// relayError passes a server's error on as it is, but for codes that the client's
// version does not know (2026-07-28, basic, error codes).
func (c *call) relayError(reply jsonrpc.Reply) (jsonrpc.Reply, error) {
	c.note.Outcome = observe.ProtocolError
	var m [2]jsonrpc.Member
	err := jsonrpc.Pick(reply.Error, []string{"code", "message"}, m[:])
	code := m[0]
	if err != nil || !isNumber(code.Value) || !jsonrpc.IsString(m[1].Value) {
		reply.Release()
		return jsonrpc.Reply{}, c.badMessage(c.entry.Ref.Server + ": its error is malformed: no code and message can be read")
	}
	if c.r.era() == protocol.Modern && string(code.Value) == strconv.Itoa(protocol.CodeResourceNotFound) {
		reply.Error = fmt.Appendf(nil, "%s%d%s", reply.Error[:code.At], protocol.CodeInvalidParams, reply.Error[code.End():])
	}
	return reply, nil
}

// normalize makes of the server's result what the client gets.
func (p *Proxy) normalize(c *call, sess *upstream.Session, reply jsonrpc.Reply) (jsonrpc.Reply, error) {
	server := c.entry.Ref.Server
	if sess.Era() == protocol.Modern && c.r.era() == protocol.Legacy {
		if kind, _ := jsonrpc.Unquote(jsonrpc.Get(reply.Result, "resultType")); kind != "" && kind != "complete" {
			reply.Release()
			return jsonrpc.Reply{}, c.badMessage(fmt.Sprintf("%s: it answered with a result of the type %q, which this client cannot take", server, kind))
		}
	}
	buf := jsonrpc.NewBuffer()
	out, failed, err := c.entry.Result.Normalize(buf.B, reply, c.r.Session.Version(), p.info)
	if err != nil {
		buf.Release()
		reply.Release()
		return jsonrpc.Reply{}, c.badMessage(err.Error())
	}
	c.note.Outcome = observe.OK
	if failed {
		c.note.Outcome = observe.ToolFailed
	}
	if sameBytes(out, reply.Result) {
		buf.Release()
		return reply, nil
	}
	reply.Release()
	buf.B = out
	return jsonrpc.NewReply(jsonrpc.Message{Result: out}, buf), nil
}

func sameBytes(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// failure is a result with isError that says what happened.
func (c *call) failure(text string) jsonrpc.Reply {
	out := result.Failure(text)
	if c.r.era() == protocol.Modern {
		out = append(out[:len(out)-1], `,"resultType":"complete"}`...)
	}
	return jsonrpc.Reply{Result: out}
}

// noLevel is above every log level.
const noLevel = 100

// A sink takes what the server says during a call, less the log messages that the
// client does not want.
type sink struct {
	jsonrpc.Sink
	level int
}

// Notify passes a notification on.
func (s sink) Notify(method string, params json.RawMessage) {
	if method == protocol.LogMessage && s.level >= 0 {
		level, _ := jsonrpc.Unquote(jsonrpc.Get(params, "level"))
		if protocol.Level(level) < s.level {
			return
		}
	}
	s.Sink.Notify(method, params)
}
