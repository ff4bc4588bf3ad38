// Package upstream keeps the configured servers reachable and their lists known.
package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/catalog/listing"
	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

// An Upstream is one configured server. Run keeps it connected and its list fresh; the
// other methods may be called from any goroutine, with or without Run.
type Upstream struct {
	// set by newUpstream, never changed
	server    *config.Server
	o         Options
	log       zerolog.Logger
	transport transport.Options
	http      *transport.HTTP // nil for stdio
	house     *Session        // ours: for lists, and for calls of whoever has no session of its own
	processes *atomic.Int64   // children of per_client sessions, of all servers
	changed   func()          // tells that list or status changed
	poke      chan struct{}   // wakes Run: the list may have changed, or the connection ended
	done      chan struct{}   // closed by Close
	settled   chan struct{}   // closed once a list is known or the first try has ended

	listing  atomic.Pointer[listing.Listing] // replaced whole
	troubled atomic.Bool                     // a call found that a sign-in is needed
	leaving  sync.WaitGroup                  // connections that are being ended; none is added once closed

	mu        sync.Mutex // guards what follows
	status    Status
	known     known
	refresh   *refresh // the one that is running; nil: none
	peers     map[string]*Session
	unsettled bool
	closed    bool
	runs      bool // Run is at work
}

// known is what the last connection taught about the server, so that the next one does
// not have to find out again.
type known struct {
	era       protocol.Era
	dual      bool // it speaks both eras
	transport config.Transport
}

// refresh is one run of asking a server for its lists, which any number may wait for.
type refresh struct {
	done chan struct{} // closed at the end; err is set before
	err  error
}

func newUpstream(server *config.Server, o Options, processes *atomic.Int64, changed func()) *Upstream {
	u := &Upstream{
		server: server, o: o, processes: processes, changed: changed,
		log:  o.Log.With().Str("upstream", server.Name).Logger(),
		poke: make(chan struct{}, 1), done: make(chan struct{}), settled: make(chan struct{}),
		peers: map[string]*Session{}, unsettled: true,
	}
	u.transport = o.Transport
	u.transport.UserAgent, u.transport.Log = protocol.Name+"/"+o.Version, u.log
	u.status = Status{State: Connecting}
	if server.Transport != config.Stdio {
		u.http = transport.Reach(server, u.transport)
	}
	u.house = &Session{u: u, house: true}
	switch {
	case !server.Enabled:
		u.status.State = Disabled
		u.settle()
	case server.Failed != "":
		u.status.State, u.status.Error = Failed, server.Name+": "+server.Failed
		u.settle()
	}
	return u
}

// Server is the server's configuration.
func (u *Upstream) Server() *config.Server { return u.server }

// Listing is what the server listed last; nil if nothing is known.
func (u *Upstream) Listing() *listing.Listing { return u.listing.Load() }

// Settled is closed once a list is known or the first try to get one has ended: until
// then waiting may help.
func (u *Upstream) Settled() <-chan struct{} { return u.settled }

func (u *Upstream) settle() {
	u.mu.Lock()
	first := u.unsettled
	u.unsettled = false
	u.mu.Unlock()
	if first {
		close(u.settled)
	}
}

// restore takes over the list that was kept from an earlier run.
func (u *Upstream) restore(ctx context.Context) {
	if u.o.Store == nil || !u.server.Enabled {
		return
	}
	stored, _, err := u.o.Store.Read(ctx, u.storeKey())
	if err != nil || stored == nil {
		if err != nil {
			u.log.Warn().Err(err).Msg("kept list not readable")
		}
		return
	}
	l, err := listing.Decode(stored, u.server.Hash)
	if err != nil {
		u.log.Debug().Err(err).Msg("kept list of no use")
		return
	}
	u.listing.Store(l)
	u.mu.Lock()
	u.status.RefreshedAt, u.status.Version, u.status.ServerInfo = l.FetchedAt, l.Version, l.ServerInfo
	u.mu.Unlock()
	u.settle()
}

func (u *Upstream) storeKey() string { return "lists/" + u.server.Name }

// Refresh connects if need be, asks for every page of every list and keeps what comes.
// However many ask at a time, the server is asked once. An error is an *Error.
func (u *Upstream) Refresh(ctx context.Context) error {
	if err := u.usable(); err != nil {
		return err
	}
	u.mu.Lock()
	r := u.refresh
	if r == nil && u.closed {
		u.mu.Unlock()
		return u.fail(errClosed)
	}
	if r == nil {
		r = &refresh{done: make(chan struct{})}
		u.refresh = r
		go u.refreshOnce(context.WithoutCancel(ctx), r)
	}
	u.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return u.fail(context.Cause(ctx))
	}
}

var errClosed = errors.New("this Mainstem is stopping")

// usable reports why the server cannot even be tried.
func (u *Upstream) usable() error {
	if u.server.Failed != "" {
		return &Error{Server: u.server.Name, Kind: Other, Text: u.server.Name + ": " + u.server.Failed}
	}
	return nil
}

// refreshOnce is a goroutine of its own: whoever asked first may leave before the rest.
func (u *Upstream) refreshOnce(ctx context.Context, r *refresh) {
	ctx, cancel := context.WithTimeoutCause(ctx, u.o.ListTimeout, errTimeout)
	defer cancel()
	stop := closeOn(u.done, cancel)
	defer stop()
	fetched, l, err := u.fetch(ctx)
	if err == nil {
		u.keep(ctx, fetched, l)
	} else {
		r.err = u.fail(harmless(err))
		u.lost(r.err)
	}
	if u.o.Observe != nil {
		u.o.Observe.List(u.server.Name, err)
	}
	u.mu.Lock()
	u.refresh = nil
	u.mu.Unlock()
	u.settle()
	u.changed()
	close(r.done)
}

