package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

// An oldPeer speaks the transport of 2024-11-05.
type oldPeer struct {
	*httptest.Server
	endpoint string
	out      chan string // pieces of the stream; closed: it ends

	mu   sync.Mutex
	post func(w http.ResponseWriter, m jsonrpc.Message)
	got  []received
}

func (p *oldPeer) answer(post func(w http.ResponseWriter, m jsonrpc.Message)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.post = post
}

func newOldPeer(t testing.TB, endpoint string, post func(http.ResponseWriter, jsonrpc.Message)) *oldPeer {
	p := &oldPeer{endpoint: endpoint, out: make(chan string, 10), post: post}
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() { p.CloseClientConnections(); p.Close() })
	return p
}

func (p *oldPeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, _ := jsonrpc.Parse(body)
	p.mu.Lock()
	p.got = append(p.got, received{r.Method, r.RequestURI, r.Header, string(body), m})
	post := p.post
	p.mu.Unlock()
	if r.Method == http.MethodPost {
		post(w, m)
		return
	}
	write := events(w)
	write("event: endpoint\r\ndata: %s\r\n\r\n", p.endpoint)
	for {
		select {
		case piece, ok := <-p.out:
			if !ok {
				return
			}
			write("%s", piece)
		case <-r.Context().Done():
			return
		}
	}
}

func (p *oldPeer) bodies() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, r := range p.got {
		all = append(all, r.Body)
	}
	return all
}

// echo answers a call on the stream with its params.
func (p *oldPeer) echo(w http.ResponseWriter, m jsonrpc.Message) {
	w.WriteHeader(http.StatusAccepted)
	io.WriteString(w, "Accepted")
	if m.IsRequest() {
		p.out <- fmt.Sprintf("event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\r\n\r\n", m.ID, m.Params)
	}
}

