package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// The two hot paths through everything, from a client's socket to the server's and
// back, beside what a plain reverse proxy makes of the same requests. Client and server
// are in the figures, so compare them only with each other.
func BenchmarkHotPaths(b *testing.B) {
	server := benchServer(1000)
	defer server.Close()
	mainstem, stop := benchMainstem(b, server.URL)
	defer stop()
	target, err := url.Parse(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	reverse := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	defer reverse.Close()
	for _, path := range []struct{ name, addr, prefix string }{
		{"mainstem", mainstem, "s__"}, {"reverse proxy", reverse.Listener.Addr().String(), ""},
	} {
		for name, body := range map[string]string{
			"call 256 B":      benchCall(path.prefix+"echo", strings.Repeat("x", 256)),
			"call 64 KiB":     benchCall(path.prefix+"echo", strings.Repeat("lorem ipsum ", 64<<10/12)),
			"list 1000 tools": `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		} {
			b.Run(name+"/"+path.name, func(b *testing.B) {
				c := newBenchClient(b, path.addr)
				b.ReportAllocs()
				for b.Loop() {
					if n := c.post(b, body); n < 200 {
						b.Fatalf("an answer of %d bytes", n)
					}
				}
			})
		}
	}
}

func benchCall(tool, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"text":%q}}}`, tool, text)
}

// benchServer is a server with a session and n tools, all of which answer with their text.
func benchServer(n int) *httptest.Server {
	var tools []string
	for i := range n - 1 {
		tools = append(tools, fmt.Sprintf(`{"name":"tool_%d","description":"Does what tool number %d does.","inputSchema":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}}`, i, i))
	}
	list := `{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}},` + strings.Join(tools, ",") + `]}`
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, err := jsonrpc.Parse(body)
		if err != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := list
		switch m.Method {
		case "initialize":
			w.Header().Set("Mcp-Session-Id", "one")
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`
		case "tools/call":
			result = `{"content":[{"type":"text","text":` + string(jsonrpc.Get(jsonrpc.Get(m.Params, "arguments"), "text")) + `}]}`
		case "tools/list":
		default:
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
}

// benchMainstem serves one server, and returns the address once that is listed.
func benchMainstem(b *testing.B, server string) (addr string, stop func()) {
	b.Helper()
	file := filepath.Join(b.TempDir(), "mainstem.yaml")
	text := fmt.Sprintf("state_dir: %s\nmcpServers:\n  s: {url: %q}\n", b.TempDir(), server)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	cfg, err := config.Load([]string{file}, func(string) (string, bool) { return "", false })
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p, err := wire(ctx, cfg, zerolog.New(io.Discard), wiring{serving: true})
	if err != nil {
		b.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.run(ctx, func(ctx context.Context) error { return p.door().Serve(ctx, ln) }) }()
	for deadline := time.Now().Add(10 * time.Second); !p.proxy.Ready(); {
		if time.Now().After(deadline) {
			b.Fatal("the server was never listed")
		}
		time.Sleep(time.Millisecond)
	}
	return ln.Addr().String(), func() { cancel(); <-done }
}

// A benchClient sends requests on one connection of its own, with as little effort as
// possible.
type benchClient struct {
	conn    net.Conn
	r       *bufio.Reader
	addr    string
	session string
}

func newBenchClient(b *testing.B, addr string) *benchClient {
	b.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	c := &benchClient{conn: conn, r: bufio.NewReaderSize(conn, 64<<10), addr: addr}
	c.post(b, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	return c
}

func (c *benchClient) post(b *testing.B, body string) int64 {
	head := fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n", c.addr, len(body))
	if c.session != "" {
		head += "Mcp-Session-Id: " + c.session + "\r\n"
	}
	if _, err := io.WriteString(c.conn, head+"\r\n"+body); err != nil {
		b.Fatal(err)
	}
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b.Fatalf("HTTP %d", resp.StatusCode)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return n
}
