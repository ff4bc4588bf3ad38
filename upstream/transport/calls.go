package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
)

// Calls are the requests of one connection that wait for a reply, and the place where
// whatever else the server says finds whom it concerns.
type calls struct {
	// set by newCalls, never changed
	handler jsonrpc.Sink // hears what belongs to no call
	respond func(ctx context.Context, message []byte) error
	ids     *atomic.Int64
	log     zerolog.Logger

	asking sync.WaitGroup // questions that are being answered

	mu   sync.Mutex // guards what follows
	open map[int64]*call
	asks map[*ask]struct{}
	err  error // why no call can start any more
}

// A call is one request that waits for its reply.
type call struct {
	id     int64
	modern bool            // it carries its protocol version itself
	token  json.RawMessage // the caller's own progress token; nil: it wants no progress
	sink   jsonrpc.Sink    // nil: nobody listens
	done   chan answer     // has room for the one answer; nil where answers do not come by receive
	abort  func(error)     // ends a call without done; nil otherwise
}

type answer struct {
	reply jsonrpc.Reply
	err   error
}

// An ask is one request of the server that is being answered.
type ask struct {
	id     json.RawMessage
	of     *call // nil: it belongs to no call
	cancel context.CancelCauseFunc
}

// Why nobody is asked any more. The first is told to the server, which may still wait.
var (
	errCallEnded = &jsonrpc.Error{Code: protocol.CodeInternal, Message: "the request that this belonged to has ended"}
	errWithdrawn = errors.New("the server wants no answer any more")
)

// maxAsks is how many questions of one server may be open at once; it gets an error
// for the next one.
const maxAsks = 64

// newCalls returns an empty table. respond sends one of our responses to the server; it
// has its own time limit and may be called by several goroutines. ids counts requests
// and may be shared, so that they differ on all connections to one server.
func newCalls(ids *atomic.Int64, handler jsonrpc.Sink, respond func(context.Context, []byte) error, log zerolog.Logger) *calls {
	return &calls{handler: handler, respond: respond, ids: ids, log: log, open: map[int64]*call{}, asks: map[*ask]struct{}{}}
}

// newCall gives a request its id and makes its progress token ours.
func (c *calls) newCall(p *jsonrpc.Params, sink jsonrpc.Sink) *call {
	k := &call{id: c.ids.Add(1), modern: p.Meta(protocol.MetaVersion) != nil, sink: sink}
	if k.token = p.Meta(protocol.MetaProgressToken); k.token != nil {
		p.SetMeta(protocol.MetaProgressToken, strconv.AppendInt(nil, k.id, 10))
	}
	return k
}

// enter puts a call on the table. Every enter that succeeds is followed by an end.
func (c *calls) enter(k *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return &NotSent{Err: c.err}
	}
	c.open[k.id] = k
	return nil
}

// start is newCall and enter for a call whose answer comes by receive. Every start that
// succeeds is followed by one wait, or one end.
func (c *calls) start(p *jsonrpc.Params, sink jsonrpc.Sink) (*call, error) {
	k := c.newCall(p, sink)
	k.done = make(chan answer, 1)
	return k, c.enter(k)
}

// wait returns the answer that receive or fail finds for k, or the cause of ctx's end.
func (c *calls) wait(ctx context.Context, k *call) (jsonrpc.Reply, error) {
	select {
	case a := <-k.done:
		return a.reply, a.err
	case <-ctx.Done():
	}
	c.end(k)
	select {
	case a := <-k.done: // it came at the same moment
		return a.reply, a.err
	default:
		return jsonrpc.Reply{}, context.Cause(ctx)
	}
}

// end takes a call off the table. What the server asked within it is dropped.
func (c *calls) end(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(k)
}

// remove is end under c.mu.
func (c *calls) remove(k *call) {
	delete(c.open, k.id)
	for a := range c.asks {
		if a.of == k {
			a.cancel(errCallEnded)
		}
	}
}

// fail ends every call that runs because of err, its outcome unknown; a later one is
// NotSent. Only the first fail counts.
func (c *calls) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	for _, k := range c.open {
		c.remove(k)
		if k.abort != nil {
			k.abort(unknownOutcome(err))
		} else {
			k.done <- answer{err: unknownOutcome(err)}
		}
	}
	for a := range c.asks {
		a.cancel(errClosed)
	}
}

// close is fail, and returns when no question is being answered any more.
func (c *calls) close() {
	c.fail(errClosed)
	c.asking.Wait()
}

