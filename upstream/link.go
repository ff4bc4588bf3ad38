package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

// A Conn moves raw messages to one server and back.
type Conn interface {
	Call(ctx context.Context, method string, p jsonrpc.Params, s jsonrpc.Sink) (jsonrpc.Reply, error)
	Notify(ctx context.Context, method string, params json.RawMessage) error
	Done() <-chan struct{}
	Close() error
}

// A link is a connection on which both sides know each other.
type link struct {
	conn          Conn
	era           protocol.Era
	version       string
	quotedVersion json.RawMessage
	ours          json.RawMessage // our clientInfo
	info          json.RawMessage // the server's serverInfo; nil: none
	dual          bool            // a modern one that said it speaks the legacy era too
	tools         bool            // it declared tools
	listens       bool            // it declared that it tells of changed lists
	stop          context.CancelFunc

	// guarded by the session's mutex
	users   int
	retired bool // to be closed when nobody uses it any more
}

func (l *link) close() error {
	if l.stop != nil {
		l.stop()
	}
	return l.conn.Close()
}

// connect makes a connection for a session and introduces us to the server.
func (u *Upstream) connect(ctx context.Context, s *Session) (*link, error) {
	u.mu.Lock()
	k := u.known
	u.mu.Unlock()
	way := u.server.Transport
	if way == config.Auto {
		way = k.transport
	}
	if k.dual && s.era == protocol.Legacy {
		k.era = protocol.Legacy
	}
	l, err := u.introduce(ctx, s, way, k.era)
	if err != nil && k.era != 0 && ctx.Err() == nil && !isLogin(err) {
		// what was known may be true no longer
		u.forget()
		way = u.server.Transport
		l, err = u.introduce(ctx, s, way, 0)
	}
	if err != nil && u.server.Transport == config.Auto && onlyOldTransport(err) {
		way = config.SSE
		l, err = u.introduce(ctx, s, way, protocol.Legacy)
	}
	if err != nil {
		return nil, err
	}
	if way == config.Auto {
		way = config.StreamableHTTP
	}
	u.mu.Lock()
	if !k.dual {
		u.known = known{era: l.era, dual: l.dual, transport: way}
	}
	u.mu.Unlock()
	if s.house && l.era == protocol.Modern && l.listens {
		u.listen(ctx, s, l)
	}
	return l, nil
}

func isLogin(err error) bool {
	var login *transport.LoginError
	return errors.As(err, &login)
}

// forget makes the next connection find out the era anew.
func (u *Upstream) forget() {
	u.mu.Lock()
	u.known = known{}
	u.mu.Unlock()
}

// onlyOldTransport reports whether an answer to initialize may come from a server that
// knows only the transport of 2024-11-05 (2025-11-25, basic/transports, backwards
// compatibility).
func onlyOldTransport(err error) bool {
	var status *transport.StatusError
	return errors.As(err, &status) && (status.Status == 400 || status.Status == 404 || status.Status == 405)
}

