package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/upstream/wire"
)

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
		h.wire = wire.New(h.to, func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go io.Copy(io.Discard, theirs)
			go func() { theirs.Write(answer); theirs.Close() }()
			return ours, nil
		}, nil)
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
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, jsonrpc.Get(body, "id"), jsonrpc.Get(body, "params"))
			}))
			defer s.Close()
			h := NewHTTP(HTTPOptions{URL: s.URL})
			defer h.Close()
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
