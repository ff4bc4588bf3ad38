package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// A rawPeer answers each request on a connection with what answer returns; the bool
// says whether the connection goes on.
type rawPeer struct {
	addr  string
	conns atomic.Int32
	calls atomic.Int32
}

func newRawPeer(t testing.TB, answer func(conn net.Conn, r *http.Request, body []byte, nth int) bool) *rawPeer {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &rawPeer{addr: ln.Addr().String()}
	var running sync.WaitGroup
	t.Cleanup(func() { ln.Close(); running.Wait() })
	running.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			p.conns.Add(1)
			running.Go(func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					var body []byte
					if r.Header.Get("X-Unread") == "" {
						body, _ = io.ReadAll(r.Body)
					}
					if !answer(conn, r, body, int(p.calls.Add(1))) {
						return
					}
				}
			})
		}
	})
	return p
}

func idOf(body []byte) string { return string(jsonrpc.Get(body, "id")) }

// jsonAnswer is a whole answer with extra header lines.
func jsonAnswer(body []byte, lines string) string {
	text := `{"jsonrpc":"2.0","id":` + idOf(body) + `,"result":{}}`
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", len(text), lines, text)
}

func openRaw(t testing.TB, p *rawPeer, header http.Header) (*HTTP, *HTTPConn) {
	h := NewHTTP(HTTPOptions{URL: "http://" + p.addr + "/mcp", Header: header})
	t.Cleanup(h.Close)
	c := h.Open(nil, false)
	t.Cleanup(func() { c.Close() })
	return h, c
}

func callOnce(t testing.TB, c *HTTPConn, params string) error {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	reply, err := c.Call(ctx, "tools/call", jsonrpc.NewParams(json.RawMessage(params)), nil)
	if err == nil {
		reply.Release()
	}
	return err
}

func TestWire_Framing(t *testing.T) {
	rows := []struct {
		name  string
		write func(conn net.Conn, body []byte)
		keep  bool // the connection serves the next call
		fails bool
	}{
		{"length", func(c net.Conn, b []byte) { io.WriteString(c, jsonAnswer(b, "")) }, true, false},
		{"chunked", func(c net.Conn, b []byte) {
			text := `{"jsonrpc":"2.0","id":` + idOf(b) + `,"result":{}}`
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", text[:5], len(text)-5, text[5:])
		}, true, false},
		{"up to the end", func(c net.Conn, b []byte) {
			fmt.Fprintf(c, "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"+`{"jsonrpc":"2.0","id":%s,"result":{}}`, idOf(b))
			c.Close()
		}, false, false},
		{"interim answers", func(c net.Conn, b []byte) {
			io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+jsonAnswer(b, ""))
		}, true, false},
		{"too many interim answers", func(c net.Conn, b []byte) { io.WriteString(c, strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 20)) }, false, true},
		{"protocol changed", func(c net.Conn, b []byte) {
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")
		}, false, true},
		{"Connection: close", func(c net.Conn, b []byte) { io.WriteString(c, jsonAnswer(b, "Connection: close\r\n")) }, false, false},
		{"Keep-Alive: timeout=1", func(c net.Conn, b []byte) { io.WriteString(c, jsonAnswer(b, "Keep-Alive: timeout=1, max=9\r\n")) }, false, false},
		{"Keep-Alive: timeout=60", func(c net.Conn, b []byte) { io.WriteString(c, jsonAnswer(b, "Keep-Alive: timeout=60\r\n")) }, true, false},
		{"trailing data", func(c net.Conn, b []byte) { io.WriteString(c, jsonAnswer(b, "")+"HTTP/1.1 200 OK\r\n\r\n") }, false, false},
		{"endless head", func(c net.Conn, b []byte) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for {
				if _, err := io.WriteString(c, "X: "+strings.Repeat("y", 1000)+"\r\n"); err != nil {
					return
				}
			}
		}, false, true},
		{"no HTTP", func(c net.Conn, b []byte) { io.WriteString(c, "220 mail.example ESMTP\r\n\r\n") }, false, true},
		{"event, then end", func(c net.Conn, b []byte) {
			event := "data: {\"jsonrpc\":\"2.0\",\"id\":" + idOf(b) + ",\"result\":{}}\n\n"
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(event), event)
		}, true, false},
		{"event with length", func(c net.Conn, b []byte) {
			event := "data: {\"jsonrpc\":\"2.0\",\"id\":" + idOf(b) + ",\"result\":{}}\n\ndata: more\n\n"
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(event), event)
		}, true, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := newRawPeer(t, func(c net.Conn, r *http.Request, body []byte, _ int) bool { row.write(c, body); return true })
			_, c := openRaw(t, p, nil)
			err := callOnce(t, c, `{}`)
			if (err != nil) != row.fails {
				t.Fatal(err)
			}
			if err := callOnce(t, c, `{}`); (err != nil) != row.fails {
				t.Error(err)
			}
			want := int32(2)
			if row.keep {
				want = 1
			}
			if n := p.conns.Load(); n != want {
				t.Errorf("%d connections, want %d", n, want)
			}
			if n := p.calls.Load(); n != 2 {
				t.Errorf("%d requests, want 2", n)
			}
		})
	}
}