// receive takes one message, or a batch of them, from a stream that all calls share.
// It owns buf. ctx is the connection's and bounds what the server asks.
func (c *calls) receive(ctx context.Context, buf *jsonrpc.Buffer) {
	if jsonrpc.IsBatch(buf.B) {
		defer buf.Release()
		for _, one := range c.batch(buf.B) {
			piece := jsonrpc.NewBuffer()
			piece.B = append(piece.B, one...)
			c.receive(ctx, piece)
		}
		return
	}
	m, err := jsonrpc.Parse(buf.B)
	if err != nil {
		c.broken(buf.B, buf.B, err)
		buf.Release()
		return
	}
	if !m.IsReply() {
		c.hear(ctx, m, nil)
		buf.Release()
		return
	}
	id, ok := number(m.ID)
	if !ok || !c.deliver(id, answer{reply: jsonrpc.NewReply(m, buf)}) {
		c.log.Debug().Msg("answer to no open request skipped")
		buf.Release()
	}
}

// batch takes a list of messages apart. A list in a list is none.
func (c *calls) batch(list []byte) []json.RawMessage {
	if err := jsonrpc.Check(list); err != nil {
		c.broken(list, list, err)
		return nil
	}
	var all []json.RawMessage
	for one := range jsonrpc.Elements(list) {
		if !jsonrpc.IsArray(one) {
			all = append(all, one)
		}
	}
	return all
}

// deliver gives a call its answer; false if there is no such call.
func (c *calls) deliver(id int64, a answer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.open[id]
	if !ok || k.done == nil {
		return false
	}
	c.remove(k)
	k.done <- a
	return true
}

// broken deals with a message that cannot be used: the call that it answers fails with
// err, if head and tail (which may be the whole of it) tell which one that is.
func (c *calls) broken(head, tail []byte, err error) {
	if id, ok := repliedTo(head, tail); ok && c.deliver(id, answer{err: err}) {
		return
	}
	c.log.Warn().Err(err).Msg("message of the server skipped")
}

// hear deals with a request or a notification. of is the call on whose own stream it
// came, nil on a stream that is everybody's.
func (c *calls) hear(ctx context.Context, m jsonrpc.Message, of *call) {
	switch {
	case m.IsRequest():
		c.question(ctx, m, of)
	case m.Method == protocol.Cancelled:
		c.withdraw(jsonrpc.Get(m.Params, "requestId"))
	case m.Method == protocol.Progress:
		c.progress(m.Params, of)
	case m.IsNotification():
		sink := c.handler
		if k := c.owner(m, of); k != nil && (k.modern || !concernsAll(m.Method)) {
			sink = k.sink
		}
		if sink != nil {
			sink.Notify(m.Method, m.Params)
		}
	}
}

// concernsAll tells what a legacy server means for the session even if it says it
// while it works on a call.
func concernsAll(method string) bool {
	return strings.HasSuffix(method, "/list_changed") || method == "notifications/resources/updated"
}

// owner finds the call that a message belongs to: the one whose stream it came on, the
// subscription that it names, or the only one that anybody listens to. More than one
// is a guess, and none is made.
func (c *calls) owner(m jsonrpc.Message, of *call) *call {
	if of != nil {
		if of.sink == nil {
			return nil
		}
		return of
	}
	subscription := jsonrpc.Get(jsonrpc.Get(m.Params, "_meta"), protocol.MetaSubscription)
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, ok := number(subscription); ok {
		if k := c.open[id]; k != nil && k.sink != nil {
			return k
		}
	}
	var only *call
	for _, k := range c.open {
		if k.sink == nil {
			continue
		}
		if only != nil {
			return nil
		}
		only = k
	}
	return only
}

// progress passes a call's progress on with the caller's own token, whatever stream it
// came on. Progress of a call that has ended, or wants none, is dropped.
func (c *calls) progress(params json.RawMessage, of *call) {
	var token [1]jsonrpc.Member
	if err := jsonrpc.Pick(params, []string{protocol.MetaProgressToken}, token[:]); err != nil {
		return
	}
	id, ok := number(token[0].Value)
	if !ok {
		return
	}
	k := of
	if k == nil || k.id != id {
		c.mu.Lock()
		k = c.open[id]
		c.mu.Unlock()
	}
	if k == nil || k.token == nil || k.sink == nil {
		return
	}
	with := make([]byte, 0, len(params)+len(k.token))
	with = append(append(with, params[:token[0].At]...), k.token...)
	k.sink.Notify(protocol.Progress, append(with, params[token[0].End():]...))
}

