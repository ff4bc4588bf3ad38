package transport

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/upstream/wire"
)

const eventStream = "text/event-stream"

// answer reads the answer to k out of resp, and closes it.
func (c *HTTPConn) answer(ctx context.Context, k *call, r *request, resp *wire.Response) (jsonrpc.Reply, error) {
	kind := mediaType(resp)
	if resp.Status < 300 && kind == eventStream {
		return c.follow(ctx, k, resp)
	}
	defer resp.Body.Close()
	buf := jsonrpc.NewBuffer()
	var reply jsonrpc.Reply
	var found bool
	var err error
	switch {
	case resp.Status >= 300:
		var gone bool
		if reply, found, gone = c.refusal(k, r, resp, buf); gone {
			err = c.gone(resp.Status)
		}
	case isJSON(kind):
		if err = c.http.readAll(buf, resp); err == nil {
			reply, found, _ = c.take(ctx, k, buf)
		}
	default:
		buf.B, err = readSome(buf.B, resp)
	}
	if found {
		return reply, nil
	}
	if err == nil {
		err = c.http.statusError(r, resp, buf.B)
	}
	buf.Release()
	return jsonrpc.Reply{}, err
}

// refusal reads an answer of status 300 or more. One that is a JSON-RPC error is an
// answer like any other. Otherwise 404 ends a session: a method that the server does
// not know is 404 too, but says so (2026-07-28).
func (c *HTTPConn) refusal(k *call, r *request, resp *wire.Response, buf *jsonrpc.Buffer) (reply jsonrpc.Reply, found, gone bool) {
	readErr := c.http.readAll(buf, resp) // what came is enough to tell
	m, err := jsonrpc.Parse(buf.B)
	found = readErr == nil && err == nil && jsonrpc.IsObject(m.Error)
	if resp.Status == http.StatusNotFound && c.hasSession(r) {
		gone = !found || string(jsonrpc.Get(m.Error, "code")) != strconv.Itoa(protocol.CodeMethodNotFound)
	}
	if found = found && !gone; found {
		reply = jsonrpc.NewReply(m, buf)
		c.doubt(k, r, resp.Status, m)
	}
	return reply, found, gone
}

// doubt ends a connection if the server may have said that it does not know its session,
// or no stateless requests: many do so with 400 and an error that answers no request. It
// may mean something else, so nothing is sent again, but the next call is made on a new one.
func (c *HTTPConn) doubt(k *call, r *request, status int, m jsonrpc.Message) {
	if _, ours := number(m.ID); ours || status != http.StatusBadRequest {
		return
	}
	switch string(jsonrpc.Get(m.Error, "code")) {
	case strconv.Itoa(protocol.CodeHeaderMismatch), strconv.Itoa(protocol.CodeMissingCapability), strconv.Itoa(protocol.CodeUnsupportedVersion):
		return // so says only one that knows them
	}
	if k.modern || c.hasSession(r) {
		c.ending.Do(func() { close(c.done) })
	}
}

// take deals with one message, or a batch, out of the answer to k. If it has the answer
// itself, that owns buf. An error says that a part is no message.
func (c *HTTPConn) take(ctx context.Context, k *call, buf *jsonrpc.Buffer) (reply jsonrpc.Reply, found bool, err error) {
	if jsonrpc.IsBatch(buf.B) {
		return c.takeBatch(ctx, k, buf)
	}
	m, err := jsonrpc.Parse(buf.B)
	switch {
	case err != nil:
		return reply, false, err
	case !m.IsReply():
		c.calls.hear(ctx, m, k)
		return reply, false, nil
	case m.Error != nil && !jsonrpc.IsObject(m.Error):
		return reply, false, errors.New("the error in the answer is no object")
	}
	// an error without id can only mean the one request that this is the answer to
	if id, ok := number(m.ID); ok && id == k.id || m.ID == nil {
		return jsonrpc.NewReply(m, buf), true, nil
	}
	c.http.o.Log.Debug().Msg("answer to another request skipped")
	return reply, false, nil
}

