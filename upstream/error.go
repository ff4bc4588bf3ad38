package upstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

// Kinds of failure.
const (
	Unreachable    = "unreachable"     // it cannot have heard us
	Timeout        = "timeout"         // no word for too long
	Auth           = "auth"            // a sign-in is needed
	TooLarge       = "too_large"       // it answered more than we take
	UnknownOutcome = "unknown_outcome" // it may or may not have run
	BadMessage     = "bad_message"     // it answered what is no answer
	Other          = "other"
)

// An Error is why a server could not be asked.
type Error struct {
	Server string
	Kind   string
	Text   string // fit for a stranger: starts with the server's name, holds no secret
	Err    error  // for the log
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

var (
	errTimeout = fmt.Errorf("timeout: %w", context.DeadlineExceeded)
	errMaxCall = fmt.Errorf("the call took too long: %w", context.DeadlineExceeded)
)

// fail makes an *Error of whatever went wrong, unless it is one already.
func (u *Upstream) fail(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	kind, text := u.explain(err)
	if _, open := errors.AsType[*transport.OutcomeUnknown](err); open && kind != UnknownOutcome {
		text += "; the outcome is unknown"
	}
	return &Error{Server: u.server.Name, Kind: kind, Text: u.server.Name + ": " + text, Err: err}
}

// uncertain says of an error that ended a call on its way that the call may have run,
// unless the error itself tells what became of it.
func uncertain(err error) error {
	var (
		status *transport.StatusError
		unsent *transport.NotSent
		gone   *transport.SessionGone
		login  *transport.LoginError
		large  *transport.TooLarge
	)
	refused := errors.As(err, &status) && status.Status >= 300
	if refused || errors.As(err, &unsent) || errors.As(err, &gone) || errors.As(err, &login) || errors.As(err, &large) {
		return err
	}
	if _, said := errors.AsType[*transport.OutcomeUnknown](err); said {
		return err
	}
	return &transport.OutcomeUnknown{Err: err}
}

// harmless takes out of an error that its outcome is unknown: where nothing was called,
// nothing can have happened.
func harmless(err error) error {
	if e, ok := errors.AsType[*transport.OutcomeUnknown](err); ok {
		return &transport.NotSent{Err: e.Err}
	}
	return err
}

func (u *Upstream) explain(err error) (kind, text string) {
	var (
		login  *transport.LoginError
		large  *transport.TooLarge
		unsent *transport.NotSent
		gone   *transport.SessionGone
		status *transport.StatusError
	)
	switch {
	case errors.As(err, &login):
		return Auth, u.signIn(login.Status)
	case errors.Is(err, errMaxCall):
		return Timeout, fmt.Sprintf("timeout: the call took longer than %v (limits.max_call_duration)", u.o.MaxCallDuration)
	case errors.Is(err, errTimeout), errors.Is(err, context.DeadlineExceeded):
		return Timeout, fmt.Sprintf("timeout: no word from the server for %v", u.server.Timeout)
	case errors.As(err, &large):
		return TooLarge, fmt.Sprintf("the answer exceeds the limit of %d bytes (max_response_bytes)", large.Limit)
	case errors.As(err, &unsent):
		return Unreachable, "unreachable: " + unsent.Error()
	case errors.As(err, &gone):
		return UnknownOutcome, "the session ended again right after a new one was made: " + gone.Error()
	case errors.As(err, &status) && status.Status >= 500:
		return UnknownOutcome, "the outcome is unknown: " + status.Error()
	case errors.As(err, &status):
		return BadMessage, status.Error()
	case errors.Is(err, errClosed):
		return Unreachable, err.Error()
	}
	return UnknownOutcome, err.Error()
}

func (u *Upstream) signIn(status int) string {
	name := u.server.Name
	if u.server.Auth.Type == "oauth" {
		return fmt.Sprintf("a sign-in is needed (HTTP %d): run `mainstem login %s`", status, name)
	}
	if u.server.Auth.Type == "" || u.server.Auth.Type == "none" {
		return fmt.Sprintf("a sign-in is needed (HTTP %d): configure `auth` for it, for OAuth `auth: {type: oauth}` and then `mainstem login %s`", status, name)
	}
	return fmt.Sprintf("the credential was refused (HTTP %d): check the one configured for it, or use `auth: {type: oauth}` and `mainstem login %s`", status, name)
}