// question answers a request of the server on a goroutine of its own.
func (c *calls) question(ctx context.Context, m jsonrpc.Message, of *call) {
	k := c.owner(m, of)
	if k != nil && k.modern {
		// such a server asks in its result, and takes no responses
		c.log.Warn().Str("method", m.Method).Msg("request of a stateless server skipped")
		return
	}
	sink := c.handler
	if k != nil {
		sink = k.sink
	}
	if m.Method == protocol.Ping { // it is about the connection
		k, ctx = nil, context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	a := &ask{id: bytes.Clone(m.ID), of: k, cancel: cancel}
	c.mu.Lock()
	if c.err != nil || len(c.asks) >= 2*maxAsks { // beyond that not even an error
		c.mu.Unlock()
		cancel(nil)
		return
	}
	if len(c.asks) >= maxAsks {
		sink = nil
	}
	c.asks[a] = struct{}{}
	c.asking.Add(1)
	c.mu.Unlock()
	params := json.RawMessage(bytes.Clone(m.Params))
	go func() {
		defer c.asking.Done()
		c.answer(ctx, a, sink, m.Method, params)
		c.mu.Lock()
		delete(c.asks, a)
		c.mu.Unlock()
		cancel(nil)
	}()
}

// answer asks whom it concerns and sends the response, unless the server has withdrawn
// the question meanwhile.
func (c *calls) answer(ctx context.Context, a *ask, sink jsonrpc.Sink, method string, params json.RawMessage) {
	var reply jsonrpc.Reply
	var err error
	switch {
	case method == protocol.Ping:
		reply.Result = json.RawMessage("{}")
	case sink == nil:
		err = &jsonrpc.Error{Code: protocol.CodeInternal, Message: "nobody can be asked now"}
	default:
		reply, err = sink.Ask(ctx, method, params)
	}
	switch cause := context.Cause(ctx); {
	case cause == nil:
	case errors.Is(cause, errWithdrawn), errors.Is(cause, errClosed):
		reply.Release()
		return
	case err != nil:
		err = errCallEnded
	}
	response := appendResponse(nil, a.id, reply, err)
	reply.Release()
	if err := c.respond(context.WithoutCancel(ctx), response); err != nil {
		c.log.Warn().Err(err).Str("method", method).Msg("answer to the server not delivered")
	}
}

// withdraw drops a question that the server no longer wants answered.
func (c *calls) withdraw(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for a := range c.asks {
		if bytes.Equal(a.id, id) {
			a.cancel(errWithdrawn)
		}
	}
}

// appendRequest appends a request with an id of ours.
func appendRequest(dst []byte, id int64, method string, p *jsonrpc.Params) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = strconv.AppendInt(dst, id, 10)
	dst = append(dst, `,"method":`...)
	return appendParams(jsonrpc.AppendQuote(dst, method), p)
}

// appendNotification appends a notification.
func appendNotification(dst []byte, method string, p *jsonrpc.Params) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":`...)
	return appendParams(jsonrpc.AppendQuote(dst, method), p)
}

func appendParams(dst []byte, p *jsonrpc.Params) []byte {
	before := len(dst)
	dst = append(dst, `,"params":`...)
	start := len(dst)
	if dst = p.Append(dst); len(dst) == start {
		dst = dst[:before]
	}
	return append(dst, '}')
}

// appendCancel appends what tells a legacy server that nobody waits for a request.
func appendCancel(dst []byte, id int64, cause error) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`...)
	dst = strconv.AppendInt(dst, id, 10)
	if errors.Is(cause, context.DeadlineExceeded) {
		return append(dst, `,"reason":"timed out"}}`...)
	}
	return append(dst, `,"reason":"cancelled by the caller"}}`...)
}

// appendResponse appends the response to a request of the server. Of an error that is
// no *jsonrpc.Error the server learns nothing: the text is not meant for it.
func appendResponse(dst []byte, id json.RawMessage, reply jsonrpc.Reply, err error) []byte {
	dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), id...)
	object := reply.Error
	if err != nil {
		object = protocol.ErrorObject(protocol.CodeInternal, "the request could not be answered", nil)
		if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
			object = protocol.ErrorObject(e.Code, e.Message, e.Data)
		}
	}
	if object != nil {
		dst = append(append(dst, `,"error":`...), object...)
	} else {
		dst = append(append(dst, `,"result":`...), reply.Result...)
	}
	return append(dst, '}')
}

// number reads an id of ours. Ours are whole numbers: "1" and 1.0 are other ids.
func number(raw json.RawMessage) (int64, bool) {
	if len(raw) == 0 || raw[0] < '1' || raw[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}
