package upstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/observe"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

// A Store keeps small values between runs.
type Store interface {
	Read(ctx context.Context, key string) (value []byte, version string, err error)
	Write(ctx context.Context, key string, value []byte, version string) error
}

// Options are what all servers share.
type Options struct {
	Version         string // ours, for User-Agent and clientInfo
	Log             zerolog.Logger
	Store           Store             // nil: nothing is kept
	Transport       transport.Options // its Policy and Environ; the rest is set here
	Observe         *observe.Observer // nil: nobody counts
	ListTimeout     time.Duration     // to connect and list; 0: 60 s
	MaxCallDuration time.Duration     // a call's whole duration; 0: 15 min
	MaxProcesses    int               // children of per_client sessions; 0: 64
}

// A Set is all configured servers.
type Set struct {
	upstreams []*Upstream // configuration order
	byName    map[string]*Upstream
	changed   chan struct{}
	changes   atomic.Uint64
}

// NewSet reads the lists that were kept and contacts nobody.
func NewSet(ctx context.Context, cfg *config.Config, o Options) *Set {
	if o.ListTimeout == 0 {
		o.ListTimeout = time.Minute
	}
	if o.MaxCallDuration == 0 {
		o.MaxCallDuration = 15 * time.Minute
	}
	if o.MaxProcesses == 0 {
		o.MaxProcesses = 64
	}
	s := &Set{byName: map[string]*Upstream{}, changed: make(chan struct{}, 1)}
	processes := new(atomic.Int64)
	for _, server := range cfg.Servers {
		u := newUpstream(server, o, processes, s.tell)
		u.restore(ctx)
		s.upstreams = append(s.upstreams, u)
		s.byName[server.Name] = u
	}
	return s
}

func (s *Set) tell() {
	s.changes.Add(1)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// All returns the servers in configuration order.
func (s *Set) All() []*Upstream { return s.upstreams }

// Get returns one server.
func (s *Set) Get(name string) (*Upstream, bool) {
	u, ok := s.byName[name]
	return u, ok
}

// Changed yields when a list or a status changed since the last time.
func (s *Set) Changed() <-chan struct{} { return s.changed }

// Generation grows with every change of a list or a status.
func (s *Set) Generation() uint64 { return s.changes.Load() }

// Run keeps every enabled server connected and its list fresh until ctx ends, and then
// ends everything that was started.
func (s *Set) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, u := range s.upstreams {
		if u.server.Enabled && u.server.Failed == "" {
			running.Go(func() { u.Run(ctx) })
		}
	}
	<-ctx.Done()
	s.Close()
	running.Wait()
	return nil
}

// Close ends all connections and children.
func (s *Set) Close() {
	var ending sync.WaitGroup
	for _, u := range s.upstreams {
		ending.Go(u.Close)
	}
	ending.Wait()
}
