package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A wire carries HTTP requests to one origin. There are two: our own for plain http,
// because a call should cost no goroutine, and net/http's for everything else.
type wire interface {
	// exchange sends r once and returns the head of the answer, whose body must be
	// closed. The error is a *NotSent if the server cannot have seen the request. The
	// end of ctx ends the exchange at any point, the reading of the body included.
	exchange(ctx context.Context, r *request) (*response, error)
	// close ends every connection, used or not.
	close()
}

// A request is one HTTP request. It can be sent again as it is.
type request struct {
	method string
	to     *target
	shared *head   // what many requests have in common
	own    []field // what only this one has, see add
	plain  int     // how many of own are no credential
	buf    []byte  // gap bytes that a wire may write to, then the body
}

// gap is left in front of a body, so that head and body can be written as one.
const gap = 1 << 10

func (r *request) body() []byte {
	if len(r.buf) < gap {
		return nil
	}
	return r.buf[gap:]
}

// A field is one header.
type field struct{ name, value string }

// add gives r a header of its own; false if it cannot be sent. Much of what comes here
// is foreign, and a line end in it would be another header.
func (r *request) add(name, value string) bool {
	if !legal(name, value) {
		return false
	}
	r.own = append(r.own, field{name, value})
	return true
}

func legal(name, value string) bool {
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

// A head is a set of headers, in both forms that the wires need.
type head struct {
	lines  []byte
	fields http.Header
}

func newHead(all ...http.Header) *head {
	h := &head{fields: http.Header{}}
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

func appendField(dst []byte, name, value string) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, value...), "\r\n"...)
}

// A target is a URL that requests go to.
type target struct {
	url  *url.URL
	line string // what follows the method, up to and with the Host header
}

// newTarget keeps path and query as they are written: a%2Fb is not a/b.
func newTarget(u *url.URL) *target {
	clean := *u
	clean.User, clean.Fragment, clean.RawFragment = nil, "", ""
	clean.RawQuery = strings.ReplaceAll(clean.RawQuery, " ", "%20")
	return &target{url: &clean, line: " " + clean.RequestURI() + " HTTP/1.1\r\nHost: " + clean.Host + "\r\n"}
}

// address is what to dial for an origin.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(address(a), address(b))
}

// A response is the head of an HTTP answer.
type response struct {
	status int
	header http.Header
	length int64         // of the body; -1: not known
	body   io.ReadCloser // Close keeps the connection for later if that costs no waiting
}

const (
	dialTimeout = 10 * time.Second
	idleTimeout = 90 * time.Second
	maxIdle     = 64       // connections kept to one origin
	maxHead     = 64 << 10 // bytes of an answer's head
	maxPeek     = 128      // bytes that are looked at before they are read
)

var (
	errHeadTooLarge = errors.New("the answer's head is too large")
	errUpgrade      = errors.New("the answer changes the protocol")
	errMalformed    = errors.New("the answer is not HTTP")
	errHangUp       = errors.New("the server closed the connection")
)
