// Package proxy knows what each request of a client means: it finds the tool, forwards
// the call and answers.
package proxy

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/catalog"
	"github.com/mainstem-mcp/mainstem/catalog/listing"
	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/observe"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy/session"
	"github.com/mainstem-mcp/mainstem/upstream"
)

// A Proxy answers the requests of all clients. Run keeps its catalog up to date; the
// other methods may be called from any goroutine, with or without Run.
type Proxy struct {
	// set by New, never changed
	cfg     *config.Config
	set     *upstream.Set
	table   *session.Table
	observe *observe.Observer
	log     zerolog.Logger
	info    json.RawMessage // our serverInfo

	catalog atomic.Pointer[catalog.Catalog] // replaced whole by Rebuild
	built   atomic.Uint64                   // the generation of the servers' lists in it
	steady  atomic.Bool                     // every server is in the catalog, or had its chance

	building sync.Mutex // one build at a time

	mu       sync.Mutex // guards what follows
	patience time.Time  // until when the first lists are waited for; zero: nobody asked yet
	listens  map[*listener]struct{}
}

// Options are what a Proxy works with. The table is nil for commands that serve
// nobody.
type Options struct {
	Version string
	Log     zerolog.Logger
	Table   *session.Table
	Observe *observe.Observer
}

// New returns a Proxy that serves the lists that are known by now.
func New(cfg *config.Config, set *upstream.Set, o Options) *Proxy {
	p := &Proxy{
		cfg: cfg, set: set, table: o.Table, observe: o.Observe, log: o.Log, info: protocol.Info(o.Version),
		listens: map[*listener]struct{}{},
	}
	p.Rebuild()
	return p
}

// Catalog is what clients see now.
func (p *Proxy) Catalog() *catalog.Catalog { return p.catalog.Load() }

// Fresh is what clients see once everything that servers have listed by now is in it.
// It may have to build it.
func (p *Proxy) Fresh() *catalog.Catalog {
	if p.built.Load() != p.set.Generation() {
		p.Rebuild()
	}
	return p.Catalog()
}

// Ready reports whether a list is served: at least one server's is known, or there is
// no server.
func (p *Proxy) Ready() bool {
	none := !slices.ContainsFunc(p.set.All(), func(u *upstream.Upstream) bool { return u.Server().Enabled })
	return none || !p.Catalog().Empty()
}

// Endpoint reports whether /servers/{server}/mcp exists.
func (p *Proxy) Endpoint(server string) bool {
	u, ok := p.set.Get(server)
	return ok && u.Server().Enabled
}

// burst is how long changes of servers are gathered into one new catalog.
const burst = 100 * time.Millisecond

// Run rebuilds the catalog whenever a server's list changed, and tells the clients
// whose own list is another then. It ends with ctx.
func (p *Proxy) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.set.Changed():
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(burst):
		}
		p.Rebuild()
	}
}

// Rebuild makes a catalog of what the servers listed last and swaps it in.
func (p *Proxy) Rebuild() {
	p.building.Lock()
	defer p.building.Unlock()
	generation := p.set.Generation()
	settled := true
	var sources []catalog.Source
	for _, u := range p.set.All() {
		select {
		case <-u.Settled():
		default:
			settled = false
		}
		sources = append(sources, catalog.Source{Server: u.Server(), Listing: u.Listing()})
	}
	before := p.catalog.Load()
	after := catalog.Build(before, p.cfg, p.info, sources)
	p.catalog.Store(after)
	p.built.Store(generation)
	if settled {
		p.steady.Store(true)
	}
	if before != nil {
		p.logWarnings(before, after)
		p.tell(before, after)
	}
}

// logWarnings writes down what is newly odd about the tools.
func (p *Proxy) logWarnings(before, after *catalog.Catalog) {
	old := map[catalog.Warning]bool{}
	for _, w := range before.Warnings() {
		old[w] = true
	}
	for _, w := range after.Warnings() {
		if !old[w] {
			p.log.Warn().Str("upstream", w.Server).Str("tool", w.Tool).Msg(w.Message)
		}
	}
}

// view is what an endpoint shows.
func view(c *catalog.Catalog, e Endpoint) *catalog.View {
	if e.Server == "" {
		return c.All()
	}
	return c.Alone(e.Server)
}

// tell sends list_changed to the clients that see another list now. It is not called
// with two catalogs at a time.
func (p *Proxy) tell(before, after *catalog.Catalog) {
	changed := map[Endpoint]bool{}
	differs := func(e Endpoint) bool {
		known, ok := changed[e]
		if !ok {
			known = !view(before, e).Same(view(after, e))
			changed[e] = known
		}
		return known
	}
	if p.table != nil {
		p.table.Each(func(s *session.Session) {
			if s.IsInitialized() && differs(Endpoint{Server: s.Endpoint()}) {
				s.Notify(protocol.ToolsChanged, nil)
			}
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.listens {
		if differs(l.endpoint) {
			l.wake()
		}
	}
}

// await waits until the lists that an endpoint shows are known, or have had their
// chance: limits.first_list_wait from the first time that anybody asked.
func (p *Proxy) await(ctx context.Context, e Endpoint) {
	if p.steady.Load() {
		return
	}
	p.mu.Lock()
	if p.patience.IsZero() {
		p.patience = time.Now().Add(p.cfg.Limits.FirstListWait)
	}
	timer := time.NewTimer(time.Until(p.patience))
	p.mu.Unlock()
	defer timer.Stop()
	for _, u := range p.set.All() {
		if e.Server != "" && u.Server().Name != e.Server {
			continue
		}
		select {
		case <-u.Settled():
			continue
		case <-timer.C:
			timer.Reset(0) // the rest is not waited for either
		case <-ctx.Done():
			return
		}
	}
	p.Rebuild()
}

// list answers a list request: ready bytes.
func (p *Proxy) list(ctx context.Context, r Request, kind listing.Kind) (jsonrpc.Reply, error) {
	var m [1]jsonrpc.Member
	if err := jsonrpc.Pick(r.Message.Params, []string{"cursor"}, m[:]); err != nil {
		return jsonrpc.Reply{}, err
	}
	if c := m[0].Value; c != nil && !jsonrpc.IsNull(c) && string(c) != `""` {
		return jsonrpc.Reply{}, invalidParams("unknown cursor: the list has one page")
	}
	p.await(ctx, r.Endpoint)
	r.Session.Heard(protocol.ToolsChanged)
	return jsonrpc.Reply{Result: view(p.Catalog(), r.Endpoint).List(kind, r.era())}, nil
}
