package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/dial"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/upstream/wire"
)

// HTTP reaches one configured server over HTTP. It owns the sockets; the sessions on
// them are HTTPConns and SSEConns.
type HTTP struct {
	// set by NewHTTP, never changed
	o       HTTPOptions
	invalid error // why the URL cannot be used
	to      *wire.Target
	wire    wire.Wire
	fixed   http.Header // what every request carries
	post    *wire.Head  // of a POST without a session
	secrets []string    // what errors must not show

	ids atomic.Int64 // of requests, over all sessions
}

// HTTPOptions say which server it is and what it gets to see.
type HTTPOptions struct {
	URL        string      // requested exactly as it is written; userinfo becomes a header
	Header     http.Header // of the configuration
	Credential Credential  // nil: none
	MaxMessage int         // bytes of one message; 0: 5 MiB
	Policy     *dial.Policy
	UserAgent  string
	Log        zerolog.Logger
}

// A Credential adds what shows a server who we are.
type Credential interface {
	// Apply sets headers of one request. It may set none.
	Apply(ctx context.Context, h http.Header) error
	// Challenge hears that a server answered 401 or 403, and the header of that
	// answer. With nil the request is sent once more.
	Challenge(ctx context.Context, status int, h http.Header) error
}

const defaultMaxMessage = 5 << 20

// NewHTTP contacts nobody. Whatever is wrong with the URL shows at the first request.
func NewHTTP(o HTTPOptions) *HTTP {
	if o.MaxMessage <= 0 {
		o.MaxMessage = defaultMaxMessage
	}
	t := &HTTP{o: o}
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		t.invalid, u = errors.New("the URL is no http or https URL"), &url.URL{}
	}
	t.to = wire.NewTarget(u)
	t.fixed = t.headers(u.User)
	t.post = wire.NewHead(t.fixed, postHeaders)
	t.wire = wire.New(t.to, o.Policy.Operator(), nil)
	return t
}

var (
	postHeaders = http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}}
	getHeaders  = http.Header{"Accept": {"text/event-stream"}, "Cache-Control": {"no-cache"}}
)

// headers returns what the configuration adds to every request. It cannot change what
// the protocol sets.
func (t *HTTP) headers(user *url.Userinfo) http.Header {
	all := http.Header{"Accept-Encoding": {"identity"}}
	if t.o.UserAgent != "" {
		all.Set("User-Agent", t.o.UserAgent)
	}
	if user != nil {
		password, _ := user.Password()
		r := http.Request{Header: all}
		r.SetBasicAuth(user.Username(), password)
		for _, s := range []string{user.Username(), password} {
			if len(s) >= 4 { // less would take words apart
				t.secrets = append(t.secrets, s)
			}
		}
	}
	for name, values := range t.o.Header {
		if name = textproto.CanonicalMIMEHeaderKey(name); reserved(name) {
			t.o.Log.Warn().Str("header", name).Msg("configured header is not sent: the protocol sets it")
			continue
		}
		if slices.ContainsFunc(values, func(v string) bool { return !wire.Legal(name, v) }) {
			t.o.Log.Warn().Str("header", name).Msg("configured header is not sent: illegal name or value")
			continue
		}
		all[name] = values
	}
	for _, values := range all {
		for _, v := range values {
			t.secrets = append(t.secrets, secretsIn(v)...)
		}
	}
	return all
}

// secretsIn returns what must not be shown of a header's value: a scheme in front is
// no secret, and a short word neither.
func secretsIn(value string) []string {
	var all []string
	for _, s := range append([]string{value}, strings.Fields(value)...) {
		if len(s) >= 8 && s != "identity" {
			all = append(all, s)
		}
	}
	return all
}

// reserved reports whether a header is ours to set.
func reserved(name string) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive",
		"Last-Event-Id", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		protocol.HeaderSession, protocol.HeaderVersion, protocol.HeaderMethod, protocol.HeaderName:
		return true
	}
	return strings.HasPrefix(name, protocol.HeaderParamPrefix)
}

