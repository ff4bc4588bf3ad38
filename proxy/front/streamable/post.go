package streamable

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// A post is one POST: one message.
type post struct {
	endpoint
	w       http.ResponseWriter
	r       *http.Request
	accept  acceptance
	message jsonrpc.Message     // aliases the body
	said    session.Declaration // what the message says about itself
}

// post reads a message and decides its era: from the message itself if it can, for
// there may be clients of both on one connection.
func (e endpoint) post(w http.ResponseWriter, r *http.Request) {
	p := post{endpoint: e, w: w, r: r, accept: accepted(r.Header["Accept"])}
	if !isJSON(r.Header) {
		refuse(w, http.StatusUnsupportedMediaType, nil, invalid("Content-Type must be application/json"))
		return
	}
	if !p.accept.json && !p.accept.stream {
		refuse(w, http.StatusNotAcceptable, nil, invalid("Accept must name application/json and text/event-stream"))
		return
	}
	body := jsonrpc.NewBuffer()
	defer body.Release()
	if err := e.read(body, r); err != nil {
		p.unread(err)
		return
	}
	var err error
	if p.message, err = jsonrpc.Parse(body.B); err == nil {
		p.said, err = session.Declare(p.message.Params)
	}
	if err != nil {
		p.refuse(http.StatusBadRequest, err)
		return
	}
	modernHeader := false
	if version := r.Header[protocol.HeaderVersion]; len(version) > 0 {
		era, _ := protocol.EraOf(version[0])
		modernHeader = era == protocol.Modern
	}
	switch {
	case p.said.Version != nil:
		p.modern()
	case p.message.IsRequest() && p.message.Method == protocol.Initialize:
		p.initialize()
	case modernHeader:
		p.modern()
	default:
		p.legacy()
	}
}

func (p *post) refuse(status int, err error) { refuse(p.w, status, p.message.ID, err) }

var errTooLarge = errors.New("the body is too large")

// read reads the whole body, as long as it is within the limit. Memory grows with what
// has arrived, not with what was announced.
func (e endpoint) read(body *jsonrpc.Buffer, r *http.Request) error {
	if r.ContentLength > e.maxRequest {
		return errTooLarge
	}
	for {
		if len(body.B) == cap(body.B) {
			body.B = append(body.B, 0)[:len(body.B)]
		}
		n, err := r.Body.Read(body.B[len(body.B):cap(body.B)])
		body.B = body.B[:len(body.B)+n]
		switch {
		case int64(len(body.B)) > e.maxRequest:
			return errTooLarge
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (p *post) unread(err error) {
	p.w.Header().Set("Connection", "close") // what is left of the body will not be read
	if errors.Is(err, errTooLarge) {
		p.refuse(http.StatusRequestEntityTooLarge, invalid("the message is larger than limits.max_request_bytes"))
		return
	}
	p.refuse(http.StatusBadRequest, invalid("the body could not be read"))
}

// initialize opens a session. Its id goes out with the answer, unless that is an error.
func (p *post) initialize() {
	sess, err := p.table.Create(caller(p.r), p.name)
	if err != nil {
		p.w.Header().Set("Retry-After", "5")
		p.refuse(http.StatusServiceUnavailable, &jsonrpc.Error{Code: protocol.CodeInternal, Message: "too many sessions, none of them idle"})
		return
	}
	defer sess.Release()
	c := p.call(sess)
	c.opens = true
	p.serve(context.WithoutCancel(p.r.Context()), c)
	if !c.succeeded {
		p.table.Delete(sess.ID())
	}
}

// legacy serves a message within a session (2025-11-25, basic/transports).
func (p *post) legacy() {
	if version := p.r.Header[protocol.HeaderVersion]; len(version) > 0 {
		if _, known := protocol.EraOf(version[0]); !known {
			p.refuse(http.StatusBadRequest, invalid("unsupported protocol version in "+protocol.HeaderVersion))
			return
		}
	}
	sess, ok := p.session(p.w, p.r, p.message.ID)
	if !ok {
		return
	}
	defer sess.Release()
	// A client that disconnects does not cancel: it may come back for the answer.
	ctx := context.WithoutCancel(p.r.Context())
	if p.message.IsRequest() {
		p.serve(ctx, p.call(sess))
		return
	}
	p.accepted(ctx, sess)
}

// accepted passes on what wants no answer. We ask clients nothing, so an answer of
// theirs answers nothing.
func (p *post) accepted(ctx context.Context, sess *session.Session) {
	if p.message.IsNotification() {
		p.server.Serve(ctx, p.request(sess), silence{})
	}
	p.w.WriteHeader(http.StatusAccepted)
}

func (p *post) request(sess *session.Session) proxy.Request {
	return proxy.Request{Caller: sess.Caller(), Endpoint: proxy.Endpoint{Server: p.name}, Session: sess, Message: p.message}
}

func (p *post) serve(ctx context.Context, c *call) {
	r := p.request(c.sess)
	if c.modern {
		r.Param = p.param
	}
	c.begin()
	defer c.finish()
	p.server.Serve(ctx, r, c)
	c.returned = true
}