func (c *HTTPConn) takeBatch(ctx context.Context, k *call, buf *jsonrpc.Buffer) (reply jsonrpc.Reply, found bool, err error) {
	if err := jsonrpc.Check(buf.B); err != nil {
		return reply, false, err
	}
	for one := range jsonrpc.Elements(buf.B) {
		if jsonrpc.IsArray(one) {
			continue
		}
		piece := jsonrpc.NewBuffer()
		piece.B = append(piece.B, one...)
		if reply, found, err = c.take(ctx, k, piece); found {
			buf.Release()
			return reply, true, nil
		}
		piece.Release()
	}
	return reply, false, err
}

// A position in an event stream is where to go on after it broke.
type position struct {
	id    string // of the last event; "": the server gives none
	retry time.Duration
	empty int // how many streams in a row brought nothing
}

const (
	defaultRetry = time.Second
	minRetry     = 50 * time.Millisecond
	maxEmpty     = 1000
	maxAttempts  = 3 // of a GET that fails
)

func (at *position) note(e jsonrpc.Event) {
	at.empty = 0
	if e.HasID {
		at.id = ""
		if len(e.ID) <= 1024 && wire.Legal("Last-Event-Id", e.ID) {
			at.id = e.ID
		}
	}
	if e.Retry >= 0 {
		at.retry = max(e.Retry, minRetry)
	}
}

// follow reads an event stream until it has the answer to k. One that breaks is taken
// up again if the server numbers its events, which a stateless one does not (its
// request is lost then). Nothing is ever sent again.
func (c *HTTPConn) follow(ctx context.Context, k *call, resp *wire.Response) (jsonrpc.Reply, error) {
	at := position{retry: defaultRetry}
	for {
		reply, settled, err := c.read(ctx, k, resp, &at)
		resp.Body.Close()
		if settled {
			return reply, err
		}
		if at.empty++; at.id == "" || k.modern || at.empty > maxEmpty {
			return reply, unknownOutcome(err)
		}
		if resp, err = c.resume(ctx, &at); err != nil {
			return reply, unknownOutcome(err)
		}
	}
}

var errNoAnswer = errors.New("the stream ended without an answer")

// read takes messages from a stream until one settles k, which may be an error. If none
// does, the error says how the stream ended.
func (c *HTTPConn) read(ctx context.Context, k *call, resp *wire.Response, at *position) (reply jsonrpc.Reply, settled bool, err error) {
	body, err := decoded(resp)
	if err != nil {
		return reply, true, unknownOutcome(err)
	}
	events := jsonrpc.NewEventReader(body, c.http.o.MaxMessage)
	buf := jsonrpc.NewBuffer()
	warned := false
	for {
		e, err := events.Next()
		if err != nil {
			buf.Release()
			settled, err = c.http.ended(err)
			return reply, settled, err
		}
		at.note(e)
		if len(e.Data) == 0 {
			continue
		}
		buf.B = append(buf.B[:0], e.Data...)
		reply, found, err := c.take(ctx, k, buf)
		if found {
			return reply, true, nil
		}
		if err == nil {
			continue
		}
		if id, ok := repliedTo(buf.B, buf.B); ok && id == k.id {
			buf.Release()
			return reply, true, fmt.Errorf("malformed answer: %w", err)
		}
		if !warned { // once a stream is enough
			warned = true
			c.http.o.Log.Warn().Err(err).Msg("event that is no message skipped")
		}
	}
}

// ended says what the end of a stream means for the call that waits on it, and whether
// that settles it.
func (t *HTTP) ended(err error) (settled bool, _ error) {
	switch {
	case errors.Is(err, jsonrpc.ErrEventTooLarge):
		return true, &TooLarge{t.o.MaxMessage}
	case err == io.EOF:
		return false, errNoAnswer
	}
	return false, err
}