// C184, M011, M012: what may be sent again, and what never is.
func TestWire_Once(t *testing.T) {
	t.Run("M012 lost after it was sent", func(t *testing.T) {
		p := newRawPeer(t, func(c net.Conn, r *http.Request, body []byte, nth int) bool {
			if nth == 1 {
				io.WriteString(c, jsonAnswer(body, ""))
				return true
			}
			return false // also on a connection that was used before
		})
		_, c := openRaw(t, p, nil)
		if err := callOnce(t, c, `{}`); err != nil {
			t.Fatal(err)
		}
		err := callOnce(t, c, `{}`)
		if _, unsent := errors.AsType[*NotSent](err); err == nil || unsent || !strings.Contains(err.Error(), "outcome is unknown") {
			t.Errorf("got %v", err)
		}
		if n := p.calls.Load(); n != 2 {
			t.Errorf("sent %d times, want once", n-1)
		}
	})
	t.Run("idle connection closed by the server", func(t *testing.T) {
		p := newRawPeer(t, func(c net.Conn, r *http.Request, body []byte, nth int) bool {
			io.WriteString(c, jsonAnswer(body, ""))
			return false
		})
		h, c := openRaw(t, p, nil)
		for range 20 {
			if err := callOnce(t, c, `{}`); err != nil {
				t.Fatal(err)
			}
			w := h.wire.(*ownWire)
			w.mu.Lock()
			l := &link{}
			if len(w.idle) > 0 {
				l = w.idle[0]
			}
			w.mu.Unlock()
			for l.conn != nil && l.alive() == ready { // the hang-up is on its way
				time.Sleep(time.Millisecond)
			}
		}
	})
	t.Run("M011 refused", func(t *testing.T) {
		ln, _ := net.Listen("tcp", "127.0.0.1:0")
		ln.Close()
		_, c := openRaw(t, &rawPeer{addr: ln.Addr().String()}, nil)
		err := callOnce(t, c, `{}`)
		if _, unsent := errors.AsType[*NotSent](err); !unsent {
			t.Errorf("got %v", err)
		}
	})
}

func TestWire_LargeBodies(t *testing.T) {
	large := `{"x":"` + strings.Repeat("y", 16<<20) + `"}`
	rows := []struct {
		name, unread, answer string
		want                 string // of the error; "": none
	}{
		{"read first", "", "", ""},
		{"C155 answered early and not read", "1", "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig", "HTTP 413"},
		{"hung up", "1", "", "outcome is unknown"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			asked := make(chan struct{}, 1)
			p := newRawPeer(t, func(c net.Conn, r *http.Request, body []byte, _ int) bool {
				switch {
				case row.unread == "":
					io.WriteString(c, jsonAnswer(body, ""))
					return true
				case row.answer != "":
					io.WriteString(c, row.answer)
					<-asked // keep it open without reading
				}
				return false
			})
			header := http.Header{}
			if row.unread != "" {
				header.Set("X-Unread", "1")
			}
			_, c := openRaw(t, p, header)
			err := callOnce(t, c, large)
			asked <- struct{}{}
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v, want %s", err, row.want)
			}
		})
	}
}

