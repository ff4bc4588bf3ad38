package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// A stdWire leaves the work to net/http: TLS, HTTP/2, and proxies on the way.
type stdWire struct {
	transport *http.Transport
	draining  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	closed  bool
	running map[*stdBody]struct{}
}

func newStdWire(dial dialFunc, secure *tls.Config) *stdWire {
	return &stdWire{
		running: map[*stdBody]struct{}{},
		transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            dial,
			TLSClientConfig:        secure,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    dialTimeout,
			MaxIdleConnsPerHost:    maxIdle,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHead,
			DisableCompression:     true,
		},
	}
}

func (w *stdWire) Exchange(ctx context.Context, r *Request) (*Response, error) {
	b := &stdBody{wire: w}
	// the end of an answer may be read after ctx has ended: then stop has detached it
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.cancel, b.stop = cancel, context.AfterFunc(ctx, cancel)
	if !w.enter(b) {
		b.end()
		return nil, &NotSent{errClosed}
	}
	var connected atomic.Bool
	inner = httptrace.WithClientTrace(inner, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	resp, err := w.transport.RoundTrip(r.standard().WithContext(inner))
	if err != nil {
		b.end()
		if err = shortened(withoutURL(err)); !connected.Load() {
			return nil, &NotSent{err}
		}
		return nil, err
	}
	b.body = resp.Body
	return &Response{Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength, Body: b}, nil
}

// standard returns r in the form of net/http, which may read the body after it has
// returned: it gets a copy.
func (r *Request) standard() *http.Request {
	req := &http.Request{Method: r.Method, URL: r.To.url, Host: r.To.url.Host, Header: r.Shared.fields.Clone()}
	for _, f := range r.Own {
		req.Header[f.Name] = append(req.Header[f.Name], f.Value)
	}
	if body := bytes.Clone(r.Body()); body != nil {
		req.ContentLength = int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
	}
	return req
}

// withoutURL takes the URL out of an error of net/http: it may carry a secret.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// maxQuote is how many bytes an error of net/http may have.
const maxQuote = 200

// shortened replaces an error that quotes a long piece of the answer.
func shortened(err error) error {
	if len(err.Error()) > maxQuote {
		return errMalformed
	}
	return err
}

func (w *stdWire) enter(b *stdBody) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.running[b] = struct{}{}
	}
	return !w.closed
}

func (w *stdWire) Close() {
	w.mu.Lock()
	w.closed = true
	for b := range w.running {
		b.cancel()
	}
	w.mu.Unlock()
	w.draining.Wait()
	w.transport.CloseIdleConnections()
}

// A stdBody is the body of an answer that net/http reads.
type stdBody struct {
	wire   *stdWire
	body   io.ReadCloser
	cancel context.CancelFunc
	stop   func() bool // detaches the exchange from its context
	done   bool        // the body was read to its end
}

func (b *stdBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if err == io.EOF {
		b.done = true
	} else if err != nil {
		err = shortened(err)
	}
	return n, err
}

// Close reads a little of what is still to come, in the background: otherwise an
// HTTP/1.1 connection is lost and an HTTP/2 stream is reset.
func (b *stdBody) Close() error {
	if b.done || !b.stop() {
		b.body.Close()
		b.end()
		return nil
	}
	w := b.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		b.cancel()
		return b.body.Close()
	}
	w.draining.Go(func() {
		timer := time.AfterFunc(lingerTimeout, b.cancel)
		defer timer.Stop()
		io.Copy(io.Discard, io.LimitReader(b.body, maxHead))
		b.body.Close()
		b.end()
	})
	return nil
}

func (b *stdBody) end() {
	b.stop()
	b.cancel()
	b.wire.mu.Lock()
	delete(b.wire.running, b)
	b.wire.mu.Unlock()
}
