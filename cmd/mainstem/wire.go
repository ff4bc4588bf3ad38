package main

import (
	"context"
	"os"
	"runtime"
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/dial"
	"github.com/mainstem-mcp/mainstem/observe"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/admin"
	"github.com/mainstem-mcp/mainstem/proxy/console"
	"github.com/mainstem-mcp/mainstem/proxy/front"
	"github.com/mainstem-mcp/mainstem/proxy/front/streamable"
	"github.com/mainstem-mcp/mainstem/proxy/session"
	"github.com/mainstem-mcp/mainstem/state"
	"github.com/mainstem-mcp/mainstem/upstream"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

// The parts of a Mainstem, put together but not running.
type parts struct {
	cfg     *config.Config
	log     zerolog.Logger
	observe *observe.Observer
	table   *session.Table // nil unless clients are served
	set     *upstream.Set
	proxy   *proxy.Proxy
	admin   *admin.Admin
}

// wiring says what the parts are for.
type wiring struct {
	serving     bool          // clients are served, with sessions
	listTimeout time.Duration // to connect to a server and list its tools
}

// wire puts the parts together. It contacts nobody. An error is an *admin.Error.
func wire(ctx context.Context, cfg *config.Config, log zerolog.Logger, o wiring) (*parts, error) {
	dir, err := state.Open(cfg.StateDir)
	if err != nil {
		return nil, &admin.Error{Kind: admin.Config, Message: "state_dir: " + err.Error(), Cause: err}
	}
	v, c := build()
	p := &parts{cfg: cfg, log: log, observe: observe.New(log, observe.Build{Version: v, Commit: c, Go: runtime.Version()})}
	p.set = upstream.NewSet(ctx, cfg, upstream.Options{
		Version: v, Log: log, Store: dir, Observe: p.observe, Transport: transport.Options{Policy: dial.New(cfg.AllowPrivate), Environ: os.Environ},
		ListTimeout: o.listTimeout, MaxCallDuration: cfg.Limits.MaxCallDuration, MaxProcesses: cfg.Limits.MaxProcesses,
	})
	if o.serving {
		p.table = session.NewTable(session.TableOptions{
			MaxSessions: cfg.Limits.MaxSessions, Idle: cfg.Limits.SessionIdle, StreamBytes: largestAnswer(cfg), Log: log,
		})
	}
	p.proxy = proxy.New(cfg, p.set, proxy.Options{Version: v, Log: log, Table: p.table, Observe: p.observe})
	p.admin = admin.New(cfg, p.proxy, p.set)
	return p, nil
}

// largestAnswer is what the stream of a call has to hold for a client that comes back.
func largestAnswer(cfg *config.Config) int {
	const envelope = 1 << 10
	largest := 0
	for _, s := range cfg.Servers {
		largest = max(largest, s.MaxResponseBytes+envelope)
	}
	return largest
}

// door is the way in over HTTP.
func (p *parts) door() *front.Door {
	max := p.cfg.Limits.MaxRequestBytes
	return front.New(front.Routes{
		MCP:     streamable.New(p.proxy, p.table, streamable.Options{MaxRequestBytes: max}),
		Ready:   p.proxy.Ready,
		Metrics: p.observe.Handler(p.snapshot),
		Console: console.New(p.admin, console.Options{MaxBody: max}),
	}, front.Options{AllowedOrigins: p.cfg.AllowedOrigins, PublicURL: p.cfg.PublicURL, Log: p.log})
}

// snapshot is what the metrics show of the moment.
func (p *parts) snapshot() observe.Snapshot {
	now := observe.Snapshot{Sessions: p.table.Len()}
	c := p.proxy.Catalog()
	for _, u := range p.set.All() {
		name := u.Server().Name
		now.Upstreams = append(now.Upstreams, observe.Upstream{
			Server: name, State: string(u.Status().State), Tools: len(c.Alone(name).Names()),
		})
	}
	return now
}

// listed is when the list of a server was fetched; zero: never.
func (p *parts) listed(server string) time.Time {
	if u, ok := p.set.Get(server); ok && u.Listing() != nil {
		return u.Listing().FetchedAt
	}
	return time.Time{}
}
