package streamable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// A step is one call that the test leads.
type step struct {
	ctx    context.Context
	stream proxy.Stream
	r      proxy.Request
	reply  chan jsonrpc.Reply
}

// led returns a fake whose calls come to the test, and end with what it sends to reply
// or with their contexts.
func led() (*fake, chan step) {
	steps := make(chan step)
	return &fake{call: func(ctx context.Context, r proxy.Request, s proxy.Stream) (jsonrpc.Reply, error) {
		one := step{ctx, s, r, make(chan jsonrpc.Reply)}
		steps <- one
		select {
		case reply := <-one.reply:
			return reply, nil
		case <-ctx.Done():
			return jsonrpc.Reply{}, context.Cause(ctx)
		}
	}}, steps
}

func (s step) progress(n int) {
	s.stream.Notify("notifications/progress", json.RawMessage(fmt.Sprintf(`{"progressToken":"p1","progress":%d}`, n)))
}

func progress(n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p1","progress":%d}}`, n)
}

const (
	toolCall = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a"}}`
	done     = `{"jsonrpc":"2.0","id":5,"result":{"done":true}}`
)

var modernCall = request("5", "tools/call", `{"name":"a",`+meta+`}`)

func (s step) finish() { s.reply <- result(`{"done":true}`) }

// start sends a call and returns the answer when it begins, and the call.
func (s *site) start(ctx context.Context, steps chan step, body string, headers ...string) (chan *http.Response, step) {
	answer := make(chan *http.Response, 1)
	go func() { answer <- s.do(ctx, http.MethodPost, body, headers...) }()
	return answer, <-steps
}

func equal(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// C141: notifications of a call come on its own stream, before the answer.
func TestProgressComesOnTheStreamOfItsCall(t *testing.T) {
	for name, c := range map[string]struct {
		body    string
		headers []string
		ids     bool
	}{
		"legacy": {toolCall, nil, true},
		"modern": {modernCall, modern("tools/call", "a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			f, steps := led()
			s := open(t, f).begin()
			listening, stop := context.WithCancel(t.Context())
			defer stop()
			get := s.do(listening, http.MethodGet, "")
			defer get.Body.Close()
			answer, call := s.start(t.Context(), steps, c.body, c.headers...)
			call.progress(1)
			response := <-answer // headers go out with the first notification
			if response.Header.Get("X-Accel-Buffering") != "no" {
				t.Errorf("headers %v", response.Header)
			}
			stream := eventsOf(t, response)
			if id, data, _ := stream.next(); c.ids && (id == "" || data != "") {
				t.Errorf("H35: the first event is %q %q", id, data)
			} else if !c.ids && (id != "" || data != progress(1)) {
				t.Errorf("the first event is %q %q", id, data)
			}
			call.progress(2)
			call.finish()
			want := []string{progress(1), progress(2), done}
			if !c.ids {
				want = want[1:]
			}
			equal(t, "the stream", stream.rest(), want...)
			call.progress(3) // too late for anybody
		})
	}
}

func TestSlowAnswerBecomesAStream(t *testing.T) {
	for name, c := range map[string]struct {
		wait    time.Duration
		headers []string
		stream  bool
	}{
		"just in time": {2*time.Second - time.Millisecond, nil, false},
		"slow":         {2*time.Second + time.Millisecond, nil, true},
		"JSON only":    {time.Minute, []string{"Accept", "", "Accept", "application/json"}, false},
		"stream only":  {time.Millisecond, []string{"Accept", "", "Accept", "text/event-stream"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, steps := led()
				s := openBubble(t, f, session.TableOptions{}).begin()
				answer, call := s.start(t.Context(), steps, toolCall, c.headers...)
				time.Sleep(c.wait)
				if c.stream {
					synctest.Wait()
					if len(answer) == 0 {
						t.Error("no headers yet")
					}
				} else {
					call.progress(0)
				}
				call.finish()
				response := <-answer
				if name == "just in time" { // the progress made it a stream
					equal(t, "the stream", eventsOf(t, response).rest(), progress(0), done)
					return
				}
				if !c.stream {
					if got := s.read(response); got != done {
						t.Errorf("got %s", got)
					}
					return
				}
				if got := eventsOf(t, response).rest(); !slices.Contains(got, done) {
					t.Errorf("got %q", got)
				}
			})
		})
	}
}

