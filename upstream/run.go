package upstream

import (
	"bytes"
	"context"
	"time"

	"github.com/mainstem-mcp/mainstem/catalog/listing"
)

// Intervals of Run.
const (
	firstRetry = time.Second // after a failure, doubled up to lastRetry
	lastRetry  = time.Minute
	burst      = 100 * time.Millisecond // notifications within it are one
	// A server that says "changed" after every list would be asked for ever; each
	// time that nothing had changed, the next question waits twice as long. One
	// that said nothing for so long is not of that kind.
	lastQuiet = time.Minute
)

// An empty first list is often a server that is still starting. It is asked again
// after these waits.
var emptyRetries = [...]time.Duration{time.Second, 3 * time.Second, 8 * time.Second, 15 * time.Second}

// A pace decides when the server is asked next.
type pace struct {
	quiet   time.Duration // how far apart questions are after "changed" without a change
	poked   bool          // "changed", or a call that failed, led to this question
	empties int           // how often the list was empty, from the start
	retry   time.Duration // how long to wait after the next failure
	since   time.Time     // since when it answers; zero while it does not
}

// Run keeps the server connected and its list fresh until ctx ends.
func (u *Upstream) Run(ctx context.Context) {
	u.mu.Lock()
	u.runs = true
	u.mu.Unlock()
	p := pace{retry: firstRetry}
	for ctx.Err() == nil && !isClosed(u.done) {
		before := u.Listing()
		started := time.Now()
		err := u.Refresh(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := u.nextWait(&p, before, err)
		u.schedule(started, wait, err)
		u.rest(ctx, &p, wait, err != nil)
	}
}

// nextWait is how long the list is good, or how long to wait after a failure.
func (u *Upstream) nextWait(p *pace, before *listing.Listing, err error) time.Duration {
	if err != nil {
		return p.backOff()
	}
	if p.since.IsZero() {
		p.since = time.Now()
	}
	l := u.Listing()
	switch {
	case before == nil || before.Hash() != l.Hash():
		p.quiet = 0
	case p.poked:
		p.quiet = min(max(2*p.quiet, burst), lastQuiet)
	}
	if len(l.Items(listing.Tools)) > 0 {
		p.empties = len(emptyRetries)
	}
	if p.empties < len(emptyRetries) {
		p.empties++
		return emptyRetries[p.empties-1]
	}
	return u.server.CacheTTL
}

// backOff is how long to wait now that the server failed: longer each time, until it
// was well for a while.
func (p *pace) backOff() time.Duration {
	if !p.since.IsZero() && time.Since(p.since) >= lastRetry {
		p.retry = firstRetry
	}
	p.since = time.Time{}
	wait := p.retry
	p.retry = min(2*p.retry, lastRetry)
	return wait
}

// schedule logs the outcome and notes when the next try comes.
func (u *Upstream) schedule(started time.Time, wait time.Duration, err error) {
	u.mu.Lock()
	u.status.NextTry = time.Time{}
	if err != nil {
		u.status.NextTry = time.Now().Add(wait)
	}
	u.mu.Unlock()
	if err != nil {
		u.log.Warn().Err(err).Dur("dur", time.Since(started)).Dur("retry_in", wait).Msg("upstream not available")
		return
	}
	l := u.Listing()
	u.log.Info().Str("version", l.Version).Int("tools", len(l.Items(listing.Tools))).Dur("dur", time.Since(started)).Msg("upstream listed")
}

// rest waits until the server is to be asked again.
func (u *Upstream) rest(ctx context.Context, p *pace, wait time.Duration, failed bool) {
	asked := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	p.poked = false
	var hold time.Duration
	select {
	case <-ctx.Done():
		return
	case <-u.done:
		return
	case <-timer.C:
		return
	case <-u.house.gone():
		hold = p.backOff()
		u.died(hold)
	case <-u.poke:
		hold = p.hold(time.Since(asked))
		if failed { // a call found it dead once more: the backoff still counts
			hold = wait - time.Since(asked)
		}
	}
	timer.Reset(hold)
	select {
	case <-ctx.Done():
	case <-u.done:
	case <-timer.C:
	}
	select { // what came meanwhile belongs to the same burst
	case <-u.poke:
	default:
	}
}

// hold is how long to wait after a poke that came so long after the last question.
func (p *pace) hold(after time.Duration) time.Duration {
	p.poked = true
	if after > lastQuiet {
		p.quiet = 0
	}
	return max(burst, p.quiet-after)
}

// died notes that the connection ended by itself.
func (u *Upstream) died(wait time.Duration) {
	u.house.mu.Lock()
	l := u.house.link
	u.house.mu.Unlock()
	text := "the connection ended"
	if l != nil {
		if e, ok := l.conn.(interface{ Err() error }); ok && e.Err() != nil {
			text = e.Err().Error()
		}
	}
	u.lost(&Error{Server: u.server.Name, Kind: Unreachable, Text: u.server.Name + ": " + text})
	u.mu.Lock()
	u.status.NextTry = time.Now().Add(wait)
	u.mu.Unlock()
	u.log.Warn().Str("err", text).Dur("retry_in", wait).Msg("upstream connection ended")
	u.changed()
}

// logChanges names the tools that are new, gone or different. A tool whose text
// changed after somebody approved it is worth knowing about.
func (u *Upstream) logChanges(before, after *listing.Listing) {
	if before == nil || before.Hash() == after.Hash() {
		return
	}
	old := map[string][]byte{}
	for _, item := range before.Items(listing.Tools) {
		old[item.Name] = item.Raw
	}
	for _, item := range after.Items(listing.Tools) {
		raw, ok := old[item.Name]
		switch {
		case !ok:
			u.log.Info().Str("tool", item.Name).Msg("tool added")
		case !bytes.Equal(raw, item.Raw):
			u.log.Info().Str("tool", item.Name).Msg("tool changed")
		}
		delete(old, item.Name)
	}
	for name := range old {
		u.log.Info().Str("tool", name).Msg("tool gone")
	}
}
