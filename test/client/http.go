package client

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// An HTTP client is one MCP client over Streamable HTTP.
type HTTP struct {
	URL     string
	Version string
	Session string      // given by the server
	Header  http.Header // sent with every request
	Hello   Message     // reply to initialize or server/discover

	t    testing.TB
	http *http.Client
	next atomic.Int64
}

// New returns a client that has said nothing yet.
func New(t testing.TB, url, version string) *HTTP {
	transport := &http.Transport{DisableCompression: true}
	c := &HTTP{URL: url, Version: version, Header: http.Header{}, t: t}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(transport.CloseIdleConnections)
	return c
}

// Dial returns a client that has done what its version demands before other requests. It declares no capabilities.
func Dial(t testing.TB, url, version string) *HTTP {
	t.Helper()
	return DialWith(t, url, version, `{}`)
}

// DialWith is Dial with capabilities, as raw JSON, for a version with a handshake.
func DialWith(t testing.TB, url, version, capabilities string) *HTTP {
	t.Helper()
	c := New(t, url, version)
	if version == Modern {
		c.Hello = c.Must("server/discover", "").Message
		return c
	}
	a := c.Call("initialize", fmt.Sprintf(
		`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"test","version":"1"}}`, version, capabilities))
	if a.Status != http.StatusOK || a.Result == nil {
		t.Fatalf("initialize with %s: status %d: %s", version, a.Status, a.Body)
	}
	c.Hello, c.Session = a.Message, a.Header.Get("Mcp-Session-Id")
	if got := c.Notify("notifications/initialized", ""); got.Status != http.StatusAccepted {
		t.Fatalf("notifications/initialized: status %d: %s", got.Status, got.Body)
	}
	return c
}

// Meta returns _meta of every request of 2026-07-28.
func Meta() string {
	return `{"io.modelcontextprotocol/protocolVersion":"` + Modern + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}`
}

// An Answer is the whole answer to a request.
type Answer struct {
	Message             // the reply; empty if there is none
	Status  int         // of HTTP
	Header  http.Header // of HTTP
	Body    []byte      // of HTTP, if it was no event stream
	Before  []Message   // what came on the stream before the reply
	Events  []Event     // of the stream
	Err     error       // why the answer is not complete
}

// Stream says whether the answer was an event stream.
func (a Answer) Stream() bool {
	return strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream")
}

// Call sends a request and reads the answer to its end.
func (c *HTTP) Call(method, params string) Answer {
	c.t.Helper()
	return c.Start(method, params).Wait()
}

// Must is Call for a request that must have a result.
func (c *HTTP) Must(method, params string) Answer {
	c.t.Helper()
	a := c.Call(method, params)
	if a.Result == nil {
		c.t.Fatalf("%s %s: status %d, body %s, error %s, %v", method, params, a.Status, a.Body, a.Error, a.Err)
	}
	return a
}

// Tool calls a tool with raw arguments, none if empty.
func (c *HTTP) Tool(name, arguments string) Answer {
	c.t.Helper()
	return c.Call("tools/call", CallParams(name, arguments))
}

// Tools returns the definitions of the tools that are listed.
func (c *HTTP) Tools() []json.RawMessage {
	c.t.Helper()
	return toolsOf(c.t, c.Must("tools/list", "").Message)
}

// Names returns the names of the tools that are listed.
func (c *HTTP) Names() []string {
	c.t.Helper()
	return namesOf(c.Tools())
}

// Notify sends a notification.
func (c *HTTP) Notify(method, params string) Answer {
	c.t.Helper()
	return c.Post(c.body("", method, params), c.headers(method, params)).Wait()
}

// Start sends a request and returns as soon as the answer begins.
func (c *HTTP) Start(method, params string) *Pending {
	c.t.Helper()
	return c.StartID(fmt.Sprint(c.next.Add(1)), method, params)
}

// StartID is Start with a raw id of the test's choice.
func (c *HTTP) StartID(id, method, params string) *Pending {
	c.t.Helper()
	p := c.Post(c.body(id, method, params), c.headers(method, params))
	p.ID = id
	return p
}

// Disconnect closes the connections that wait for the next request.
func (c *HTTP) Disconnect() { c.http.CloseIdleConnections() }

// body writes a message; without an id it is a notification.
func (c *HTTP) body(id, method, params string) string {
	if c.Version == Modern {
		params = withMeta(params, Meta())
	}
	return Request(id, method, params)
}

// Request writes a message from raw parts; id and params may be empty.
func Request(id, method, params string) string {
	if id != "" {
		id = `,"id":` + id
	}
	if params != "" {
		params = `,"params":` + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0"%s,"method":%q%s}`, id, method, params)
}

func (c *HTTP) headers(method, params string) http.Header {
	h := http.Header{}
	if c.Session != "" {
		h.Set("Mcp-Session-Id", c.Session)
	}
	if c.Version >= "2025-06-18" && method != "initialize" {
		h.Set("Mcp-Protocol-Version", c.Version)
	}
	if c.Version == Modern {
		h.Set("Mcp-Method", method)
		var name string
		if json.Unmarshal(Member(json.RawMessage(params), "name"), &name) == nil {
			h.Set("Mcp-Name", encoded(name))
		}
	}
	return h
}

// encoded puts a value that no header can carry into the sentinel that the specification has for it.
func encoded(value string) string {
	if value == strings.TrimSpace(value) && strings.IndexFunc(value, func(r rune) bool { return r < 0x20 || r > 0x7e }) < 0 && !strings.HasPrefix(value, "=?base64?") {
		return value
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(value)) + "?="
}

// Post sends a body as it is; headers are added to the client's.
func (c *HTTP) Post(body string, header http.Header) *Pending {
	c.t.Helper()
	return c.Do(http.MethodPost, strings.NewReader(body), header)
}

// Do sends a request as it is. Accept and Content-Type are set unless a header has them.
func (c *HTTP) Do(method string, body io.Reader, header http.Header) *Pending {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, c.URL, body)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range []http.Header{c.Header, header} {
		for name, values := range h {
			r.Header[name] = values
		}
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
		r.Header.Del("Host")
	}
	p := &Pending{t: c.t, cancel: cancel}
	p.begin(c.http.Do(r))
	return p
}

// begin notes the head of an answer.
func (p *Pending) begin(w *http.Response, err error) {
	if err != nil {
		p.answer.Err = err
		return
	}
	p.answer.Status, p.answer.Header, p.body = w.StatusCode, w.Header, w.Body
	p.in = bufio.NewReader(w.Body)
}
