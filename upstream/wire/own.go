package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// An ownWire speaks HTTP/1.1 on connections of its own. A request is one write and,
// as a rule, one read, both on the caller's goroutine.
type ownWire struct {
	// set by newOwnWire, never changed
	dial dialFunc
	addr string

	mu     sync.Mutex // guards what follows
	closed bool
	all    map[*link]struct{} // every open connection
	idle   []*link            // the last one is the one used last
	sweep  *time.Timer        // runs expire when the first idle connection's time has come; nil: none is idle
}

func newOwnWire(dial dialFunc, addr string) *ownWire {
	return &ownWire{dial: dial, addr: addr, all: map[*link]struct{}{}}
}

// errNothingWritten says that a connection took not one byte.
var errNothingWritten = errors.New("the connection is dead")

func (w *ownWire) Exchange(ctx context.Context, r *Request) (*Response, error) {
	for {
		l := w.take()
		reused := l != nil
		if !reused {
			var err error
			if l, err = w.connect(ctx); err != nil {
				return nil, &NotSent{err}
			}
		}
		resp, err := w.roundTrip(ctx, l, r)
		if err == nil {
			return resp, nil
		}
		w.drop(l)
		if !errors.Is(err, errNothingWritten) {
			return nil, err
		}
		if !reused || ctx.Err() != nil {
			return nil, &NotSent{err}
		}
	}
}

func (w *ownWire) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := w.dial(ctx, "tcp", w.addr)
	if err != nil {
		return nil, err
	}
	l := newLink(conn)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		conn.Close()
		return nil, errClosed
	}
	w.all[l] = struct{}{}
	return l, nil
}

// maxDirect is the size up to which a request is written before the answer is read. A
// larger one might fill every buffer on the way while the server waits for us to read
// an early answer: it is written on a goroutine.
const maxDirect = 64 << 10

// roundTrip sends r on l and reads the head of the answer. After an error l is of no
// use any more, and nobody touches the request's memory.
func (w *ownWire) roundTrip(ctx context.Context, l *link, r *Request) (*Response, error) {
	stop := context.AfterFunc(ctx, l.abort)
	message := l.render(r)
	var written chan error
	if len(message) > maxDirect {
		written = make(chan error, 1)
		go func() {
			_, err := l.conn.Write(message)
			written <- err
		}()
	} else if n, err := l.conn.Write(message); err != nil && n == 0 {
		stop()
		return nil, fmt.Errorf("%w: %w", errNothingWritten, err)
	} // a part was written: the server may have answered for all that
	resp, err := l.readHead()
	if err != nil {
		stop()
		if written != nil {
			l.abort()
			<-written
		}
		return nil, err
	}
	b := &ownBody{wire: w, link: l, resp: resp, stop: stop, written: written, done: resp.Body == http.NoBody}
	b.answer = Response{Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength, Body: b}
	return &b.answer, nil
}

// take returns an idle connection that is fit for use, nil if there is none.
func (w *ownWire) take() *link {
	var waiting []*link
	for {
		l := w.pop()
		if l == nil {
			w.keep(waiting...)
			return nil
		}
		switch c := l.alive(); {
		case c == dead || !time.Now().Before(l.expiry):
			w.drop(l)
		case c == waits:
			waiting = append(waiting, l)
		default:
			w.keep(waiting...)
			return l
		}
	}
}

// pop takes the connection that was used last off the idle ones.
func (w *ownWire) pop() *link {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.idle) == 0 {
		return nil
	}
	last := len(w.idle) - 1
	l := w.idle[last]
	w.idle[last] = nil
	w.idle = w.idle[:last]
	return l
}

// maxWaiting is how many idle connections may wait for the end of an answer that
// nobody reads any more, and lingerTimeout how long.
const (
	maxWaiting    = 8
	lingerTimeout = time.Second
)

// put makes a connection idle, if it is fit for that.
func (w *ownWire) put(l *link, idleFor time.Duration) {
	switch l.condition() {
	case dead:
		w.drop(l)
		return
	case waits:
		idleFor = lingerTimeout
	}
	l.expiry = time.Now().Add(idleFor)
	w.keep(l)
}

// keep adds connections to the idle ones, as far as there is room.
func (w *ownWire) keep(links ...*link) {
	if len(links) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := 0
	for _, l := range w.idle {
		if l.rest.reader != nil {
			waiting++
		}
	}
	for _, l := range links {
		if l.rest.reader != nil {
			waiting++
		}
		if w.closed || len(w.idle) >= maxIdle || l.rest.reader != nil && waiting > maxWaiting {
			delete(w.all, l)
			l.abort()
			continue
		}
		w.idle = append(w.idle, l)
		w.schedule(l.expiry)
	}
}

// schedule makes expire run. It is called under w.mu. A short-lived connection moves
// it forward; else the pending run will look after this one as well.
func (w *ownWire) schedule(at time.Time) {
	in := time.Until(at)
	switch {
	case w.sweep == nil:
		w.sweep = time.AfterFunc(in, w.expire)
	case in < idleTimeout/2:
		w.sweep.Reset(in)
	}
}

// expire closes the idle connections whose time has come.
func (w *ownWire) expire() {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweep = nil
	var next time.Time
	kept := w.idle[:0]
	for _, l := range w.idle {
		if !now.Before(l.expiry) {
			delete(w.all, l)
			l.abort()
			continue
		}
		kept = append(kept, l)
		if next.IsZero() || l.expiry.Before(next) {
			next = l.expiry
		}
	}
	clear(w.idle[len(kept):])
	w.idle = kept
	if len(kept) > 0 {
		w.schedule(next)
	}
}

// drop ends a connection.
func (w *ownWire) drop(l *link) {
	w.mu.Lock()
	delete(w.all, l)
	w.mu.Unlock()
	l.abort()
}

func (w *ownWire) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.idle = true, nil
	if w.sweep != nil {
		w.sweep.Stop()
	}
	for l := range w.all {
		l.abort()
	}
	clear(w.all)
}
