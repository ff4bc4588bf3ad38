package streamable

import (
	"context"
	"net/http"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// modern serves a message that stands alone (2026-07-28,
// basic/transports/streamable-http). Session ids and Last-Event-ID mean nothing here.
func (p *post) modern() {
	if p.message.IsReply() {
		p.refuse(http.StatusBadRequest, invalid("the server asks nothing in this version, so there is nothing to answer"))
		return
	}
	if p.message.IsNotification() { // headers of notifications are not defined
		sess := session.NewThrowaway(caller(p.r), p.name, protocol.LatestModern, nil, nil)
		p.accepted(context.WithoutCancel(p.r.Context()), sess)
		return
	}
	if err := p.check(); err != nil {
		p.refuse(http.StatusBadRequest, err)
		return
	}
	listens := p.message.Method == protocol.Listen
	if listens && !p.accept.stream {
		p.refuse(http.StatusNotAcceptable, invalid("the answer to "+protocol.Listen+" is text/event-stream, which Accept does not name"))
		return
	}
	sess := p.said.Session(caller(p.r), p.name)
	defer sess.Close()
	c := p.call(sess)
	c.modern = true
	ctx := p.r.Context() // a client that closes the stream cancels
	if listens {
		ctx, c.cancel = context.WithCancelCause(ctx)
		defer c.cancel(nil)
		go func() { // when we stop, the stream ends with a result
			select {
			case <-p.draining:
				sess.Close()
			case <-ctx.Done():
			}
		}()
	}
	p.serve(ctx, c)
}

// check proves that the request has what every request must have, and that headers and
// body say the same: something on the way may have decided by the headers.
func (p *post) check() error {
	version, ok := jsonrpc.Unquote(p.said.Version)
	if !ok {
		return p.said.Check() // says what is missing
	}
	if err := p.header(protocol.HeaderVersion, version, false); err != nil {
		return err
	}
	if err := p.said.Check(); err != nil {
		return err
	}
	if err := p.header(protocol.HeaderMethod, p.message.Method, false); err != nil {
		return err
	}
	method, _ := protocol.MethodOf(p.message.Method)
	if method.NameMember == "" {
		return nil
	}
	var name [1]jsonrpc.Member
	if err := jsonrpc.Pick(p.message.Params, []string{method.NameMember}, name[:]); err != nil {
		return err
	}
	text, ok := jsonrpc.Unquote(name[0].Value)
	if !ok {
		return &jsonrpc.Error{Code: protocol.CodeInvalidParams, Message: p.message.Method + ": " + method.NameMember + " must be a string"}
	}
	return p.header(protocol.HeaderName, text, true)
}

// header compares a header with what the body says.
func (p *post) header(name, want string, encoded bool) error {
	values := p.r.Header[name]
	if len(values) == 0 {
		return mismatch(name, "it is missing")
	}
	got := values[0]
	if encoded {
		text, err := protocol.DecodeHeader(got)
		if err != nil {
			return mismatch(name, "malformed base64")
		}
		got = text
	}
	if len(values) > 1 || got != want {
		return mismatch(name, "the body says something else")
	}
	return nil
}

func mismatch(name, why string) error {
	return &jsonrpc.Error{Code: protocol.CodeHeaderMismatch, Message: "header " + name + ": " + why}
}

// param returns an Mcp-Param-* header. One that stands there twice, or is malformed,
// becomes a text that no argument can be equal to, since arguments are valid UTF-8.
func (p *post) param(name string) (string, bool) {
	const never = "\xff"
	values := p.r.Header.Values(protocol.HeaderParamPrefix + name)
	switch len(values) {
	case 0:
		return "", false
	case 1:
		if text, err := protocol.DecodeHeader(values[0]); err == nil {
			return text, true
		}
	}
	return never, true
}
