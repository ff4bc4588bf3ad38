package session

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/proxy/access"
)

// ErrFull is returned when there are as many sessions as there may be and none of them
// is idle.
var ErrFull = errors.New("too many sessions")

// TableOptions say how many sessions there may be, and for how long.
type TableOptions struct {
	MaxSessions int           // 0: 10,000
	Idle        time.Duration // how long a session lives without a request or open stream; 0: 30 minutes
	StreamBytes int           // what is kept of one event stream for a client that comes back; 0: 5 MiB
	Log         zerolog.Logger
}

// A Table has all sessions of the HTTP front. Its methods may be called from any
// goroutine. A session that has a request or an open stream is never taken away; of
// the others the longest idle one gives way when a new one has no room.
type Table struct {
	// set by NewTable, never changed
	max         int
	idle        time.Duration
	streamBytes int
	log         zerolog.Logger

	ledger  ledger
	streams atomic.Uint64 // numbers given to streams, unique among all sessions

	closing sync.WaitGroup // sessions whose keepsakes are being closed

	mu       sync.Mutex // guards what follows, and order and holds of every session
	sessions map[string]*Session
	oldest   *Session // by the end of the last request
	newest   *Session
	closed   bool
}

// NewTable returns an empty table.
func NewTable(o TableOptions) *Table {
	if o.MaxSessions <= 0 {
		o.MaxSessions = 10000
	}
	if o.Idle <= 0 {
		o.Idle = 30 * time.Minute
	}
	if o.StreamBytes <= 0 {
		o.StreamBytes = 5 << 20
	}
	return &Table{max: o.MaxSessions, idle: o.Idle, streamBytes: o.StreamBytes, log: o.Log, sessions: map[string]*Session{}}
}

// Run ends sessions that have been idle for too long, and forgets events that nobody
// came back for, until ctx ends.
func (t *Table) Run(ctx context.Context) error {
	tick := time.NewTicker(min(max(t.idle/8, time.Second), 30*time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			t.expire()
		}
	}
}

func (t *Table) expire() {
	t.ledger.expire()
	limit := time.Now().Add(-t.idle)
	var ended []*Session
	t.mu.Lock()
	for s := t.oldest; s != nil && s.used.Before(limit); {
		next := s.newer
		if s.holds == 0 {
			t.remove(s)
			ended = append(ended, s)
		}
		s = next
	}
	t.mu.Unlock()
	for _, s := range ended {
		t.end(s, "idle")
	}
}

// Create opens a session, held for its first request: the caller releases it. The
// error is ErrFull, or ErrEnded after Close.
func (t *Table) Create(caller access.Caller, endpoint string) (*Session, error) {
	s := &Session{id: rand.Text(), caller: caller, endpoint: endpoint, table: t, holds: 1, used: time.Now()}
	t.mu.Lock()
	var loser *Session
	switch {
	case t.closed:
		t.mu.Unlock()
		return nil, ErrEnded
	case len(t.sessions) >= t.max:
		for loser = t.oldest; loser != nil && loser.holds > 0; {
			loser = loser.newer
		}
		if loser == nil {
			t.mu.Unlock()
			return nil, ErrFull
		}
		t.remove(loser)
	}
	t.sessions[s.id] = s
	t.append(s)
	t.mu.Unlock()
	if loser != nil {
		t.end(loser, "no room")
	}
	return s, nil
}

// Find returns a session and holds it: as long as the caller does not release it, it
// is not idle. A session of another caller, or of another endpoint, is not found.
func (t *Table) Find(id string, caller access.Caller, endpoint string) (*Session, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil || s.caller != caller || s.endpoint != endpoint {
		return nil, false
	}
	s.holds++
	return s, true
}

// Release ends what Create or Find began.
func (s *Session) Release() {
	t := s.table
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.holds--; s.holds == 0 && t.sessions[s.id] == s {
		s.used = time.Now()
		t.unlink(s)
		t.append(s)
	}
}

// Delete ends a session, whoever holds it.
func (t *Table) Delete(id string) {
	t.mu.Lock()
	s := t.sessions[id]
	if s != nil {
		t.remove(s)
	}
	t.mu.Unlock()
	if s != nil {
		t.end(s, "deleted")
	}
}

// Each calls do with every session there is at the moment, in no order.
func (t *Table) Each(do func(*Session)) {
	t.mu.Lock()
	all := make([]*Session, 0, len(t.sessions))
	for _, s := range t.sessions {
		all = append(all, s)
	}
	t.mu.Unlock()
	for _, s := range all {
		do(s)
	}
}

// Len is how many sessions there are.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.sessions)
}

// Close ends all sessions and waits until what they kept is closed. No session can be
// created afterwards.
func (t *Table) Close() {
	t.mu.Lock()
	all := t.sessions
	t.sessions, t.oldest, t.newest, t.closed = nil, nil, nil, true
	t.closing.Add(len(all))
	t.mu.Unlock()
	for _, s := range all {
		t.end(s, "closing")
	}
	t.closing.Wait()
}

// end ends a session that is no longer in the table. Closing what it kept may mean
// talking to servers, for which nobody here can wait.
func (t *Table) end(s *Session, why string) {
	t.log.Debug().Str("session", s.id[:6]).Str("why", why).Msg("session ended")
	kept := s.end()
	if len(kept) == 0 {
		t.closing.Done()
		return
	}
	go func() {
		defer t.closing.Done()
		var leaving sync.WaitGroup // one that is slow must not hold up the rest
		for _, k := range kept {
			leaving.Go(func() { _ = k.c.Close() }) // nothing depends on how it went away
		}
		leaving.Wait()
	}()
}

// remove takes a session out; end has to follow.
func (t *Table) remove(s *Session) {
	t.closing.Add(1)
	delete(t.sessions, s.id)
	t.unlink(s)
}

func (t *Table) unlink(s *Session) {
	if s.older != nil {
		s.older.newer = s.newer
	} else {
		t.oldest = s.newer
	}
	if s.newer != nil {
		s.newer.older = s.older
	} else {
		t.newest = s.older
	}
	s.older, s.newer = nil, nil
}

func (t *Table) append(s *Session) {
	if s.older = t.newest; s.older != nil {
		s.older.newer = s
	} else {
		t.oldest = s
	}
	t.newest = s
}
