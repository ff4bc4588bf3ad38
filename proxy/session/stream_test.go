package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// drain reads what is there, as one that writes it to a client.
func drain(r *session.Reader) (messages, ids []string, ended bool) {
	for {
		e, ok, end := r.Next()
		if !ok {
			r.Wrote()
			return messages, ids, end
		}
		ids = append(ids, e.ID)
		if e.Message != nil {
			messages = append(messages, string(e.Message))
		}
	}
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func progress(n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d}}`, n)
}

func notify(st *session.Stream, from, to int) {
	for n := from; n <= to; n++ {
		st.Notify("notifications/progress", fmt.Appendf(nil, `{"progress":%d}`, n))
	}
}

const toolsChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

func TestStreamBeginsWithAnEmptyEvent(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	defer table.Close()
	st := create(t, table).Open()
	r := st.Read()
	notify(st, 1, 1)
	st.End([]byte(`{"id":1}`), nil)
	messages, ids, ended := drain(r)
	equal(t, "messages", messages, []string{progress(1), `{"id":1}`})
	if len(ids) != 3 || slices.Contains(ids, "") || ids[0] == ids[1] || ids[1] == ids[2] {
		t.Errorf("ids %q", ids)
	}
	if !ended {
		t.Error("the stream has not ended")
	}
}

// H34: what follows an event is said again, on that stream alone, and then it goes on.
func TestResume(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	defer table.Close()
	s := create(t, table)
	st, other := s.Open(), s.Open()
	r := st.Read()
	notify(st, 1, 2)
	_, ids, _ := drain(r)
	notify(st, 3, 3)
	r.Close()
	notify(st, 4, 4)
	notify(other, 9, 9)

	again, err := s.Resume(ids[1])
	if err != nil {
		t.Fatal(err)
	}
	messages, _, ended := drain(again)
	equal(t, "after the break", messages, []string{progress(2), progress(3), progress(4)})
	if ended {
		t.Error("a running call's stream has ended")
	}
	notify(st, 5, 5)
	st.End([]byte(`{"id":1}`), nil)
	messages, ids, ended = drain(again)
	equal(t, "going on", messages, []string{progress(5), `{"id":1}`})
	if !ended {
		t.Error("the stream has not ended")
	}
	again.Close()
	if _, err := s.Resume(ids[len(ids)-1]); !errors.Is(err, session.ErrHeard) {
		t.Errorf("Resume after the last event: %v, want ErrHeard", err)
	}
	// The answer may have been lost on its way.
	last, err := s.Resume(ids[0])
	if err != nil {
		t.Fatal(err)
	}
	messages, _, _ = drain(last)
	equal(t, "the answer again", messages, []string{`{"id":1}`})
}

func TestResumeTakesOver(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	defer table.Close()
	s := create(t, table)
	st := s.Open()
	old := st.Read()
	_, ids, _ := drain(old)
	again, err := s.Resume(ids[0])
	if err != nil {
		t.Fatal(err)
	}
	notify(st, 1, 1)
	if messages, _, ended := drain(old); messages != nil || !ended {
		t.Errorf("the reader that was replaced got %q, ended %v", messages, ended)
	}
	old.Close() // must not take the stream from the new one
	messages, _, _ := drain(again)
	equal(t, "the new reader", messages, []string{progress(1)})
}

func TestResumeRefusesForeignIDs(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	defer table.Close()
	s, foreign := create(t, table), create(t, table)
	_, ids, _ := drain(foreign.Open().Read())
	_, own, _ := drain(s.Open().Read())
	stream, _, _ := strings.Cut(own[0], "-")
	for _, id := range []string{ids[0], "", "-", "x", "0-0", stream + "-7", stream + "--1", stream + "-0x0", stream, "zzzzzzzzzzzzzzzzzzzz-0", own[0] + "0"} {
		if _, err := s.Resume(id); !errors.Is(err, session.ErrNoStream) {
			t.Errorf("Resume(%q): %v, want ErrNoStream", id, err)
		}
	}
}

func TestAnswerIsKeptFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := session.NewTable(session.TableOptions{Idle: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { _ = table.Run(ctx) })
		s := create(t, table)
		st := s.Open()
		r := st.Read()
		_, ids, _ := drain(r)
		r.Close()
		time.Sleep(20 * time.Minute) // the call may take as long as it likes
		st.End([]byte(`{"id":1}`), nil)
		time.Sleep(5*time.Minute - time.Second)
		again, err := s.Resume(ids[0])
		if err != nil {
			t.Fatal(err)
		}
		again.Close() // it broke again, before anything was written
		time.Sleep(6 * time.Minute)
		if _, err := s.Resume(ids[0]); !errors.Is(err, session.ErrNoStream) {
			t.Errorf("after its time: %v, want ErrNoStream", err)
		}
		cancel()
		run.Wait()
		table.Close()
	})
}

func TestStreamEndsWithItsSession(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	s := create(t, table)
	call, listener := s.Open().Read(), s.Listen()
	table.Close()
	for _, r := range []*session.Reader{call, listener} {
		<-r.Ready()
		if _, ok, ended := r.Next(); ok || !ended {
			t.Error("a stream is open after its session's end")
		}
		r.Close()
	}
	if _, ok, ended := s.Open().Read().Next(); ok || !ended {
		t.Error("a stream was opened after the session's end")
	}
}

// Q3: a flood is bounded, and of the progress the last one arrives.
func TestFlood(t *testing.T) {
	table := session.NewTable(session.TableOptions{StreamBytes: 64 << 10})
	defer table.Close()
	for name, st := range map[string]*session.Stream{"resumable": create(t, table).Open(), "not resumable": session.NewStream()} {
		t.Run(name, func(t *testing.T) {
			const last = 100000
			st.Notify("notifications/message", []byte(`{"data":"first"}`))
			notify(st, 1, last)
			st.End([]byte(`{"id":1}`), nil)
			messages, _, _ := drain(st.Read())
			if n := len(messages); n < 10 || n > 600 {
				t.Errorf("%d messages are left", n)
			}
			equal(t, "the end", messages[len(messages)-2:], []string{progress(last), `{"id":1}`})
			if !strings.Contains(messages[0], "first") {
				t.Errorf("the first message is %s", messages[0])
			}
		})
	}
}

func TestAnswerBeyondTheLimit(t *testing.T) {
	table := session.NewTable(session.TableOptions{StreamBytes: 10 << 10})
	defer table.Close()
	large, instead := []byte(strings.Repeat("x", 20<<10)), []byte(`{"error":"too large"}`)

	st := create(t, table).Open()
	r := st.Read()
	drain(r)
	st.End(large, instead)
	messages, _, _ := drain(r)
	equal(t, "somebody reads", messages, []string{string(large)})

	st = create(t, table).Open()
	notify(st, 1, 20)
	st.End(large, instead)
	messages, _, _ = drain(st.Read())
	equal(t, "nobody reads", messages[len(messages)-1:], []string{string(instead)})

	st = create(t, table).Open()
	notify(st, 1, 50)
	st.End(large[:9<<10], instead)
	messages, _, _ = drain(st.Read())
	equal(t, "the answer matters more", messages[len(messages)-1:], []string{string(large[:9<<10])})
}

// 64 MiB in all: the oldest answers that nobody came for make room.
func TestAllStreamsTogetherAreBounded(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	defer table.Close()
	s := create(t, table)
	const size, n = 1 << 20, 100
	message := []byte(strings.Repeat("x", size))
	var ids []string
	for range n {
		st := s.Open()
		r := st.Read()
		_, id, _ := drain(r)
		r.Close()
		st.End(message, nil)
		ids = append(ids, id[0])
	}
	kept := 0
	for i, id := range ids {
		r, err := s.Resume(id)
		if err != nil {
			continue
		}
		if kept++; i < n-64 {
			t.Errorf("stream %d is kept", i)
		}
		r.Close()
	}
	if kept < 60 || kept > 64 {
		t.Errorf("%d streams of 1 MiB are kept", kept)
	}
}

// The limit also holds for answers that were on their way when their clients left.
func TestAnswersOfManyThatLeaveAtOnceAreBounded(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	defer table.Close()
	s := create(t, table)
	message := []byte(strings.Repeat("x", 1<<20))
	var ids []string
	var readers []*session.Reader
	for range 100 {
		st := s.Open()
		r := st.Read()
		_, id, _ := drain(r)
		st.End(message, nil)
		ids, readers = append(ids, id[0]), append(readers, r)
	}
	for _, r := range readers {
		r.Close()
	}
	kept := 0
	for _, id := range ids {
		if r, err := s.Resume(id); err == nil {
			kept++
			r.Close()
		}
	}
	if kept < 60 || kept > 64 {
		t.Errorf("%d streams of 1 MiB are kept", kept)
	}
}

// H30: each message goes to one stream.
func TestListenersShareNothing(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	defer table.Close()
	s := create(t, table)
	first, second := s.Listen(), s.Listen()
	s.Notify("notifications/tools/list_changed", nil)
	a, _, _ := drain(first)
	b, _, _ := drain(second)
	if len(a)+len(b) != 1 {
		t.Errorf("got %q and %q", a, b)
	}
	second.Close()
	s.Notify("notifications/tools/list_changed", nil)
	a, _, _ = drain(first)
	equal(t, "the other one", a, []string{toolsChanged})
}

// C140: a change that nobody could hear is told once, to whoever listens next.
func TestChangesWaitForAListener(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	defer table.Close()
	s := create(t, table)
	for range 3 {
		s.Notify("notifications/tools/list_changed", nil)
		s.Notify("notifications/message", []byte(`{}`))
	}
	r := s.Listen()
	messages, ids, _ := drain(r)
	equal(t, "what waited", messages, []string{toolsChanged})

	for range 3 { // nobody has read the first when the others come
		s.Notify("notifications/tools/list_changed", nil)
	}
	if e, ok, _ := r.Next(); !ok || string(e.Message) != toolsChanged {
		t.Errorf("got %s, %v", e.Message, ok)
	}
	r.Close() // before it was written
	r = s.Listen()
	messages, _, _ = drain(r)
	equal(t, "what was not delivered", messages, []string{toolsChanged})
	r.Close()

	s.Notify("notifications/tools/list_changed", nil)
	again, err := s.Resume(ids[len(ids)-1])
	if err != nil {
		t.Fatal(err)
	}
	messages, _, ended := drain(again)
	equal(t, "on a resumed stream", messages, []string{toolsChanged})
	if ended || !again.Listening() {
		t.Error("the resumed stream does not go on")
	}
}

func TestListenersAreBounded(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	defer table.Close()
	s := create(t, table)
	var readers []*session.Reader
	for range 10 {
		readers = append(readers, s.Listen())
	}
	open := 0
	for _, r := range readers {
		if _, _, ended := drain(r); !ended {
			open++
		}
	}
	if open != 4 {
		t.Errorf("%d streams are open", open)
	}
}

func FuzzResume(f *testing.F) {
	f.Add("1-0")
	f.Add("zz-99999999999")
	table := session.NewTable(session.TableOptions{})
	s, err := table.Create(anonymous, "")
	if err != nil {
		f.Fatal(err)
	}
	_, ids, _ := drain(s.Open().Read())
	f.Fuzz(func(t *testing.T, id string) {
		r, err := s.Resume(id)
		if (err == nil) != (id == ids[0]) {
			t.Errorf("Resume(%q): %v", id, err)
		}
		if r != nil {
			r.Close()
		}
	})
}