// C148: an open stream carries comments, of a call and without one.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, steps := led()
		s := openBubble(t, f, session.TableOptions{}).begin()
		listening, stop := context.WithCancel(t.Context())
		get := s.do(listening, http.MethodGet, "")
		answer, call := s.start(t.Context(), steps, toolCall)
		begun := time.Now()
		beats := eventsOf(t, get)
		beats.next() // the empty event
		for n := range 3 {
			if _, data, ok := beats.next(); !ok || data != ":" || time.Since(begun) != time.Duration(n+1)*15*time.Second {
				t.Errorf("GET: %q, %v after %v", data, ok, time.Since(begun))
			}
		}
		call.finish()
		if got := eventsOf(t, <-answer).rest(); !slices.Contains(got, ":") || got[len(got)-1] != done {
			t.Errorf("POST: %q", got)
		}
		stop()
		get.Body.Close()
	})
}

// H24: to disconnect is not to cancel; the answer waits for the client.
func TestResumeAfterDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, steps := led()
		s := openBubble(t, f, session.TableOptions{}).begin()
		leaving, leave := context.WithCancel(t.Context())
		answer, call := s.start(leaving, steps, toolCall)
		call.progress(1)
		stream := eventsOf(t, <-answer)
		first, _, _ := stream.next()
		stream.next()
		leave()
		synctest.Wait()
		if call.ctx.Err() != nil {
			t.Fatal("the call was cancelled")
		}
		call.progress(2)

		again := eventsOf(t, s.do(t.Context(), http.MethodGet, "", "Last-Event-ID", first))
		if _, data, _ := again.next(); data != progress(1) {
			t.Errorf("got %s", data)
		}
		if _, data, _ := again.next(); data != progress(2) {
			t.Errorf("got %s", data)
		}
		call.finish()
		last, data, _ := again.next()
		if _, _, more := again.next(); data != done || more {
			t.Errorf("got %s", data)
		}
		// Nothing follows the answer: no stream, and no reason to try again.
		if response := s.do(t.Context(), http.MethodGet, "", "Last-Event-ID", last); response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("after the answer: %d %s", response.StatusCode, s.read(response))
		}
		// Another session may not read it.
		foreign := *s
		foreign.begin()
		if response := foreign.do(t.Context(), http.MethodGet, "", "Last-Event-ID", first); response.StatusCode != http.StatusBadRequest {
			t.Errorf("H34: another session: %d", response.StatusCode)
		}
	})
}

func TestAnswerWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, steps := led()
		s := openBubble(t, f, session.TableOptions{}).begin()
		leaving, leave := context.WithCancel(t.Context())
		answer, call := s.start(leaving, steps, toolCall)
		call.progress(1)
		first, _, _ := eventsOf(t, <-answer).next()
		leave()
		synctest.Wait()
		call.finish()
		time.Sleep(4 * time.Minute)
		again := eventsOf(t, s.do(t.Context(), http.MethodGet, "", "Last-Event-ID", first))
		equal(t, "the stream", again.rest(), progress(1), done)
	})
}

// H23: a modern client that closes the stream cancels.
func TestModernDisconnectCancels(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		t.Run(fmt.Sprint("stream ", streamed), func(t *testing.T) {
			f, steps := led()
			s := open(t, f)
			leaving, leave := context.WithCancel(t.Context())
			defer leave()
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				r, _ := http.NewRequestWithContext(leaving, http.MethodPost, s.url, strings.NewReader(modernCall))
				r.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"a"}}
				if response, err := s.http.Do(r); err == nil {
					defer response.Body.Close()
					<-leaving.Done()
				}
			}()
			call := <-steps
			if streamed {
				call.progress(1)
			}
			leave()
			<-call.ctx.Done()
			<-gone
		})
	}
}

