package proxy

import (
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/proxy/access"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// An Endpoint is one of the places at which clients reach us.
type Endpoint struct {
	Server string // "" is /mcp, with every server; else /servers/{server}/mcp
}

// A Request is one message of a client, as a front brings it. What a front has checked:
// the envelope, the caller, the session, and for a modern request that headers and
// body agree.
type Request struct {
	Caller   access.Caller
	Endpoint Endpoint
	Session  *session.Session // of a modern request one that ends with it
	Message  jsonrpc.Message
	// Param returns an Mcp-Param-* header, decoded. nil where there are no headers, so
	// that nothing can contradict the body.
	Param func(name string) (string, bool)
}

// A Stream takes what answers one request: notifications first, the reply last and
// once. It belongs to the goroutine that serves the request, except for Notify.
type Stream interface {
	jsonrpc.Sink
	Reply(jsonrpc.Reply) error
}
