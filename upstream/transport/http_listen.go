package transport

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/upstream/wire"
)

const (
	maxBackoff = time.Minute
	healthy    = 10 * time.Second // a stream that lasted so long was one
)

// startListening keeps a stream open on which the server can speak unasked, until the
// connection is closed. ctx only carries values.
func (c *HTTPConn) startListening(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.hush != nil {
		cancel()
		return
	}
	c.hush = cancel
	c.background.Go(func() { c.listen(ctx) })
}

// listen opens the stream and opens it again when it ends, later and later if that does
// not help. A server that has none is fine (405, or whatever it says instead).
func (c *HTTPConn) listen(ctx context.Context) {
	at := position{retry: defaultRetry}
	delay, opened := at.retry, false
	for {
		resp, err := c.get(ctx, &at)
		if err == nil {
			opened = true
			began := time.Now()
			at.empty++
			c.listenTo(ctx, resp, &at)
			if at.empty == 0 || time.Since(began) > healthy {
				delay = at.retry
			}
		}
		if status, ok := errors.AsType[*StatusError](err); ok && status.Status < 500 && status.Status != http.StatusTooManyRequests {
			if opened && status.Status == http.StatusNotFound {
				c.gone(status.Status)
			}
			return
		}
		if !sleep(ctx, max(delay, at.retry)) {
			return
		}
		delay = min(2*delay, maxBackoff)
	}
}

// listenTo passes on what comes on one stream.
func (c *HTTPConn) listenTo(ctx context.Context, resp *wire.Response, at *position) {
	defer resp.Body.Close()
	body, err := decoded(resp)
	if err != nil {
		return
	}
	events := jsonrpc.NewEventReader(body, c.http.o.MaxMessage)
	for {
		e, err := events.Next()
		if err != nil {
			if errors.Is(err, jsonrpc.ErrEventTooLarge) {
				at.id = "" // otherwise it would come again
				c.http.o.Log.Warn().Err(err).Msg("message of the server skipped")
			}
			return
		}
		at.note(e)
		if len(e.Data) == 0 {
			continue
		}
		buf := jsonrpc.NewBuffer()
		buf.B = append(buf.B, e.Data...)
		c.calls.receive(ctx, buf)
	}
}
