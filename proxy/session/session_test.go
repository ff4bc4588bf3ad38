package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mainstem-mcp/mainstem/proxy/access"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

var (
	anonymous = access.Caller{}
	errBreak  = errors.New("cancelled by the client")
)

func create(t *testing.T, table *session.Table) *session.Session {
	t.Helper()
	s, err := table.Create(anonymous, "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// C127, C128: an id means something to its caller at its endpoint, and nothing after
// the end.
func TestFind(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	defer table.Close()
	s, err := table.Create(access.Caller{Name: "ann"}, "files")
	if err != nil {
		t.Fatal(err)
	}
	s.Release()
	if !regexp.MustCompile(`^[!-~]{22,}$`).MatchString(s.ID()) {
		t.Errorf("id %q", s.ID())
	}
	for _, c := range []struct {
		name, id, caller, endpoint string
		want                       bool
	}{
		{"its own", s.ID(), "ann", "files", true},
		{"another caller", s.ID(), "bob", "files", false},
		{"nobody", s.ID(), "", "files", false},
		{"another endpoint", s.ID(), "ann", "", false},
		{"forged", "forged", "ann", "files", false},
		{"empty", "", "ann", "files", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := table.Find(c.id, access.Caller{Name: c.caller}, c.endpoint)
			if ok != c.want {
				t.Errorf("found %v, want %v", ok, c.want)
			}
			if ok {
				got.Release()
			}
		})
	}
	table.Delete(s.ID())
	if _, ok := table.Find(s.ID(), access.Caller{Name: "ann"}, "files"); ok {
		t.Error("found after Delete")
	}
	select {
	case <-s.Done():
	default:
		t.Error("not done after Delete")
	}
}

func TestLongestIdleGivesWay(t *testing.T) {
	table := session.NewTable(session.TableOptions{MaxSessions: 3})
	defer table.Close()
	busy, first, second := create(t, table), create(t, table), create(t, table)
	first.Release()
	second.Release()
	if s, ok := table.Find(first.ID(), anonymous, ""); ok { // now second is idle for longer
		s.Release()
	}
	third := create(t, table)
	if _, ok := table.Find(second.ID(), anonymous, ""); ok {
		t.Error("the longest idle session is still there")
	}
	for _, s := range []*session.Session{busy, first} {
		if got, ok := table.Find(s.ID(), anonymous, ""); !ok {
			t.Error("another session gave way")
		} else if s == busy {
			got.Release()
		}
	}
	if _, err := table.Create(anonymous, ""); !errors.Is(err, session.ErrFull) {
		t.Errorf("Create while all are busy: %v, want ErrFull", err)
	}
	third.Release()
	if _, err := table.Create(anonymous, ""); err != nil {
		t.Errorf("Create after a release: %v", err)
	}
}

// C211: sessions that nobody uses go, those with a call or stream stay.
func TestIdleSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := session.NewTable(session.TableOptions{Idle: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { _ = table.Run(ctx) })
		idle, busy := create(t, table), create(t, table)
		idle.Release()
		time.Sleep(50 * time.Second)
		if s, ok := table.Find(idle.ID(), anonymous, ""); !ok {
			t.Error("ended too early")
		} else {
			s.Release()
		}
		time.Sleep(50 * time.Second)
		if table.Len() != 2 {
			t.Error("the use of a session did not count")
		}
		time.Sleep(30 * time.Second)
		if _, ok := table.Find(idle.ID(), anonymous, ""); ok {
			t.Error("an idle session is still there")
		}
		if s, ok := table.Find(busy.ID(), anonymous, ""); !ok {
			t.Error("a busy session has ended")
		} else {
			s.Release()
		}
		cancel()
		run.Wait()
		table.Close()
	})
}

