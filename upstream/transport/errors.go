// Package transport moves raw messages to one server and back, over Streamable HTTP,
// HTTP+SSE or stdio.
package transport

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mainstem-mcp/mainstem/upstream/wire"
)

// NotSent says that a message cannot have reached the server. It is the only failure
// after which a call may be sent again.
type NotSent = wire.NotSent

// SessionGone says that the server no longer knows the session: the message was not
// worked on, and a new session may take it.
type SessionGone struct{ Status int }

func (e *SessionGone) Error() string {
	return fmt.Sprintf("the server no longer knows the session (HTTP %d)", e.Status)
}

// LoginError says that the server wants a credential that we do not have.
type LoginError struct {
	Status    int
	Challenge string // the WWW-Authenticate header as it came, for whoever starts a sign-in
	Err       error  // why the credential could not answer; nil if there is none
}

func (e *LoginError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("sign-in needed (HTTP %d): %v", e.Status, e.Err)
	}
	return fmt.Sprintf("sign-in needed (HTTP %d)", e.Status)
}

// Unwrap returns the credential's own error.
func (e *LoginError) Unwrap() error { return e.Err }

// TooLarge says that a message exceeded the limit. The connection goes on.
type TooLarge struct{ Limit int }

func (e *TooLarge) Error() string {
	return fmt.Sprintf("the answer exceeds the limit of %d bytes", e.Limit)
}

// StatusError is an HTTP answer that is no MCP answer: an error without a JSON-RPC
// body, a login page, a bare object.
type StatusError struct {
	Status      int
	ContentType string // "" if there was none
	Excerpt     string // the body's beginning, fit to be shown; may be ""
}

func (e *StatusError) Error() string {
	kind := e.ContentType
	if kind == "" {
		kind = "no content type"
	}
	text := fmt.Sprintf("unexpected answer: HTTP %d, %s", e.Status, kind)
	if e.Excerpt != "" {
		text += ": " + e.Excerpt
	}
	return text
}

// errClosed is what a connection that was closed answers.
var errClosed = errors.New("the connection is closed")

// OutcomeUnknown says that a request was sent and its fate is not known.
type OutcomeUnknown struct{ Err error }

func (e *OutcomeUnknown) Error() string { return "the outcome is unknown: " + e.Err.Error() }

// Unwrap returns what ended the wait.
func (e *OutcomeUnknown) Unwrap() error { return e.Err }

// unknownOutcome makes an OutcomeUnknown of err, unless it says so already.
func unknownOutcome(err error) error {
	if _, said := errors.AsType[*OutcomeUnknown](err); said {
		return err
	}
	return &OutcomeUnknown{err}
}

// Redact takes what we send to show who we are out of what the server says: it may
// echo it, and an error is shown to others.
func (t *HTTP) Redact(b []byte) []byte {
	for _, s := range t.secrets {
		b = bytes.ReplaceAll(b, []byte(s), []byte("[redacted]"))
	}
	return b
}

// maxExcerpt is how many bytes of a foreign body an error may quote.
const maxExcerpt = 200

// excerpt makes the beginning of a body fit for one line of text. secrets are taken
// out: a server may echo what it was sent.
func excerpt(body []byte, secrets []string) string {
	text := strings.ToValidUTF8(string(body), "\uFFFD")
	text = without(secrets, text)
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	}), " ")
	if len(text) <= maxExcerpt {
		return text
	}
	cut := maxExcerpt
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
