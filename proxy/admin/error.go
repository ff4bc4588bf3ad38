package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/naming"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/upstream"
)

// fail makes an *Error of anything that went wrong.
func fail(err error) *Error {
	var known *Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: Timeout, Message: "timeout", Cause: err}
	}
	return &Error{Kind: Other, Message: err.Error(), Cause: err}
}

// failCall is fail for a call.
func failCall(ref naming.Ref, err error) *Error {
	var answered *jsonrpc.Error
	switch {
	case errors.Is(err, proxy.ErrUnknownTool):
		return &Error{Kind: Unknown, Server: ref.Server, Tool: ref.Raw, Message: fmt.Sprintf("server %q has no tool %q", ref.Server, ref.Raw)}
	case errors.As(err, &answered):
		return &Error{
			Kind: ToolFailed, Server: ref.Server, Tool: ref.Raw, Message: answered.Message,
			Code: &answered.Code, Data: json.RawMessage(answered.Data), Cause: err,
		}
	}
	return failServer(err)
}

// failList is fail for connecting and listing. Whoever cannot list a server's tools
// cannot reach it, whatever it answers instead.
func failList(err error) *Error {
	e := failServer(err)
	if e.Kind == Other {
		e.Kind = Unreachable
	}
	return e
}

func failServer(err error) *Error {
	var e *upstream.Error
	if !errors.As(err, &e) {
		return fail(err)
	}
	kind := Other
	switch e.Kind {
	case upstream.Unreachable, upstream.UnknownOutcome: // the server went away, if only after it heard us
		kind = Unreachable
	case upstream.Timeout:
		kind = Timeout
	case upstream.Auth:
		kind = Auth
	}
	return &Error{Kind: kind, Message: e.Text, Server: e.Server, Cause: err}
}
