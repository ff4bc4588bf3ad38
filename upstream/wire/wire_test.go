package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// whole is an answer of the body ok, with extra header lines.
func whole(lines string) string {
	return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + lines + "\r\nok"
}

var direct = (&net.Dialer{}).DialContext

func target(t testing.TB, raw string) *Target {
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return NewTarget(u)
}

// open returns our own wire to p.
func open(t testing.TB, p *rawPeer) *ownWire {
	w, ok := New(target(t, "http://"+p.addr+"/x"), direct, nil).(*ownWire)
	if !ok {
		t.Fatal("not our own wire")
	}
	t.Cleanup(w.Close)
	return w
}

// post sends body and reads the answer up to its end, or its first empty line: what is
// behind that nobody wants.
func post(t testing.TB, w Wire, to *Target, body string, headers ...string) (status int, answer string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r := &Request{Method: http.MethodPost, To: to, Shared: NewHead(), Buf: append(make([]byte, Gap), body...)}
	for _, name := range headers {
		r.Add(name, "1")
	}
	resp, err := w.Exchange(ctx, r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for !strings.HasSuffix(answer, "\n\n") {
		c, err := in.ReadByte()
		if err == io.EOF {
			break
		}
		if err != nil {
			return resp.Status, answer, err
		}
		answer += string(c)
	}
	return resp.Status, answer, nil
}

func TestFraming(t *testing.T) {
	rows := []struct {
		name  string
		write func(conn net.Conn)
		keep  bool // the connection serves the next request
		want  string
	}{
		{"length", func(c net.Conn) { io.WriteString(c, whole("")) }, true, "ok"},
		{"chunked", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n")
		}, true, "ok"},
		{"up to the end", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\nok")
			c.Close()
		}, false, "ok"},
		{"interim answers", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+whole(""))
		}, true, "ok"},
		{"too many interim answers", func(c net.Conn) { io.WriteString(c, strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 20)) }, false, errMalformed.Error()},
		{"protocol changed", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")
		}, false, errUpgrade.Error()},
		{"Connection: close", func(c net.Conn) { io.WriteString(c, whole("Connection: close\r\n")) }, false, "ok"},
		{"Keep-Alive: timeout=1", func(c net.Conn) { io.WriteString(c, whole("Keep-Alive: timeout=1, max=9\r\n")) }, false, "ok"},
		{"Keep-Alive: timeout=60", func(c net.Conn) { io.WriteString(c, whole("Keep-Alive: timeout=60\r\n")) }, true, "ok"},
		{"trailing data", func(c net.Conn) { io.WriteString(c, whole("")+"HTTP/1.1 200 OK\r\n\r\n") }, false, "ok"},
		{"endless head", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for {
				if _, err := io.WriteString(c, "X: "+strings.Repeat("y", 1000)+"\r\n"); err != nil {
					return
				}
			}
		}, false, errHeadTooLarge.Error()},
		{"no HTTP", func(c net.Conn) { io.WriteString(c, "220 mail.example ESMTP\r\n\r\n") }, false, errMalformed.Error()},
		{"hung up", func(c net.Conn) { c.Close() }, false, errHangUp.Error()},
		{"last chunk not read", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nok\n\n\r\n0\r\n\r\n")
		}, true, "ok\n\n"},
		{"end not read", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok\n\nmore\n\n") }, true, "ok\n\n"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := newRawPeer(t, func(c net.Conn, r *http.Request, _ []byte, _ int) bool { row.write(c); return true })
			w := open(t, p)
			for range 2 {
				_, got, err := post(t, w, target(t, "http://"+p.addr), "x")
				if err != nil {
					got = err.Error()
				}
				if got != row.want {
					t.Errorf("got %q, want %q", got, row.want)
				}
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

// C184, M011, M012: what cannot have been seen, and what is never sent twice.
func TestOnce(t *testing.T) {
	t.Run("M012 lost after it was sent", func(t *testing.T) {
		p := newRawPeer(t, func(c net.Conn, r *http.Request, _ []byte, nth int) bool {
			if nth == 1 {
				io.WriteString(c, whole(""))
				return true
			}
			return false // also on a connection that was used before
		})
		w, to := open(t, p), target(t, "http://"+p.addr)
		if _, _, err := post(t, w, to, "x"); err != nil {
			t.Fatal(err)
		}
		_, _, err := post(t, w, to, "x")
		if _, unsent := errors.AsType[*NotSent](err); err == nil || unsent {
			t.Errorf("got %v", err)
		}
		if n := p.calls.Load(); n != 2 {
			t.Errorf("sent %d times, want once", n-1)
		}
	})
	t.Run("idle connection closed by the server", func(t *testing.T) {
		p := newRawPeer(t, func(c net.Conn, r *http.Request, _ []byte, nth int) bool {
			io.WriteString(c, whole(""))
			return false
		})
		w := open(t, p)
		for range 20 {
			if _, _, err := post(t, w, target(t, "http://"+p.addr), "x"); err != nil {
				t.Fatal(err)
			}
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
		p := &rawPeer{addr: ln.Addr().String()}
		_, _, err := post(t, open(t, p), target(t, "http://"+p.addr), "x")
		if _, unsent := errors.AsType[*NotSent](err); !unsent {
			t.Errorf("got %v", err)
		}
	})
}

func TestLargeBodies(t *testing.T) {
	large := strings.Repeat("y", 16<<20)
	rows := []struct {
		name, unread, answer string
		want                 int // status; 0: an error, and the request may have been seen
	}{
		{"read first", "", "", 200},
		{"C155 answered early and not read", "X-Unread", "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig", 413},
		{"hung up", "X-Unread", "", 0},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			asked := make(chan struct{}, 1)
			p := newRawPeer(t, func(c net.Conn, r *http.Request, body []byte, _ int) bool {
				switch {
				case row.unread == "":
					if len(body) != len(large) {
						t.Errorf("got %d bytes, want %d", len(body), len(large))
					}
					io.WriteString(c, whole(""))
					return true
				case row.answer != "":
					io.WriteString(c, row.answer)
					<-asked // keep it open without reading
				}
				return false
			})
			var headers []string
			if row.unread != "" {
				headers = []string{row.unread}
			}
			status, _, err := post(t, open(t, p), target(t, "http://"+p.addr), large, headers...)
			asked <- struct{}{}
			if _, unsent := errors.AsType[*NotSent](err); status != row.want || (err != nil) != (row.want == 0) || unsent {
				t.Errorf("got status %d, %v, want %d", status, err, row.want)
			}
		})
	}
}

func TestPool(t *testing.T) {
	p := newRawPeer(t, func(c net.Conn, r *http.Request, _ []byte, nth int) bool {
		io.WriteString(c, whole(""))
		return true
	})
	w, to := open(t, p), target(t, "http://"+p.addr)
	var running sync.WaitGroup
	for range 2 * maxIdle {
		running.Go(func() {
			if _, _, err := post(t, w, to, "x"); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
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
	w.Close()
	_, _, err := post(t, w, to, "x")
	if _, unsent := errors.AsType[*NotSent](err); !unsent {
		t.Errorf("got %v after Close", err)
	}
}

// Both wires send the same request, by what the server gets.
func TestRequest(t *testing.T) {
	got := make(chan *http.Request, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Header.Set("Body", string(body))
		got <- r
	}))
	defer s.Close()
	to := target(t, strings.Replace(s.URL, "://", "://user:word@", 1)+"/a%2Fb?q=1 2#c")
	for name, w := range map[string]Wire{"own": newOwnWire(direct, address(to.url)), "net/http": newStdWire(direct, nil)} {
		r := &Request{Method: "POST", To: to, Shared: NewHead(http.Header{"A": {"1"}, "B": {"1"}, "User-Agent": {"x"}}, http.Header{"B": {"2", "3"}}),
			Buf: append(make([]byte, Gap), "body"...)}
		if !r.Add("C", "4") || r.Add("D", "a\r\nE: 5") || r.Add("D\n", "") || r.Add("", "") {
			t.Error("illegal headers taken, or a legal one not")
		}
		resp, err := w.Exchange(t.Context(), r)
		if err != nil {
			t.Fatal(name, err)
		}
		resp.Body.Close()
		g := <-got
		line := fmt.Sprintf("%s %s %s %v", g.Method, g.RequestURI, g.Host, g.Header)
		want := "POST /a%2Fb?q=1%202 " + to.url.Host + " map[A:[1] B:[2 3] Body:[body] C:[4] Content-Length:[4] User-Agent:[x]]"
		if line = strings.Replace(line, "Accept-Encoding:[gzip] ", "", 1); line != want {
			t.Errorf("%s: got %s\nwant %s", name, line, want)
		}
		w.Close()
	}
}

func TestSameOrigin(t *testing.T) {
	rows := []struct {
		a, b string
		want bool
	}{
		{"http://a/x", "http://A:80/y", true},
		{"https://a", "https://a:443", true},
		{"http://a", "https://a", false},
		{"http://a:1", "http://a:2", false},
		{"http://a", "http://b", false},
	}
	for _, row := range rows {
		if got := target(t, row.a).SameOrigin(target(t, row.b).url); got != row.want {
			t.Errorf("%s and %s: got %v, want %v", row.a, row.b, got, row.want)
		}
	}
}

// FuzzExchange gives our own wire whatever a server can send.
func FuzzExchange(f *testing.F) {
	for _, seed := range []string{
		whole(""), whole("Keep-Alive: timeout=5\r\n"), "HTTP/1.1 100 Continue\r\n\r\n" + whole(""), "HTTP/1.1 304 x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n0\r\n\r\n", "HTTP/1.0 200\r\n\r\nx",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		w := newOwnWire(func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go io.Copy(io.Discard, theirs)
			go func() { theirs.Write(answer); theirs.Close() }()
			return ours, nil
		}, "peer:80")
		defer w.Close()
		_, _, err := post(t, w, target(t, "http://peer"), "x")
		if err != nil && strings.ContainsAny(err.Error(), "\r\n\x00\x1b") {
			t.Errorf("error %q", err)
		}
	})
}

func BenchmarkExchange(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }))
	defer s.Close()
	to := target(b, s.URL)
	for _, size := range []int{256, 64 << 10} {
		for name, w := range map[string]Wire{"own": newOwnWire(direct, address(to.url)), "net/http": newStdWire(direct, nil)} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				defer w.Close()
				r := &Request{Method: http.MethodPost, To: to, Shared: NewHead(), Buf: make([]byte, Gap+size)}
				b.ReportAllocs()
				for b.Loop() {
					resp, err := w.Exchange(b.Context(), r)
					if err != nil {
						b.Fatal(err)
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		}
	}
}