func openSSE(t testing.TB, url string, max int, h jsonrpc.Sink) (*transport.SSEConn, error) {
	c, err := newHTTP(t, transport.HTTPOptions{URL: url, MaxMessage: max}).OpenSSE(t.Context(), h)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func TestSSE_C94(t *testing.T) {
	rows := []struct{ name, endpoint, want, refused string }{
		{"C94 absolute path", "/messages?sid=1", "/messages?sid=1", ""},
		{"C94 relative", "messages?sid=1", "/old/messages?sid=1", ""},
		{"C94 whole URL", "SELF/m%2Fn", "/m%2Fn", ""},
		{"another origin", "http://user:secret@127.0.0.1:9/messages", "", "another origin: 127.0.0.1:9"},
		{"no URL", "%zz", "", "names no endpoint"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := newOldPeer(t, row.endpoint, nil)
			p.endpoint = strings.Replace(row.endpoint, "SELF", p.URL, 1)
			p.answer(p.echo)
			c, err := openSSE(t, p.URL+"/old/sse", 0, nil)
			if row.refused != "" {
				if err == nil || !strings.Contains(err.Error(), row.refused) || strings.Contains(err.Error(), "secret") {
					t.Errorf("got %v, want %s", err, row.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := call(t, c, "tools/call", `{"a":1}`, nil); got != `{"a":1}` {
				t.Errorf("got %s, %v", got, err)
			}
			if got := p.got[1].URI; got != row.want {
				t.Errorf("posted to %s, want %s", got, row.want)
			}
		})
	}
}

func TestSSE_NoStream(t *testing.T) {
	p := newPeer(t, nil) // GET: 405
	_, err := openSSE(t, p.URL, 0, nil)
	if status, ok := errors.AsType[*transport.StatusError](err); !ok || status.Status != 405 {
		t.Errorf("got %v", err)
	}
}

func TestSSE_EndsWithContext(t *testing.T) {
	p := newPeer(t, nil)
	opened := make(chan struct{})
	p.stream = func(w http.ResponseWriter, r *http.Request) {
		events(w)
		close(opened)
		<-r.Context().Done()
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	go func() { <-opened; cancel(why) }()
	if _, err := newHTTP(t, transport.HTTPOptions{URL: p.URL}).OpenSSE(ctx, nil); err != why {
		t.Errorf("got %v", err)
	}
}

func TestSSE_Messages(t *testing.T) {
	p := newOldPeer(t, "/m", nil)
	p.answer(p.echo)
	session := newSink()
	c, err := openSSE(t, p.URL, 1<<16, session)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("C152 calls at once", func(t *testing.T) {
		var running sync.WaitGroup
		for n := range 20 {
			running.Go(func() {
				want := fmt.Sprintf(`{"n":%d}`, n)
				if got, err := call(t, c, "tools/call", want, newSink()); got != want {
					t.Errorf("got %s, %v", got, err)
				}
			})
		}
		running.Wait()
	})
	t.Run("N1 ping, question, notification", func(t *testing.T) {
		p.out <- "data: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n\n"
		p.out <- "data: {\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"roots/list\"}\n\n"
		p.out <- "data: [{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}]\n\n"
		eventually(t, "answers", func() bool {
			all := strings.Join(p.bodies(), "")
			return strings.Contains(all, `{"jsonrpc":"2.0","id":5,"result":{}}`) && strings.Contains(all, `{"jsonrpc":"2.0","id":6,"result":{"asked":true}}`)
		})
		eventually(t, "question and notification", func() bool { return len(session.all()) == 2 })
	})
	t.Run("C71 only that call fails", func(t *testing.T) {
		for _, size := range []int{1<<16 + 1, 1 << 20} {
			for _, format := range []string{`{"jsonrpc":"2.0","id":%s,"result":"%s"}`, `{"result":"%[2]s","jsonrpc":"2.0","id":%[1]s}`} {
				p.answer(func(w http.ResponseWriter, m jsonrpc.Message) {
					w.WriteHeader(http.StatusAccepted)
					p.out <- "data: " + fmt.Sprintf(format, m.ID, strings.Repeat("x", size)) + "\r\n\r\n"
				})
				_, err := call(t, c, "tools/call", `{}`, nil)
				if _, ok := errors.AsType[*transport.TooLarge](err); !ok {
					t.Errorf("got %v", err)
				}
			}
		}
		p.answer(p.echo)
		if _, err := call(t, c, "tools/call", `{}`, nil); err != nil {
			t.Error(err)
		}
	})
	t.Run("C70 invalid answer", func(t *testing.T) {
		p.answer(func(w http.ResponseWriter, m jsonrpc.Message) {
			p.out <- "data: {\"jsonrpc\":\"2.0\",\"id\":" + string(m.ID) + ",\"result\":\"\xe9\"}\n\n"
		})
		if _, err := call(t, c, "tools/call", `{}`, nil); err == nil {
			t.Error("no error")
		}
	})
	t.Run("answer in the body", func(t *testing.T) {
		p.answer(func(w http.ResponseWriter, m jsonrpc.Message) { respond(w, m, `{"here":1}`) })
		if got, err := call(t, c, "tools/call", `{}`, nil); got != `{"here":1}` {
			t.Errorf("got %s, %v", got, err)
		}
	})
	t.Run("session gone", func(t *testing.T) {
		p.answer(func(w http.ResponseWriter, m jsonrpc.Message) { w.WriteHeader(http.StatusNotFound) })
		_, err := call(t, c, "tools/call", `{}`, nil)
		if _, ok := errors.AsType[*transport.SessionGone](err); !ok {
			t.Errorf("got %v", err)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		started := make(chan struct{})
		p.answer(func(w http.ResponseWriter, m jsonrpc.Message) {
			if m.IsRequest() {
				close(started)
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-started; cancel() }()
		if _, err := c.Call(ctx, "tools/call", jsonrpc.NewParams(json.RawMessage(`{}`)), nil); err != context.Canceled {
			t.Errorf("got %v", err)
		}
		eventually(t, "cancelled", func() bool { return strings.Contains(strings.Join(p.bodies(), ""), "notifications/cancelled") })
	})
}

func TestSSE_StreamEnds_C86(t *testing.T) {
	before := runtime.NumGoroutine()
	p := newOldPeer(t, "/m", nil)
	p.answer(func(w http.ResponseWriter, m jsonrpc.Message) { close(p.out) })
	c, err := openSSE(t, p.URL, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, c, "tools/call", `{}`, nil); err == nil || !strings.Contains(err.Error(), "outcome is unknown") {
		t.Errorf("the running call: %v", err)
	}
	<-c.Done()
	_, err = call(t, c, "tools/call", `{}`, nil)
	if _, ok := errors.AsType[*transport.NotSent](err); !ok {
		t.Errorf("a later call: %v", err)
	}
	c.Close()
	p.CloseClientConnections()
	p.Close()
	eventually(t, "goroutines gone", func() bool { return runtime.NumGoroutine() <= before+1 })
}
