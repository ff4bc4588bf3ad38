package streamable_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/front/streamable"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// What a call costs on its way through us, beside what net/http costs for the same
// request and answer.
func BenchmarkCall(b *testing.B) {
	f := &fake{call: func(context.Context, proxy.Request, proxy.Stream) (jsonrpc.Reply, error) {
		return result(`{"content":[{"type":"text","text":"hello"}]}`), nil
	}}
	s := build(b, f, streamable.Options{}, session.TableOptions{})
	defer s.handler.Close()
	one, err := s.table.Create(caller, "")
	if err != nil {
		b.Fatal(err)
	}
	one.Negotiated("2025-11-25", nil, nil)
	mcp, _ := s.handler.Endpoint("")
	answer := []byte(`{"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"hello"}]}}`)
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write(answer)
	})
	legacy := "Mcp-Session-Id: " + one.ID() + "\r\nMcp-Protocol-Version: 2025-11-25\r\n"
	const modernHeaders = "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: a\r\n"
	for _, c := range []struct {
		name    string
		handler http.Handler
		body    string
		headers string
	}{
		{"bare", bare, toolCall, legacy},
		{"legacy", mcp, toolCall, legacy},
		{"modern", mcp, modernCall, modernHeaders},
	} {
		b.Run(c.name, func(b *testing.B) { benchmark(b, c.handler, c.body, c.headers) })
	}
}

// benchmark uses a client that costs next to nothing.
func benchmark(b *testing.B, h http.Handler, body, headers string) {
	server := httptest.NewServer(h)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	message := fmt.Appendf(nil, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n%sContent-Length: %d\r\n\r\n%s",
		headers, len(body), body)
	in := bufio.NewReader(conn)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Write(message); err != nil {
			b.Fatal(err)
		}
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, response.Body); err != nil || n < 20 || response.StatusCode != http.StatusOK {
			b.Fatalf("status %d, %d bytes, %v", response.StatusCode, n, err)
		}
	}
}
