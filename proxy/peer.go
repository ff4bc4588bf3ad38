package proxy

import (
	"context"
	"encoding/json"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/proxy/session"
	"github.com/mainstem-mcp/mainstem/upstream"
)

// A peer is the client as a server's session sees it.
type peer struct{ session *session.Session }

// Key is the session's id; clients without a session share one upstream session a
// caller.
func (p peer) Key() string {
	if id := p.session.ID(); id != "" {
		return "session " + id
	}
	return "caller " + p.session.Caller().Name
}

// Capabilities is what we declare to the server in the client's name: nothing, since
// no question of a server is passed on.
func (p peer) Capabilities() json.RawMessage { return json.RawMessage("{}") }

// Notify drops what the server says outside any call.
func (p peer) Notify(string, json.RawMessage) {}

// Ask refuses what the server asks outside any call.
func (p peer) Ask(_ context.Context, method string, _ json.RawMessage) (jsonrpc.Reply, error) {
	return upstream.Refusal(method), nil
}

// open returns the session in which the call goes to its server. A client's session
// keeps those that it opened, and they end with it.
func (p *Proxy) open(ctx context.Context, c *call) (*upstream.Session, error) {
	key := c.entry.Ref.Server
	if kept, ok := c.r.Session.Kept(key); ok {
		if s, ok := kept.(*upstream.Session); ok {
			return s, nil
		}
	}
	u, ok := p.set.Get(key)
	if !ok { // the catalog holds only servers of the set
		return nil, &upstream.Error{Server: key, Kind: upstream.Other, Text: key + ": no longer configured"}
	}
	s, err := u.Open(ctx, peer{c.r.Session}, c.r.era())
	if err == nil && c.r.Session.ID() != "" {
		c.r.Session.Keep(key, s)
	}
	return s, err
}