// C183: a cancel reaches calls of its own session only; unknown ids mean nothing.
func TestCancel(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	defer table.Close()
	ann, bob := create(t, table), create(t, table)
	id := json.RawMessage(`1`)
	ctx, done, err := ann.Begin(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if bob.Cancel(id, errBreak) || ann.Cancel(json.RawMessage(`"1"`), errBreak) || ctx.Err() != nil {
		t.Error("a cancel of another session, or of another id, reached the call")
	}
	if _, _, err := ann.Begin(t.Context(), id); err == nil {
		t.Error("an id was taken that is in use")
	}
	if !ann.Cancel(id, errBreak) || !errors.Is(context.Cause(ctx), errBreak) {
		t.Errorf("cause %v, want %v", context.Cause(ctx), errBreak)
	}
	done()
	if ann.Cancel(id, errBreak) {
		t.Error("a finished call was cancelled")
	}
	if _, done, err = ann.Begin(t.Context(), id); err != nil {
		t.Errorf("the id cannot be used again: %v", err)
	}
	done()
}

type closer struct{ closed chan struct{} }

func (c *closer) Close() error {
	close(c.closed) // a second time panics
	return nil
}

func TestEndCancelsAndCloses(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	s := create(t, table)
	ctx, done, err := s.Begin(t.Context(), json.RawMessage(`"a"`))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	first, second := &closer{make(chan struct{})}, &closer{make(chan struct{})}
	s.Keep("up", first)
	s.Keep("up", first)
	s.Keep("up", second)
	<-first.closed
	if got, ok := s.Kept("up"); !ok || got != second {
		t.Errorf("kept %v, %v", got, ok)
	}
	table.Delete(s.ID())
	table.Close()
	<-second.closed
	if !errors.Is(context.Cause(ctx), session.ErrEnded) {
		t.Errorf("cause %v, want ErrEnded", context.Cause(ctx))
	}
	late := &closer{make(chan struct{})}
	s.Keep("up", late)
	<-late.closed
	if _, err := table.Create(anonymous, ""); err == nil {
		t.Error("a session was created after Close")
	}
	if _, _, err := s.Begin(t.Context(), json.RawMessage(`2`)); !errors.Is(err, session.ErrEnded) {
		t.Errorf("Begin after the end: %v", err)
	}
}

// An upstream session that takes its time to end holds up no other one.
func TestKeptThingsEndSideBySide(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	s := create(t, table)
	quick := &closer{make(chan struct{})}
	s.Keep("slow", after{quick.closed, t})
	s.Keep("quick", quick)
	table.Delete(s.ID())
	table.Close()
}

// after takes until something has happened to close.
type after struct {
	happened <-chan struct{}
	t        *testing.T
}

func (a after) Close() error {
	select {
	case <-a.happened:
	case <-time.After(5 * time.Second):
		a.t.Error("the other one has not ended")
	}
	return nil
}

func TestNegotiatedIsBounded(t *testing.T) {
	s := session.NewThrowaway(anonymous, "", "", nil, nil)
	large := json.RawMessage(fmt.Sprintf(`{"x":"%0100000d"}`, 1))
	s.Negotiated("2025-11-25", json.RawMessage(`{"roots":{}}`), large)
	if s.ClientInfo() != nil || string(s.Capabilities()) != `{"roots":{}}` || s.Version() != "2025-11-25" {
		t.Errorf("version %s, capabilities %s, %d bytes of clientInfo", s.Version(), s.Capabilities(), len(s.ClientInfo()))
	}
}

// C211: ten thousand idle sessions cost at most a kilobyte each.
func TestMemoryOfIdleSessions(t *testing.T) {
	const n = 10000
	table := session.NewTable(session.TableOptions{MaxSessions: n})
	defer table.Close()
	before := heap()
	capabilities, info := json.RawMessage(`{"roots":{"listChanged":true},"sampling":{}}`), json.RawMessage(`{"name":"test","version":"1.2.3"}`)
	for range n {
		s := create(t, table)
		s.Negotiated("2025-11-25", capabilities, info)
		_, done, err := s.Begin(t.Context(), json.RawMessage(`1`))
		if err != nil {
			t.Fatal(err)
		}
		done()
		s.Release()
	}
	if each := (heap() - before) / n; each > 1024 {
		t.Errorf("%d bytes a session, want at most 1024", each)
	} else {
		t.Logf("%d bytes a session", each)
	}
	runtime.KeepAlive(table)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// C188: sessions come and go while lists change.
func TestChurn(t *testing.T) {
	table := session.NewTable(session.TableOptions{MaxSessions: 20})
	var clients, changes sync.WaitGroup
	stop := make(chan struct{})
	changes.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				table.Each(func(s *session.Session) { s.Notify("notifications/tools/list_changed", nil) })
			}
		}
	})
	for range 100 {
		clients.Go(func() {
			s, err := table.Create(anonymous, "")
			if err != nil {
				return
			}
			r := s.Listen()
			s.Notify("notifications/tools/list_changed", nil)
			_, _, _ = r.Next()
			st := s.Open()
			own := st.Read()
			st.Notify("notifications/progress", nil)
			r.Close()
			own.Close()
			st.End([]byte(`{}`), nil)
			s.Release()
			table.Delete(s.ID())
		})
	}
	clients.Wait()
	close(stop)
	changes.Wait()
	table.Close()
	if table.Len() != 0 {
		t.Errorf("%d sessions are left", table.Len())
	}
}
