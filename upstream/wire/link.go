package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A link is one connection of an ownWire. Whoever took it from there owns it.
type link struct {
	conn   net.Conn
	abort  func() // ends the connection, from any goroutine
	look   glance
	in     *bufio.Reader
	room   int       // bytes of a head that may still come; -1: no head is being read
	head   []byte    // memory for the heads of requests
	expiry time.Time // when it must not be idle any longer
	rest   rest      // what is to come of the last answer
}

func newLink(conn net.Conn) *link {
	l := &link{conn: conn, abort: func() { conn.Close() }, room: -1}
	l.look.at(conn)
	l.in = bufio.NewReaderSize(l, 4<<10)
	return l
}

// Read is for l.in alone. It ends a head that has no end.
func (l *link) Read(p []byte) (int, error) {
	if l.room < 0 {
		return l.conn.Read(p)
	}
	if l.room == 0 {
		return 0, errHeadTooLarge
	}
	n, err := l.conn.Read(p[:min(len(p), l.room)])
	l.room -= n
	return n, err
}

// render returns head and body of r in one piece.
func (l *link) render(r *Request) []byte {
	h := append(append(l.head[:0], r.Method...), r.To.line...)
	h = append(h, r.Shared.lines...)
	for _, f := range r.Own {
		h = appendField(h, f.Name, f.Value)
	}
	body := r.Body()
	if body != nil {
		h = append(h, "Content-Length: "...)
		h = append(strconv.AppendInt(h, int64(len(body)), 10), "\r\n"...)
	}
	h = append(h, "\r\n"...)
	l.head = h
	if start := Gap - len(h); body != nil && start >= 0 {
		copy(r.Buf[start:], h)
		return r.Buf[start:]
	}
	return append(h, body...)
}

// maxInterim is how many 1xx answers may come before the answer.
const maxInterim = 8

func (l *link) readHead() (*http.Response, error) {
	l.room = maxHead
	defer func() { l.room = -1 }()
	for range maxInterim {
		resp, err := http.ReadResponse(l.in, nil)
		switch {
		case err != nil:
			return nil, wireError(err)
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errUpgrade
		case resp.StatusCode >= 200:
			return resp, nil
		}
	}
	return nil, errMalformed
}

// wireError keeps what went wrong with the connection. What net/http says about a
// malformed head quotes it, and is left out.
func wireError(err error) error {
	var ne net.Error
	if errors.As(err, &ne) || errors.Is(err, errHeadTooLarge) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errHangUp
	}
	return errMalformed
}

// The condition of an idle connection.
type condition uint8

const (
	ready condition = iota
	waits           // the end of the last answer has not come
	dead
)

// condition tells whether l can be kept. It never waits for the server for long.
func (l *link) condition() condition {
	if l.rest.reader != nil {
		if c := l.settle(); c != ready {
			return c
		}
	}
	if l.in.Buffered() > 0 { // nobody asked for this
		return dead
	}
	return ready
}

// alive is condition when l is about to be used: the server may have hung up since.
func (l *link) alive() condition {
	if c := l.condition(); c != ready {
		return c
	}
	if arrived, open := l.peek(); len(arrived) > 0 || !open {
		return dead
	}
	return ready
}

// settle reads the end of an answer that nobody wants, if all of it has arrived.
func (l *link) settle() condition {
	arrived, _ := l.in.Peek(l.in.Buffered())
	more, open := l.peek()
	arrived = append(arrived[:len(arrived):len(arrived)], more...)
	switch {
	case l.rest.arrived(arrived):
	case !open || len(more) == maxPeek:
		return dead
	default:
		return waits
	}
	// what looks like the end may be data: then the deadline ends it
	l.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	_, err := io.Copy(io.Discard, l.rest.reader)
	l.conn.SetReadDeadline(time.Time{})
	if err != nil {
		return dead
	}
	l.rest = rest{}
	return ready
}

// A rest is the part of an answer that was not read.
type rest struct {
	reader  io.Reader // nil: there is none
	left    int64     // how many bytes
	chunked bool      // as many as come before the last chunk
}

// arrived reports whether b, which is what has come, holds all of it.
func (r *rest) arrived(b []byte) bool {
	if r.chunked {
		return bytes.HasSuffix(b, []byte("0\r\n\r\n"))
	}
	return int64(len(b)) >= r.left
}

// An ownBody is the body of an answer on a link.
type ownBody struct {
	wire    *ownWire
	link    *link
	resp    *http.Response
	stop    func() bool // detaches the link from the context of the exchange
	written chan error  // the end of a write that goes on beside the reading; nil: none
	got     int64
	done    bool // the body was read to its end
	closed  bool
	answer  Response // what it belongs to, in the same piece of memory
}

func (b *ownBody) Read(p []byte) (int, error) {
	n, err := b.resp.Body.Read(p)
	b.got += int64(n)
	if err == io.EOF {
		b.done = true
	} else if err != nil {
		err = wireError(err)
	}
	return n, err
}

// Close keeps the link for later or ends it. Afterwards nobody touches the memory of
// the request.
func (b *ownBody) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	l := b.link
	fit := b.stop() && !b.resp.Close
	if b.written != nil {
		select {
		case err := <-b.written:
			fit = fit && err == nil
		default:
			fit = false
			l.abort()
			<-b.written
		}
	}
	if !fit {
		b.wire.drop(l)
		return nil
	}
	if !b.done {
		l.rest = rest{b.resp.Body, b.resp.ContentLength - b.got, b.resp.ContentLength < 0}
	}
	b.wire.put(l, keepAlive(b.resp.Header))
	return nil
}

// keepAlive is how long a connection may be idle. What the server says counts, one
// second less: a request that crosses its hang-up on the way is lost.
func keepAlive(h http.Header) time.Duration {
	for part := range strings.SplitSeq(h.Get("Keep-Alive"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(strings.Trim(value, `" `))
		if err == nil && n >= 0 && n < 1<<16 && strings.EqualFold(name, "timeout") {
			return min(time.Duration(max(n-1, 0))*time.Second, idleTimeout)
		}
	}
	return idleTimeout
}