// C144, C183: a cancel ends the call without an answer, and only in its own session.
func TestCancel(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		t.Run(fmt.Sprint("stream ", streamed), func(t *testing.T) {
			f, steps := led()
			s := open(t, f).begin()
			foreign := *s
			foreign.begin()
			answer, call := s.start(t.Context(), steps, toolCall)
			if streamed {
				call.progress(1)
			}
			cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`
			if foreign.post(cancel); call.ctx.Err() != nil {
				t.Error("another session cancelled the call")
			}
			s.post(cancel)
			<-call.ctx.Done()
			if got := eventsOf(t, <-answer).rest(); len(got) > 0 && got[len(got)-1] != progress(1) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// C134: ping is answered while a call runs.
func TestPingDuringACall(t *testing.T) {
	f, steps := led()
	s := open(t, f).begin()
	answer, call := s.start(t.Context(), steps, toolCall)
	if _, got := s.post(request("6", "ping", "")); got != `{"jsonrpc":"2.0","id":6,"result":{}}` {
		t.Errorf("got %s", got)
	}
	call.finish()
	s.read(<-answer)
}

// H30: what belongs to no call comes once, on one stream.
func TestListChangedComesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openBubble(t, &fake{}, session.TableOptions{}).begin()
		sess, _ := s.table.Find(s.session, caller, "")
		defer sess.Release()
		sess.Notify("notifications/tools/list_changed", nil) // C140: nobody listens yet
		const want = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
		first := eventsOf(t, s.do(t.Context(), http.MethodGet, ""))
		first.next()
		if _, data, _ := first.next(); data != want {
			t.Errorf("what waited: %s", data)
		}
		second := eventsOf(t, s.do(t.Context(), http.MethodGet, ""))
		second.next()
		sess.Notify("notifications/tools/list_changed", nil)
		s.handler.Drain()
		equal(t, "both", append(first.rest(), second.rest()...), want)
		if response := s.do(t.Context(), http.MethodGet, ""); len(eventsOf(t, response).rest()) > 0 {
			t.Error("a stream was opened while draining")
		}
	})
}

// C204: streams that belong to no call end at once, calls may finish, then all ends.
func TestDrainAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, steps := led()
		s := openBubble(t, f, session.TableOptions{}).begin()
		quick, finishing := s.start(t.Context(), steps, toolCall)
		endless, running := s.start(t.Context(), steps, strings.Replace(toolCall, "5", "6", 1))
		listen, changes := s.start(t.Context(), steps, request("8", "subscriptions/listen", `{`+meta+`}`), modern("subscriptions/listen", "")...)
		changes.stream.Notify("notifications/subscriptions/acknowledged", nil)
		stream := eventsOf(t, <-listen)
		s.handler.Drain()
		equal(t, "listen", stream.rest(), `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}`)
		<-changes.ctx.Done()
		finishing.finish()
		if got := s.read(<-quick); got != done {
			t.Errorf("the call that finishes: %s", got)
		}
		s.handler.Close()
		<-running.ctx.Done()
		if !errors.Is(context.Cause(running.ctx), session.ErrEnded) {
			t.Errorf("cause %v", context.Cause(running.ctx))
		}
		s.read(<-endless)
	})
}

// A client that reads nothing blocks nobody, and what is held for it is bounded.
func TestStuckClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, steps := led()
		s := openBubble(t, f, session.TableOptions{})
		answer, call := s.start(t.Context(), steps, modernCall, modern("tools/call", "a")...)
		call.progress(0)
		response := <-answer
		const last = 20000
		for n := range last + 1 { // a pipe holds nothing: whoever writes waits
			call.progress(n)
		}
		go call.finish()
		got := eventsOf(t, response).rest()
		if len(got) > 1000 {
			t.Errorf("%d events", len(got))
		}
		equal(t, "Q3: the end", got[len(got)-2:], progress(last), done)

		answer, call = s.start(t.Context(), steps, modernCall, modern("tools/call", "a")...)
		call.progress(0)
		<-answer
		begun := time.Now()
		call.progress(1)
		<-call.ctx.Done() // it takes nothing for too long, so it counts as gone
		if waited := time.Since(begun); waited > time.Minute {
			t.Errorf("given up after %v", waited)
		}
	})
}

func TestSlowInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openBubble(t, &fake{delay: 3 * time.Second}, session.TableOptions{})
		response := s.do(t.Context(), http.MethodPost, hello)
		if response.Header.Get("Mcp-Session-Id") == "" {
			t.Errorf("no session id in %v", response.Header)
		}
		if got := eventsOf(t, response).rest(); len(got) != 1 || !strings.Contains(got[0], "protocolVersion") {
			t.Errorf("got %q", got)
		}
	})
}

// A fault of ours in one request leaves nothing behind.
func TestPanic(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		f := &fake{call: func(_ context.Context, _ proxy.Request, s proxy.Stream) (jsonrpc.Reply, error) {
			if streamed {
				s.Notify("notifications/progress", nil)
			}
			panic(http.ErrAbortHandler)
		}}
		s := open(t, f).begin()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(toolCall))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Session-Id": {s.session}}
		if response, err := s.http.Do(r); err == nil {
			response.Body.Close()
		}
		if _, got := s.post(list); got != listed {
			t.Errorf("afterwards: %s", got)
		}
	}
}

// Clients of older versions take the data of every event for a message, and at least
// one gives the whole server up over an empty one.
func TestFirstEventByVersion(t *testing.T) {
	for version, data := range map[string]bool{"2025-03-26": false, "2025-06-18": false, "2025-11-25": true} {
		s := open(t, &fake{})
		response, _ := s.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{}}}`)
		s.session = response.Header.Get("Mcp-Session-Id")
		ctx, stop := context.WithCancel(t.Context())
		get := s.do(ctx, http.MethodGet, "")
		head := make([]byte, 256)
		n, err := get.Body.Read(head)
		if got := string(head[:n]); err != nil || !strings.HasPrefix(got, "id: ") || strings.Contains(got, "data:") != data || !strings.HasSuffix(got, "\n\n") {
			t.Errorf("%s: the first event is %q, %v", version, got, err)
		}
		stop()
		get.Body.Close()
	}
}
