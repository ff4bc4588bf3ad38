package session

import (
	"container/list"
	"sync"
	"time"
)

const (
	keptBytes  = 64 << 20 // what streams of all sessions hold for clients that may come back
	heardBytes = 8 << 20  // of it, what was delivered and is kept in case it got lost on the way
	keptFor    = 5 * time.Minute
)

// A ledger counts what the streams of all sessions hold, and remembers which of them
// nobody reads or writes any more: they go after a while, or when memory is needed.
//
// Delivered means that the connection took the bytes. If it died without our knowing
// they never arrived, so even a stream that was delivered to its end stays for a while.
type ledger struct {
	mu      sync.Mutex // guards what follows, and shelved of every stream
	held    int
	heard   list.List // of *shelved: delivered to the end
	unheard list.List // of *shelved
	onHeard int       // bytes of heard
}

type shelved struct {
	st    *Stream
	since time.Time
	size  int
	in    *list.List
	at    *list.Element
}

func (l *ledger) add(change int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held += change
}

// makeRoom reports whether n more bytes may be held, giving up for them what nobody
// reads or writes any more. The caller holds no stream's lock.
func (l *ledger) makeRoom(n int) bool {
	for {
		l.mu.Lock()
		if l.held+n <= keptBytes {
			l.mu.Unlock()
			return true
		}
		victim := l.take(&l.heard)
		if victim == nil {
			victim = l.take(&l.unheard)
		}
		l.mu.Unlock()
		if victim == nil {
			return false
		}
		victim.discard()
	}
}

// take removes the first of a list and returns it.
func (l *ledger) take(from *list.List) *Stream {
	first := from.Front()
	if first == nil {
		return nil
	}
	st := first.Value.(*shelved).st
	l.remove(st)
	return st
}

func (l *ledger) remove(st *Stream) {
	s := st.shelved
	if s == nil {
		return
	}
	s.in.Remove(s.at)
	if s.in == &l.heard {
		l.onHeard -= s.size
	}
	st.shelved = nil
}

// shelve notes a stream that nobody reads any more; one that was taken up again
// meanwhile is left alone.
func (l *ledger) shelve(st *Stream, heard bool) {
	st.mu.Lock()
	if st.gone || st.reader != nil {
		st.mu.Unlock()
		return
	}
	l.mu.Lock()
	l.remove(st)
	s := &shelved{st: st, since: time.Now(), size: st.size, in: &l.unheard}
	if heard {
		s.in = &l.heard
		l.onHeard += st.size
	}
	s.at = s.in.PushBack(s)
	st.shelved = s
	var victims []*Stream
	for l.onHeard > heardBytes {
		victims = append(victims, l.take(&l.heard))
	}
	l.mu.Unlock()
	st.mu.Unlock()
	for _, victim := range victims {
		victim.discard()
	}
	// what is on its way to readers is not refused: many that leave at once exceed the limit
	l.makeRoom(0)
}

func (l *ledger) unshelve(st *Stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(st)
}

// expire gives up what was kept for long enough.
func (l *ledger) expire() {
	limit := time.Now().Add(-keptFor)
	var victims []*Stream
	l.mu.Lock()
	for _, from := range []*list.List{&l.heard, &l.unheard} {
		for first := from.Front(); first != nil && !first.Value.(*shelved).since.After(limit); first = from.Front() {
			victims = append(victims, l.take(from))
		}
	}
	l.mu.Unlock()
	for _, victim := range victims {
		victim.discard()
	}
}
