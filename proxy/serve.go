package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mainstem-mcp/mainstem/catalog/listing"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
)

// era is the client's: that of its own request.
func (r Request) era() protocol.Era {
	era, ok := protocol.EraOf(r.Session.Version())
	if !ok { // before initialize
		return protocol.Legacy
	}
	return era
}

// Serve answers one message of a client. A request ends with s.Reply, unless ctx was
// cancelled: then the client wants to hear no more. A notification has no answer.
func (p *Proxy) Serve(ctx context.Context, r Request, s Stream) {
	if r.Message.IsNotification() {
		p.notified(r)
		return
	}
	ctx, done, err := r.Session.Begin(ctx, r.Message.ID)
	if err != nil {
		_ = s.Reply(jsonrpc.Reply{Error: protocol.ErrorObject(protocol.CodeInvalidRequest, err.Error(), nil)})
		return
	}
	defer done()
	reply, err := p.answer(ctx, r, s)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		reply = refuse(err)
	}
	defer reply.Release()
	if err := s.Reply(reply); err != nil {
		p.log.Debug().Err(err).Str("method", r.Message.Method).Msg("answer not delivered")
	}
}

func (p *Proxy) answer(ctx context.Context, r Request, s Stream) (jsonrpc.Reply, error) {
	method, ok := protocol.MethodOf(r.Message.Method)
	if !ok || !method.Knows(r.era()) {
		return jsonrpc.Reply{}, &jsonrpc.Error{Code: protocol.CodeMethodNotFound, Message: "Method not found: " + r.Message.Method}
	}
	if params := r.Message.Params; params != nil && !jsonrpc.IsObject(params) {
		return jsonrpc.Reply{}, invalidParams("params must be an object")
	}
	switch method.Name {
	case protocol.CallTool:
		return p.callTool(ctx, r, s)
	case protocol.ListTools:
		return p.list(ctx, r, listing.Tools)
	case protocol.Initialize:
		return p.initialize(r)
	case protocol.SetLevel:
		return p.setLevel(r)
	case protocol.Discover:
		return jsonrpc.Reply{Result: p.discover()}, nil
	case protocol.Listen:
		return p.listen(ctx, r, s)
	}
	return jsonrpc.Reply{Result: json.RawMessage("{}")}, nil // ping
}

// refuse is the one place that decides what a client reads of a failure.
func refuse(err error) jsonrpc.Reply {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return jsonrpc.Reply{Error: protocol.ErrorObject(e.Code, e.Message, e.Data)}
	}
	return jsonrpc.Reply{Error: protocol.ErrorObject(protocol.CodeInternal, "internal error", nil)}
}

func invalidParams(what string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: protocol.CodeInvalidParams, Message: what}
}

// errCancelled is why a request ends that its client cancelled.
var errCancelled = errors.New("cancelled by the client")

// notified acts on a client's notification. What we do not know, or what speaks of
// nothing that runs, is passed over (JSON-RPC 2.0, section 4.1).
func (p *Proxy) notified(r Request) {
	switch r.Message.Method {
	case protocol.Initialized:
		r.Session.Initialized()
	case protocol.Cancelled:
		if id := jsonrpc.Get(r.Message.Params, "requestId"); id != nil {
			r.Session.Cancel(id, errCancelled)
		}
	}
}

// capabilities is what we offer; all of it is served to every client.
const capabilities = `{"tools":{"listChanged":true},"logging":{}}`

// initialize begins a legacy session (2025-11-25, basic/lifecycle).
func (p *Proxy) initialize(r Request) (jsonrpc.Reply, error) {
	var m [3]jsonrpc.Member
	if err := jsonrpc.Pick(r.Message.Params, []string{"protocolVersion", "capabilities", "clientInfo"}, m[:]); err != nil {
		return jsonrpc.Reply{}, err
	}
	asked, ok := jsonrpc.Unquote(m[0].Value)
	if !ok {
		return jsonrpc.Reply{}, invalidParams("initialize: protocolVersion must be a string")
	}
	version := protocol.Negotiate(asked)
	r.Session.Negotiated(version, m[1].Value, m[2].Value)
	result := fmt.Appendf(nil, `{"protocolVersion":"%s","capabilities":%s,"serverInfo":%s}`, version, capabilities, p.info)
	return jsonrpc.Reply{Result: result}, nil
}

// discover tells a modern client who we are (2026-07-28, server/discover).
func (p *Proxy) discover() json.RawMessage {
	out := []byte(`{"supportedVersions":[`)
	for i, version := range protocol.Supported() {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsonrpc.AppendQuote(out, version)
	}
	return fmt.Appendf(out, `],"capabilities":%s,"resultType":"complete","ttlMs":60000,"cacheScope":"public","_meta":{"%s":%s}}`,
		capabilities, protocol.MetaServerInfo, p.info)
}

func (p *Proxy) setLevel(r Request) (jsonrpc.Reply, error) {
	var m [1]jsonrpc.Member
	if err := jsonrpc.Pick(r.Message.Params, []string{"level"}, m[:]); err != nil {
		return jsonrpc.Reply{}, err
	}
	level, _ := jsonrpc.Unquote(m[0].Value)
	if protocol.Level(level) < 0 {
		return jsonrpc.Reply{}, invalidParams("level must be one of debug, info, notice, warning, error, critical, alert, emergency")
	}
	r.Session.SetLevel(level)
	return jsonrpc.Reply{Result: json.RawMessage("{}")}, nil
}
