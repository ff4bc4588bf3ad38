package session

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

var (
	// ErrNoStream is returned for an event id that names no stream of the session, or
	// one that is no longer kept.
	ErrNoStream = errors.New("no such event in this session")
	// ErrHeard is returned for an event id after which its stream says nothing more.
	ErrHeard = errors.New("the stream has ended with this event")
)

const (
	maxListeners = 4 // streams of one session that belong to no call
	maxUnheard   = 8 // notifications that wait for a listener
)

// Open returns the stream of a call. In a session of a table it can be resumed, and
// begins with an empty event, so that the client has an id from the first moment on.
func (s *Session) Open() *Stream {
	if s.table == nil {
		return NewStream()
	}
	st := s.newStream(false)
	s.register(st)
	return st
}

func (s *Session) newStream(listening bool) *Stream {
	if s.table == nil {
		return &Stream{sess: s, listening: listening, bytes: callBytes, events: listenEvents}
	}
	st := &Stream{
		sess: s, ledger: &s.table.ledger, number: s.table.streams.Add(1), listening: listening,
		bytes: s.table.streamBytes, events: callEvents,
	}
	if listening {
		st.events = listenEvents
	}
	st.push(event{})
	return st
}

// register makes a stream known to a client that comes back. In a session that has
// ended it is gone at once.
func (s *Session) register(st *Stream) {
	s.mu.Lock()
	ended := s.ended
	if !ended && st.ledger != nil {
		if s.streams == nil {
			s.streams = map[uint64]*Stream{}
		}
		s.streams[st.number] = st
	}
	s.mu.Unlock()
	if ended {
		st.discard()
	}
}

func (s *Session) forget(st *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st.number)
	if len(s.streams) == 0 {
		s.streams = nil
	}
}

// Listen returns a reader of what belongs to no call. Of several the newest gets each
// message, since an older one may have lost its connection without our knowing.
func (s *Session) Listen() *Reader {
	st := s.newStream(true)
	r := st.Read()
	s.register(st)
	s.startListening(st)
	return r
}

func (s *Session) startListening(st *Stream) {
	var surplus *Stream
	s.mu.Lock()
	if !s.ended {
		s.listeners = append(s.listeners, st)
	}
	if len(s.listeners) > maxListeners {
		surplus = s.listeners[0]
		s.listeners = slices.Delete(s.listeners, 0, 1)
	}
	unheard := s.unheard
	s.unheard = nil
	s.mu.Unlock()
	if surplus != nil {
		surplus.End(nil, nil)
	}
	for _, message := range unheard {
		s.notify(changed, message)
	}
}

// stopListening takes a stream out that lost its reader; what it had not delivered goes
// to another one, or waits.
func (s *Session) stopListening(st *Stream, missed []event) {
	s.mu.Lock()
	s.listeners = slices.DeleteFunc(s.listeners, func(l *Stream) bool { return l == st })
	s.mu.Unlock()
	for _, e := range missed {
		if e.kind == changed {
			s.notify(changed, e.message)
		}
	}
}

// Heard drops a notification that waits for a listener: the client has just seen what
// it would tell.
func (s *Session) Heard(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unheard) > 0 {
		message := string(jsonrpc.AppendNotification(nil, method, nil))
		s.unheard = slices.DeleteFunc(s.unheard, func(m []byte) bool { return string(m) == message })
	}
}

// Notify says something that belongs to no call, on one stream only (2025-11-25,
// basic/transports, multiple connections). It never blocks and copies params. When
// nobody listens, only that a list changed is kept, once.
func (s *Session) Notify(method string, params json.RawMessage) {
	s.notify(kindOf(method), jsonrpc.AppendNotification(nil, method, params))
}

func (s *Session) notify(k kind, message []byte) {
	for {
		listeners := s.currentListeners()
		for _, st := range slices.Backward(listeners) {
			if st.notify(k, message) {
				return
			}
		}
		if s.wait(k, message, listeners) {
			return
		}
	}
}

// wait keeps a message for the next listener. It reports false if one came meanwhile.
func (s *Session) wait(k kind, message []byte, asked []*Stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.listeners, asked) {
		return false
	}
	same := func(other []byte) bool { return string(other) == string(message) }
	if k == changed && !s.ended && len(s.unheard) < maxUnheard && !slices.ContainsFunc(s.unheard, same) {
		s.unheard = append(s.unheard, message)
	}
	return true
}

// Resume returns a reader of the stream that an event id names, from after that event
// on. The error is ErrNoStream or ErrHeard.
func (s *Session) Resume(lastEventID string) (*Reader, error) {
	number, at, ok := parseID(lastEventID)
	s.mu.Lock()
	st := s.streams[number]
	s.mu.Unlock()
	if !ok || st == nil || st.id(at) != lastEventID {
		return nil, ErrNoStream
	}
	st.mu.Lock()
	known, heard := at < st.next && !st.gone, st.ended && st.search(at+1) == len(st.queue)
	st.mu.Unlock()
	switch {
	case !known:
		return nil, ErrNoStream
	case heard:
		return nil, ErrHeard
	}
	r := st.read(at + 1)
	st.ledger.unshelve(st)
	if st.listening {
		s.startListening(st)
	}
	return r, nil
}

func (s *Session) currentListeners() []*Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.listeners)
}
