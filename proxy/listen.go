package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// A listener is one open subscriptions/listen.
type listener struct {
	endpoint Endpoint
	changed  chan struct{} // holds one: a burst of changes is told once
}

func (l *listener) wake() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// listen serves subscriptions/listen until the client ends it or we stop (2026-07-28,
// basic/patterns/subscriptions). What was asked for and cannot be served is left out
// of the acknowledgement.
func (p *Proxy) listen(ctx context.Context, r Request, s Stream) (jsonrpc.Reply, error) {
	var m [1]jsonrpc.Member
	if err := jsonrpc.Pick(r.Message.Params, []string{"notifications"}, m[:]); err != nil {
		return jsonrpc.Reply{}, err
	}
	wanted := m[0].Value
	if !jsonrpc.IsObject(wanted) {
		return jsonrpc.Reply{}, invalidParams("subscriptions/listen: notifications must be an object")
	}
	tools := string(jsonrpc.Get(wanted, "toolsListChanged")) == "true"
	meta := fmt.Sprintf(`"_meta":{"%s":%s`, protocol.MetaSubscription, r.Message.ID)
	granted := "{}"
	if tools {
		granted = `{"toolsListChanged":true}`
	}
	l := &listener{endpoint: r.Endpoint, changed: make(chan struct{}, 1)}
	p.mu.Lock()
	p.listens[l] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.listens, l)
		p.mu.Unlock()
	}()
	s.Notify(protocol.Acknowledged, json.RawMessage(`{"notifications":`+granted+`,`+meta+`}}`))
	for tools {
		select {
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), session.ErrEnded) {
				return jsonrpc.Reply{}, context.Cause(ctx)
			}
			tools = false // it is we who end it, and say so
		case <-l.changed:
			s.Notify(protocol.ToolsChanged, json.RawMessage(`{`+meta+`}}`))
		}
	}
	result := fmt.Sprintf(`{"resultType":"complete",%s,"%s":%s}}`, meta, protocol.MetaServerInfo, p.info)
	return jsonrpc.Reply{Result: json.RawMessage(result)}, nil
}