// closeOn calls cancel when done is closed, unless the returned function ran before.
func closeOn(done <-chan struct{}, cancel func()) (stop func()) {
	stopped := make(chan struct{})
	go func() {
		select {
		case <-done:
			cancel()
		case <-stopped:
		}
	}()
	return sync.OnceFunc(func() { close(stopped) })
}

// keep publishes a list that was just fetched.
func (u *Upstream) keep(ctx context.Context, fetched *listing.Listing, l *link) {
	before := u.listing.Swap(fetched)
	u.changed() // whoever sees the list must not find an older catalog up to date
	u.mu.Lock()
	u.status = Status{
		State: Healthy, RefreshedAt: fetched.FetchedAt, Era: l.era, Version: l.version, ServerInfo: l.info,
		Transport: u.known.transport,
	}
	u.troubled.Store(false)
	u.mu.Unlock()
	u.logChanges(before, fetched)
	if u.o.Store == nil {
		return
	}
	if err := u.o.Store.Write(ctx, u.storeKey(), fetched.Encode(u.server.Hash), "*"); err != nil {
		u.log.Warn().Err(err).Msg("list not kept")
	}
}

// lost notes that the server could not be reached or asked.
func (u *Upstream) lost(err error) {
	var e *Error
	errors.As(err, &e)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.status.Error = e.Text
	if u.status.NextTry.IsZero() && u.runs {
		u.status.NextTry = time.Now().Add(firstRetry) // until Run says it exactly
	}
	switch {
	case e.Kind == Auth:
		u.status.State = NeedsLogin
	case u.listing.Load() != nil:
		u.status.State = Degraded
	default:
		u.status.State = Failed
	}
}

// refused notes that a call was answered with 401 although lists were not.
func (u *Upstream) refused(err error) {
	u.lost(err)
	u.troubled.Store(true)
	u.changed()
}

// accepted notes that a call was let in again.
func (u *Upstream) accepted() {
	if !u.troubled.CompareAndSwap(true, false) {
		return
	}
	u.mu.Lock()
	u.status.State, u.status.Error = Healthy, ""
	u.mu.Unlock()
	u.changed()
}

// Status is how the server does. A disabled one stays disabled, whatever a check finds.
func (u *Upstream) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	status := u.status
	if !u.server.Enabled {
		status.State = Disabled
	}
	return status
}

// A Report is what a live check of a server found.
type Report struct {
	Version    string          // the protocol version agreed on
	ServerInfo json.RawMessage // nil if the server gave none
	Tools      []string        // raw names, in the server's order
}

// Check refreshes the list and tells what the server said. It also works for a
// disabled server, to which no connection is kept.
func (u *Upstream) Check(ctx context.Context) (Report, error) {
	if !u.server.Enabled {
		defer u.house.hangUp()
	}
	if err := u.Refresh(ctx); err != nil {
		return Report{}, err
	}
	l := u.Listing()
	r := Report{Version: l.Version, ServerInfo: l.ServerInfo, Tools: []string{}}
	for _, item := range l.Items(listing.Tools) {
		r.Tools = append(r.Tools, item.Name)
	}
	return r, nil
}

// Close ends every connection. Running calls fail.
func (u *Upstream) Close() {
	u.mu.Lock()
	if u.closed {
		u.mu.Unlock()
		return
	}
	u.closed = true
	sessions := []*Session{u.house}
	for _, s := range u.peers {
		sessions = append(sessions, s)
	}
	running := u.refresh
	u.mu.Unlock()
	close(u.done)
	if running != nil {
		<-running.done
	}
	var ending sync.WaitGroup
	for _, s := range sessions {
		ending.Go(func() { _ = s.Close() })
	}
	ending.Wait()
	u.leaving.Wait()
	if u.http != nil {
		u.http.Close()
	}
}

// discard ends a connection that nobody uses any more. It may take seconds to take
// leave of a server, for which only Close waits: no call is held back by it.
func (u *Upstream) discard(l *link) {
	u.mu.Lock()
	closed := u.closed
	if !closed {
		u.leaving.Go(func() { _ = l.close() })
	}
	u.mu.Unlock()
	if closed {
		_ = l.close()
	}
}

// wake makes Run look at the server now.
func (u *Upstream) wake() {
	select {
	case u.poke <- struct{}{}:
	default:
	}
}

// State is how a server does, in one word.
type State string

// The states.
const (
	Connecting State = "connecting"
	Healthy    State = "healthy"
	Degraded   State = "degraded" // a list is served that could not be refreshed
	NeedsLogin State = "needs_login"
	Failed     State = "failed"
	Disabled   State = "disabled"
)

// Status is how a server does.
type Status struct {
	State       State
	Error       string    // the last failure, fit to be shown; "" if there is none
	NextTry     time.Time // when Run tries again; zero if it does not have to
	RefreshedAt time.Time // when the list was fetched; zero: never
	Era         protocol.Era
	Version     string // the protocol version agreed on
	ServerInfo  json.RawMessage
	Transport   config.Transport // the way that worked; "" while none did
}