// introduce dials and shakes hands. A child that dies of the probe is started once
// more, and spared it.
func (u *Upstream) introduce(ctx context.Context, s *Session, way config.Transport, era protocol.Era) (*link, error) {
	conn, err := u.dial(ctx, s, way)
	if err != nil {
		return nil, err
	}
	l, err := u.shake(ctx, conn, era)
	if errors.Is(err, errDiedOfProbe) {
		_ = conn.Close()
		if conn, err = u.dial(ctx, s, way); err != nil {
			return nil, err
		}
		l, err = u.initialize(ctx, conn, protocol.LatestLegacy)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

func (u *Upstream) dial(ctx context.Context, s *Session, way config.Transport) (Conn, error) {
	switch way {
	case config.Stdio:
		conn, err := transport.Start(ctx, u.server, u.transport, s)
		if err != nil {
			return nil, err
		}
		return conn, nil
	case config.SSE:
		conn, err := u.http.OpenSSE(ctx, s)
		if err != nil {
			return nil, err
		}
		return conn, nil
	}
	return u.http.Open(s, s.house), nil
}

var errDiedOfProbe = errors.New("the process ended when it was probed")

// probeTime is how long a server may take to answer the probe before it counts as one
// that ignores it.
const probeTime = 3 * time.Second

// shake finds out the era and introduces us. era is what is known from before, 0 if
// nothing is.
func (u *Upstream) shake(ctx context.Context, conn Conn, era protocol.Era) (*link, error) {
	pin := u.server.ProtocolVersion
	if pin == "legacy" || pin != protocol.V20260728 && era == protocol.Legacy {
		return u.initialize(ctx, conn, protocol.LatestLegacy)
	}
	v, found, err := u.probe(ctx, conn, probeTime)
	if err == nil && v.again { // it refused our version, yet names one that we speak
		v, found, err = u.probe(ctx, conn, probeTime)
	}
	switch {
	case err != nil:
		return nil, err
	case v.modern:
		return u.modern(conn, v, found), nil
	case pin == protocol.V20260728:
		return nil, fmt.Errorf("the server does not speak %s, to which protocol_version pins it: %s", pin, v.why)
	case isClosed(conn.Done()):
		return nil, errDiedOfProbe
	}
	l, err := u.initialize(ctx, conn, v.version)
	if !errors.Is(err, errModern) {
		return l, err
	}
	// it was only too slow for the probe
	if v, found, err = u.probe(ctx, conn, u.o.ListTimeout); err == nil && !v.modern {
		err = &transport.NotSent{Err: errModern}
	}
	if err != nil {
		return nil, err
	}
	return u.modern(conn, v, found), nil
}

// errModern is what initialize of a server comes to that speaks 2026-07-28 alone.
var errModern = errors.New("it knows no initialize, and does not answer server/discover")

// probe asks server/discover and waits that long for an answer. found is what the server said of itself.
func (u *Upstream) probe(ctx context.Context, conn Conn, patience time.Duration) (v verdict, found json.RawMessage, err error) {
	wait, cancel := context.WithTimeoutCause(ctx, patience, errTimeout)
	defer cancel()
	p := jsonrpc.NewParams(json.RawMessage("{}"))
	l := u.newLink(conn, protocol.Modern, protocol.LatestModern)
	l.address(&p, noCapabilities)
	reply, err := conn.Call(wait, protocol.Discover, p, nil)
	if ctx.Err() != nil {
		return verdict{}, nil, context.Cause(ctx)
	}
	defer reply.Release()
	reply.Error = u.redact(reply.Error)
	v, err = judge(reply, err)
	return v, bytes.Clone(reply.Result), err
}

func (u *Upstream) newLink(conn Conn, era protocol.Era, version string) *link {
	return &link{
		conn: conn, era: era, version: version, quotedVersion: jsonrpc.AppendQuote(nil, version), ours: protocol.Info(u.o.Version),
	}
}

func (u *Upstream) modern(conn Conn, v verdict, found json.RawMessage) *link {
	l := u.newLink(conn, protocol.Modern, protocol.LatestModern)
	l.dual = v.dual
	l.info = jsonrpc.Get(jsonrpc.Get(found, "_meta"), protocol.MetaServerInfo)
	l.declared(jsonrpc.Get(found, "capabilities"), found == nil)
	return l
}

// declared notes what a server says it offers. unknown: it had no chance to say.
func (l *link) declared(capabilities json.RawMessage, unknown bool) {
	tools := jsonrpc.Get(capabilities, "tools")
	l.tools = unknown || jsonrpc.IsObject(tools)
	l.listens = string(jsonrpc.Get(tools, "listChanged")) == "true"
}

// initialize is the handshake of the legacy era.
func (u *Upstream) initialize(ctx context.Context, conn Conn, version string) (*link, error) {
	params := append(jsonrpc.AppendQuote([]byte(`{"protocolVersion":`), version), `,"capabilities":{},"clientInfo":`...)
	params = append(append(params, protocol.Info(u.o.Version)...), '}')
	reply, err := conn.Call(ctx, protocol.Initialize, jsonrpc.NewParams(params), nil)
	if err != nil {
		return nil, err
	}
	defer reply.Release()
	if v, err := judge(jsonrpc.Reply{Error: reply.Error}, nil); reply.Error != nil && err == nil && v.modern {
		return nil, errModern
	}
	if reply.Error != nil {
		return nil, &transport.NotSent{Err: fmt.Errorf("it refused initialize: %s", errorText(u.redact(reply.Error)))}
	}
	agreed, _ := jsonrpc.Unquote(jsonrpc.Get(reply.Result, "protocolVersion"))
	if era, ok := protocol.EraOf(agreed); !ok || era != protocol.Legacy {
		return nil, &transport.NotSent{Err: fmt.Errorf("no common version: it speaks %q, we asked for %q", agreed, version)}
	}
	l := u.newLink(conn, protocol.Legacy, agreed)
	l.info = bytes.Clone(jsonrpc.Get(reply.Result, "serverInfo"))
	l.declared(jsonrpc.Get(reply.Result, "capabilities"), false)
	if err := conn.Notify(ctx, protocol.Initialized, nil); err != nil {
		return nil, err
	}
	return l, nil
}

// redact makes an error object fit to be shown. What a tool answers is not touched.
func (u *Upstream) redact(object json.RawMessage) json.RawMessage {
	if object == nil || u.http == nil {
		return object
	}
	return u.http.Redact(object)
}

// errorText shows a server's error object in one line.
func errorText(object json.RawMessage) string {
	message, _ := jsonrpc.Unquote(jsonrpc.Get(object, "message"))
	if len(message) > 300 {
		message = message[:300]
	}
	return fmt.Sprintf("%q (code %s)", message, jsonrpc.Get(object, "code"))
}