// resume opens a stream that goes on after the last event.
func (c *HTTPConn) resume(ctx context.Context, at *position) (*wire.Response, error) {
	for attempt := 1; ; attempt++ {
		if !sleep(ctx, at.retry) {
			return nil, context.Cause(ctx)
		}
		resp, err := c.get(ctx, at)
		if err == nil {
			return resp, nil
		}
		if status, ok := errors.AsType[*StatusError](err); attempt == maxAttempts || ok && status.Status < 500 {
			return nil, err
		}
	}
}

// get opens an event stream.
func (c *HTTPConn) get(ctx context.Context, at *position) (*wire.Response, error) {
	s := c.session.Load()
	if s == nil {
		return nil, errNoAnswer
	}
	r := request{Request: wire.Request{Method: http.MethodGet, To: c.http.to, Shared: s.get}}
	if at.id != "" {
		r.Add("Last-Event-Id", at.id)
	}
	resp, err := c.http.send(ctx, &r)
	if err != nil {
		return nil, err
	}
	if resp.Status != http.StatusOK || mediaType(resp) != eventStream {
		defer resp.Body.Close()
		return nil, c.http.statusError(&r, resp, nil)
	}
	return resp, nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// readAll appends the whole of a body to buf, of which no more than a message may have.
func (t *HTTP) readAll(buf *jsonrpc.Buffer, resp *wire.Response) error {
	body, err := decoded(resp)
	if err != nil {
		return unknownOutcome(err)
	}
	limit := t.o.MaxMessage
	if body == io.Reader(resp.Body) && resp.Length > int64(limit) {
		return &TooLarge{limit}
	}
	// what is announced need not come
	buf.Grow(int(min(max(resp.Length, 0)+1, 1<<20)))
	for {
		n, err := body.Read(buf.B[len(buf.B):min(cap(buf.B), limit+1)])
		buf.B = buf.B[:len(buf.B)+n]
		switch {
		case len(buf.B) > limit:
			return &TooLarge{limit}
		case err == io.EOF:
			return nil
		case err != nil:
			return unknownOutcome(err)
		case len(buf.B) == cap(buf.B):
			buf.Grow(len(buf.B))
		}
	}
}

// readSome appends what a body begins with: one read, since it may never end.
func readSome(dst []byte, resp *wire.Response) ([]byte, error) {
	body, err := decoded(resp)
	if err != nil {
		return dst, unknownOutcome(err)
	}
	dst = slices.Grow(dst, 4*maxExcerpt)
	n, err := body.Read(dst[len(dst):cap(dst)])
	if err != nil && err != io.EOF {
		return dst, unknownOutcome(err)
	}
	return dst[:len(dst)+n], nil
}

// decoded undoes a compression that we have not asked for.
func decoded(resp *wire.Response) (io.Reader, error) {
	switch coding := strings.ToLower(resp.Header.Get("Content-Encoding")); coding {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		r, err := gzip.NewReader(resp.Body)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		return r, nil
	default:
		return nil, errors.New("the answer has an encoding that was not asked for")
	}
}

// statusError describes an answer that is none; body is its beginning.
func (t *HTTP) statusError(r *request, resp *wire.Response, body []byte) error {
	secrets := t.secrets
	for _, f := range r.Own[min(r.plain, len(r.Own)):] {
		secrets = append(slices.Clip(secrets), secretsIn(f.Value)...)
	}
	secrets = append(slices.Clip(secrets), r.Shared.Values(protocol.HeaderSession)...)
	// a type is as foreign as the body
	return &StatusError{resp.Status, excerpt([]byte(mediaType(resp)), secrets), excerpt(body[:min(len(body), 4*maxExcerpt)], secrets)}
}

// mediaType is the content type without parameters.
func mediaType(resp *wire.Response) string {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// isJSON reports whether a body may be JSON. Without a type it is worth a try.
func isJSON(kind string) bool {
	return kind == "" || kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json")
}
