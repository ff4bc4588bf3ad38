// Package wire carries HTTP requests to one origin: over connections of its own for
// plain http, over net/http for everything else.
package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A Wire carries requests to one origin. There are two: our own for plain http, because
// a call should cost no goroutine, and net/http's for everything else. The methods may
// be called from any goroutine.
type Wire interface {
	// Exchange sends r once and returns the head of the answer, whose body must be
	// closed. The error is a *NotSent if the server cannot have seen the request. The
	// end of ctx ends the exchange at any point, the reading of the body included.
	Exchange(ctx context.Context, r *Request) (*Response, error)
	// Close ends every connection, used or not. An Exchange after it is a *NotSent.
	Close()
}

// New returns the wire that reaches to, and contacts nobody. dial opens connections;
// secure is for https and may be nil, which trusts what the system trusts.
func New(to *Target, dial func(ctx context.Context, network, addr string) (net.Conn, error), secure *tls.Config) Wire {
	if ownFits(to.url) {
		return newOwnWire(dial, address(to.url))
	}
	return newStdWire(dial, secure)
}

// ownFits reports whether our own wire reaches u: plain http, no proxy on the way, and
// a host that needs no translation.
func ownFits(u *url.URL) bool {
	if u.Scheme != "http" || strings.ContainsFunc(u.Host, func(r rune) bool { return r >= 0x7f || r == '%' }) {
		return false
	}
	via, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	return via == nil && err == nil
}

// NotSent says that a request cannot have reached the server.
type NotSent struct{ Err error }

func (e *NotSent) Error() string { return e.Err.Error() }

// Unwrap returns what kept the request from being sent.
func (e *NotSent) Unwrap() error { return e.Err }

// A Request is one HTTP request. It can be sent again as it is, but not twice at once:
// the wire writes to Buf until the body of the answer is closed.
type Request struct {
	Method string
	To     *Target
	Shared *Head   // what many requests have in common
	Own    []Field // what only this one has, see Add
	Buf    []byte  // Gap bytes that a wire may write to, then the body; nil: no body
}

// Gap is left in front of a body, so that head and body can be written as one.
const Gap = 1 << 10

// Body returns the body, nil if there is none.
func (r *Request) Body() []byte {
	if len(r.Buf) < Gap {
		return nil
	}
	return r.Buf[Gap:]
}

// A Field is one header.
type Field struct{ Name, Value string }

// Add gives r a header of its own; false if it cannot be sent, see Legal.
func (r *Request) Add(name, value string) bool {
	if !Legal(name, value) {
		return false
	}
	r.Own = append(r.Own, Field{name, value})
	return true
}

// Legal reports whether a header can be sent. Much of what comes here is foreign, and a
// line end in it would be another header.
func Legal(name, value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"(),/:;<=>?@[\\]{}", c) >= 0 {
			return false
		}
	}
	return name != ""
}

// A Head is a set of headers, in both forms that the wires need. It never changes.
type Head struct {
	lines  []byte
	fields http.Header
}

// NewHead unites headers, all of them legal; of a name in two of them the later counts.
func NewHead(all ...http.Header) *Head {
	h := &Head{fields: http.Header{}}
	for _, fields := range all {
		for name, values := range fields {
			h.fields[name] = values
		}
	}
	for name, values := range h.fields {
		for _, value := range values {
			h.lines = appendField(h.lines, name, value)
		}
	}
	return h
}

// Values returns what h has under a canonical name, for reading.
func (h *Head) Values(name string) []string { return h.fields[name] }

func appendField(dst []byte, name, value string) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, value...), "\r\n"...)
}

// A Target is a URL that requests go to. It never changes.
type Target struct {
	url  *url.URL
	line string // what follows the method, up to and with the Host header
}

// NewTarget keeps path and query as they are written: a%2Fb is not a/b. User info and
// fragment are left out.
func NewTarget(u *url.URL) *Target {
	clean := *u
	clean.User, clean.Fragment, clean.RawFragment = nil, "", ""
	clean.RawQuery = strings.ReplaceAll(clean.RawQuery, " ", "%20")
	return &Target{url: &clean, line: " " + clean.RequestURI() + " HTTP/1.1\r\nHost: " + clean.Host + "\r\n"}
}

// Resolve returns what ref means at t. The error says that it is no URL.
func (t *Target) Resolve(ref string) (*url.URL, error) { return t.url.Parse(ref) }

// SameOrigin reports whether a wire to t reaches u, too.
func (t *Target) SameOrigin(u *url.URL) bool {
	return t.url.Scheme == u.Scheme && strings.EqualFold(address(t.url), address(u))
}

// address is what to dial for an origin.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// A Response is the head of an HTTP answer.
type Response struct {
	Status int
	Header http.Header
	Length int64         // of the body; -1: not known
	Body   io.ReadCloser // for one goroutine; Close keeps the connection for later if that costs no waiting
}

const (
	dialTimeout = 10 * time.Second
	idleTimeout = 90 * time.Second
	maxIdle     = 64       // connections kept to one origin
	maxHead     = 64 << 10 // bytes of an answer's head
	maxPeek     = 128      // bytes that are looked at before they are read
)

var (
	errClosed       = errors.New("the connection is closed")
	errHeadTooLarge = errors.New("the answer's head is too large")
	errUpgrade      = errors.New("the answer changes the protocol")
	errMalformed    = errors.New("the answer is not HTTP")
	errHangUp       = errors.New("the server closed the connection")
)