func TestWire_Pool(t *testing.T) {
	p := newRawPeer(t, func(c net.Conn, r *http.Request, body []byte, nth int) bool {
		io.WriteString(c, jsonAnswer(body, ""))
		return true
	})
	h, c := openRaw(t, p, nil)
	var running sync.WaitGroup
	for range 2 * maxIdle {
		running.Go(func() {
			if err := callOnce(t, c, `{}`); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	w := h.wire.(*ownWire)
	w.mu.Lock()
	if n := len(w.idle); n == 0 || n > maxIdle || len(w.all) != n {
		t.Errorf("%d idle of %d", n, len(w.all))
	}
	for _, l := range w.idle {
		l.expiry = time.Now()
	}
	w.mu.Unlock()
	w.expire()
	w.mu.Lock()
	if len(w.idle) != 0 || len(w.all) != 0 || w.sweep != nil {
		t.Errorf("%d idle of %d after their time", len(w.idle), len(w.all))
	}
	w.mu.Unlock()
	h.Close()
	if _, unsent := errors.AsType[*NotSent](callOnce(t, c, `{}`)); !unsent {
		t.Error("sent after Close")
	}
}

func TestRepliedTo(t *testing.T) {
	rows := []struct {
		head, tail string
		want       int64
	}{
		{`{"jsonrpc":"2.0","id":7,"result":"aaaa`, ``, 7},
		{`{"result":{"id":5,"x":["`, `yyy"]},"jsonrpc":"2.0","id":8}`, 8},
		{`{"result":{"id":5,"x":["`, `yyy"]},"id": 8 , "jsonrpc":"2.0" }` + "\n", 8},
		{`{"result":"\"id\":1,`, `"id":5}}`, 0},
		{`{"method":"x","id":7,"params":"`, `"id":7}`, 0},
		{`{"id":"7","result":"`, ``, 0},
		{`{"id"`, `{"id"`, 0},
		{``, ``, 0},
		{`{"id":7`, ``, 7},
	}
	for _, row := range rows {
		if got, _ := repliedTo([]byte(row.head), []byte(row.tail)); got != row.want {
			t.Errorf("repliedTo(%s, %s) = %d, want %d", row.head, row.tail, got, row.want)
		}
	}
}

// FuzzAnswer gives the whole way of an answer whatever a server can send.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 36\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\ndata: [{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]\n\n",
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n0\r\n\r\n",
		"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 307 x\r\nLocation: /mcp/\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\b\x00", "HTTP/1.1 401 x\r\nWww-Authenticate: Bearer\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		h := NewHTTP(HTTPOptions{URL: "http://peer/mcp", MaxMessage: 1 << 16})
		h.wire = newOwnWire(func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go io.Copy(io.Discard, theirs)
			go func() { theirs.Write(answer); theirs.Close() }()
			return ours, nil
		}, "peer:80")
		defer h.Close()
		c := h.Open(nil, false)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		reply, err := c.Call(ctx, "tools/call", jsonrpc.Params{}, nil)
		if err == nil {
			if (reply.Result == nil) == (reply.Error == nil) || jsonrpc.Check(append(reply.Result, reply.Error...)) != nil {
				t.Errorf("reply %q %q", reply.Result, reply.Error)
			}
			reply.Release()
		} else if strings.ContainsAny(err.Error(), "\r\n\x00\x1b") {
			t.Errorf("error %q", err)
		}
		c.Close()
	})
}

// FuzzCutter checks that what is short passes unchanged and what is long gets short.
func FuzzCutter(f *testing.F) {
	f.Add([]byte("data: a\r\ndata: b\r\n\r\n: x\n\n"), 7)
	f.Add([]byte("data: "+strings.Repeat("x", 400)+"\"id\":7}\r\rdata: y\n\n"), 3)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		const limit = 64
		out, err := io.ReadAll(&cutter{r: &pieces{stream, max(size, 1)}, limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		if len(stream) <= limit && !bytes.Equal(out, stream) {
			t.Errorf("%q became %q", stream, out)
		}
		e := jsonrpc.NewEventReader(bytes.NewReader(out), limit+4*maxTail)
		for {
			if _, err := e.Next(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%q: %v", stream, err)
			}
		}
	})
}

type pieces struct {
	b    []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.size)], p.b)
	p.b = p.b[n:]
	return n, nil
}

func BenchmarkCall(b *testing.B) {
	for _, size := range []int{256, 64 << 10} {
		params := `{"name":"echo","arguments":{"text":"` + strings.Repeat("x", size) + `"}}`
		for _, name := range []string{"own", "net/http"} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, idOf(body), jsonrpc.Get(body, "params"))
				}))
				defer s.Close()
				h := NewHTTP(HTTPOptions{URL: s.URL})
				defer h.Close()
				if name == "net/http" {
					h.wire = newStdWire((&net.Dialer{}).DialContext)
				}
				c := h.Open(nil, false)
				ctx, cancel := context.WithCancel(b.Context())
				defer cancel()
				b.ReportAllocs()
				for b.Loop() {
					reply, err := c.Call(ctx, "tools/call", jsonrpc.NewParams(json.RawMessage(params)), nil)
					if err != nil {
						b.Fatal(err)
					}
					reply.Release()
				}
			})
		}
	}
}