// Open returns a session that is yet to be opened by a call of initialize, or that
// never will be if the server needs none. h hears what belongs to no call. With listen
// it keeps a stream open on which the server can speak unasked.
func (t *HTTP) Open(h jsonrpc.Sink, listen bool) *HTTPConn {
	c := &HTTPConn{http: t, listens: listen, done: make(chan struct{})}
	c.calls = newCalls(&t.ids, h, c.respond, t.o.Log)
	return c
}

// Close ends every connection. Sessions are closed before.
func (t *HTTP) Close() { t.wire.Close() }

// A request is one that may carry a credential.
type request struct {
	wire.Request
	plain int // how many of Own are no credential
}

// maxHops is how many redirects one request follows.
const maxHops = 5

// send carries r to the server: with the credential, once more after a challenge that
// it could answer, and along redirects within the origin. What the server answers is
// not judged further.
func (t *HTTP) send(ctx context.Context, r *request) (*wire.Response, error) {
	if t.invalid != nil {
		return nil, &NotSent{Err: t.invalid}
	}
	r.plain = len(r.Own)
	challenged := false
	for hops := 0; ; {
		r.Own = r.Own[:r.plain]
		if err := t.authorize(ctx, r); err != nil {
			return nil, &NotSent{Err: err}
		}
		resp, err := t.wire.Exchange(ctx, &r.Request)
		if err != nil {
			return nil, t.lost(ctx, err)
		}
		switch {
		case resp.Status == http.StatusUnauthorized || resp.Status == http.StatusForbidden && t.wantsLogin(resp):
			err = t.challenge(ctx, resp, challenged)
			challenged = true
		case resp.Status >= 300 && resp.Status < 400:
			hops++
			if err = t.redirect(r, resp, hops); err != nil && keepsMessage(resp.Status) {
				err = &NotSent{Err: err} // elsewhere, it says: not here
			}
		default:
			return resp, nil
		}
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
	}
}

// lost says what an exchange without an answer means.
func (t *HTTP) lost(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*NotSent](err); ok {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return unknownOutcome(err)
}

// keepsMessage reports whether a redirect asks for the same request at another place.
// After any other one the server may have done what it was asked.
func keepsMessage(status int) bool {
	return status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
}

func (t *HTTP) authorize(ctx context.Context, r *request) error {
	if t.o.Credential == nil {
		return nil
	}
	h := http.Header{}
	if err := t.o.Credential.Apply(ctx, h); err != nil {
		return fmt.Errorf("credential: %w", err)
	}
	for name, values := range h {
		if name = textproto.CanonicalMIMEHeaderKey(name); reserved(name) {
			continue
		}
		for _, value := range values {
			if !r.Add(name, value) {
				return fmt.Errorf("credential: header %s has an illegal value", name)
			}
		}
	}
	return nil
}

// wantsLogin reports whether a 403 is about the credential. One that a server gives as
// a JSON-RPC error, without a challenge, is that error.
func (t *HTTP) wantsLogin(resp *wire.Response) bool {
	return resp.Header.Get("Www-Authenticate") != "" || mediaType(resp) != "application/json"
}

func (t *HTTP) challenge(ctx context.Context, resp *wire.Response, again bool) error {
	login := &LoginError{Status: resp.Status, Challenge: strings.Join(resp.Header["Www-Authenticate"], ", ")}
	if again || t.o.Credential == nil {
		return login
	}
	if login.Err = t.o.Credential.Challenge(ctx, resp.Status, resp.Header.Clone()); login.Err != nil {
		return login
	}
	return nil
}

// redirect points r at where resp leads. Only 307 and 308 keep method and body, and
// another origin must not see what we send.
func (t *HTTP) redirect(r *request, resp *wire.Response, hops int) error {
	next, err := r.To.Resolve(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return fmt.Errorf("redirect without a usable target (HTTP %d)", resp.Status)
	}
	switch {
	case !r.To.SameOrigin(next):
		return fmt.Errorf("redirect to %s is not followed: another origin (HTTP %d)", next.Host, resp.Status)
	case !keepsMessage(resp.Status):
		return fmt.Errorf("redirect on %s is not followed: it would lose the message (HTTP %d)", next.Host, resp.Status)
	case hops > maxHops:
		return fmt.Errorf("more than %d redirects on %s", maxHops, next.Host)
	}
	r.To = wire.NewTarget(next)
	return nil
}
