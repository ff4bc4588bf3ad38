package streamable_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/front/streamable"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

const (
	list   = `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}`
	listed = `{"jsonrpc":"2.0","id":7,"result":{}}`
)

func modernList(headers ...string) []string { return append(modern("tools/list", ""), headers...) }

// What a message is answered with before, or instead of, being served.
func TestPost(t *testing.T) {
	s := open(t, &fake{}).begin()
	long := strings.Repeat(" ", 5<<20)
	for _, c := range []struct {
		name    string
		body    string
		headers []string
		status  int
		want    string // in the body
		served  bool
	}{
		{name: "a request", body: list, status: 200, want: listed, served: true},
		{name: "id a string", body: request(`"7"`, "ping", ""), status: 200, want: `{"jsonrpc":"2.0","id":"7","result":{}}`, served: true},
		{name: "id a big number", body: request(`9007199254740993`, "ping", ""), status: 200, want: `"id":9007199254740993,`, served: true},
		{name: "charset", body: list, headers: []string{"Content-Type", "", "Content-Type", "Application/JSON; charset=utf-8"}, status: 200, served: true},
		{name: "an unknown method", body: request("1", "x/y", ""), status: 200, want: `-32601`, served: true},
		{name: "C156 no JSON", body: "not json", status: 400, want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`},
		{name: "C156 cut off", body: list[:30], status: 400, want: `-32700`},
		{name: "C156 empty", body: "", status: 400, want: `-32700`},
		{name: "C156 byte order mark", body: "\xef\xbb\xbf" + list, status: 200, served: true},
		{name: "C215 newline in a string", body: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\nng\"}", status: 400, want: `-32700`},
		{name: "J16 invalid UTF-8", body: `{"jsonrpc":"2.0","id":1,"method":"` + "\xff" + `"}`, status: 400, want: `-32700`},
		{name: "C132 a batch", body: "[" + list + "]", status: 400, want: `"id":null,"error":{"code":-32600`},
		{name: "C132 an empty batch", body: "  []", status: 400, want: `-32600`},
		{name: "J1 id null", body: request("null", "ping", ""), status: 400, want: `-32600`},
		{name: "no jsonrpc", body: `{"id":7,"method":"ping"}`, status: 400, want: `"id":7,"error":{"code":-32600`},
		{name: "C214 _meta twice", body: request("7", "tools/call", `{"_meta":{},"_meta":{}}`), status: 400, want: `"id":7,"error":{"code":-32602`},
		{name: "C214 _meta in another case", body: request("7", "tools/call", `{"_META":{}}`), status: 400, want: `-32602`},
		{name: "C214 version twice", body: request("7", "tools/call", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/protocolversion":"x"}}`), status: 400, want: `-32602`},
		{name: "J3 C133 a notification", body: `{"jsonrpc":"2.0","method":"notifications/zzz"}`, status: 202, served: true},
		{name: "C133 params a list", body: `{"jsonrpc":"2.0","method":"notifications/zzz","params":[1]}`, status: 202, served: true},
		{name: "C133 cancelled, unknown id", body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`, status: 202, served: true},
		{name: "H5 an answer", body: `{"jsonrpc":"2.0","id":1,"result":{}}`, status: 202},
		{name: "C127 unknown session", body: list, headers: []string{"Mcp-Session-Id", "", "Mcp-Session-Id", "forged"}, status: 404, want: `"id":7,"error":{"code":-32600`},
		{name: "C128 no session", body: list, headers: []string{"Mcp-Session-Id", ""}, status: 400, want: `-32600`},
		{name: "C128 a notification without session", body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, headers: []string{"Mcp-Session-Id", ""}, status: 400},
		{name: "C130 unknown version", body: list, headers: []string{"MCP-Protocol-Version", "1900-01-01"}, status: 400, want: `-32600`},
		{name: "C130 no version", body: list, headers: []string{"MCP-Protocol-Version", "not-a-version"}, status: 400, want: `-32600`},
		{name: "C130 an older version", body: list, headers: []string{"MCP-Protocol-Version", "2025-06-18"}, status: 200, served: true},
		{name: "C155 announced too large", body: long, status: 413, want: `-32600`},
		{name: "text", body: list, headers: []string{"Content-Type", "", "Content-Type", "text/plain"}, status: 415},
		{name: "no type", body: list, headers: []string{"Content-Type", ""}, status: 415},
		{name: "compressed", body: list, headers: []string{"Content-Encoding", "gzip"}, status: 415},
		{name: "accepts images", body: list, headers: []string{"Accept", "", "Accept", "image/png"}, status: 406},
		{name: "accepts nothing", body: list, headers: []string{"Accept", "", "Accept", "application/json;q=0, text/event-stream;q=0.0"}, status: 406},
		{name: "accepts JSON only", body: list, headers: []string{"Accept", "", "Accept", "application/json"}, status: 200, want: listed, served: true},
		{name: "accepts anything", body: list, headers: []string{"Accept", "", "Accept", "*/*"}, status: 200, want: listed, served: true},
		{name: "accepts with weights", body: list, headers: []string{"Accept", "", "Accept", "text/event-stream; q=0.5, application/json;q=1"}, status: 200, want: listed, served: true},
	} {
		t.Run(c.name, func(t *testing.T) { s.in(t).expect(c.body, c.headers, c.status, c.want, c.served) })
	}
}

// in makes the site report to a part of the test.
func (s *site) in(t *testing.T) *site {
	part := *s
	part.t = t
	return &part
}

func (s *site) expect(body string, headers []string, status int, want string, served bool) {
	s.t.Helper()
	before := s.fake.served.Load()
	response, got := s.post(body, headers...)
	if response.StatusCode != status || !strings.Contains(got, want) {
		s.t.Errorf("got %d %s, want %d %s", response.StatusCode, got, status, want)
	}
	if n := s.fake.served.Load() - before; (n == 1) != served {
		s.t.Errorf("%d messages were served", n)
	}
	switch {
	case status == http.StatusAccepted && got != "":
		s.t.Errorf("a body %q where there must be none", got)
	case status != http.StatusAccepted && (response.Header.Get("Content-Type") != "application/json" || response.ContentLength != int64(len(got))):
		s.t.Errorf("Content-Type %q, Content-Length %d", response.Header.Get("Content-Type"), response.ContentLength)
	}
}

// Requests of 2026-07-28: what they must have, and that headers and body agree.
func TestModern(t *testing.T) {
	s := open(t, &fake{})
	s.session = "ignored"
	body := request("7", "tools/list", `{`+meta+`}`)
	call := request("7", "tools/call", `{"name":"täst",`+meta+`}`)
	without := func(key string) string {
		return request("7", "tools/list", `{"_meta":{"x":1,`+map[string]string{
			"version":      `"io.modelcontextprotocol/clientCapabilities":{}`,
			"capabilities": `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`,
		}[key]+`}}`)
	}
	version := func(v string) string { return strings.Replace(body, `"2026-07-28"`, v, 1) }
	for _, c := range []struct {
		name    string
		body    string
		headers []string
		status  int
		want    string
		served  bool
	}{
		{name: "a request", body: body, headers: modernList(), status: 200, want: listed, served: true},
		{name: "H25 Last-Event-ID", body: body, headers: modernList("Last-Event-ID", "1-1"), status: 200, served: true},
		{name: "L9 no _meta", body: list, headers: modernList(), status: 400, want: `"id":7,"error":{"code":-32602`},
		{name: "L9 no version", body: without("version"), headers: modernList(), status: 400, want: `-32602`},
		{name: "L9 no capabilities", body: without("capabilities"), headers: modernList(), status: 400, want: `-32602`},
		{name: "L9 version a number", body: version("1"), headers: modernList(), status: 400, want: `-32602`},
		{name: "L8 unknown version", body: version(`"2099-01-01"`), headers: []string{"MCP-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/list"}, status: 400,
			want: `"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"2099-01-01"}`},
		{name: "H9 version differs", body: version(`"2099-01-01"`), headers: modernList(), status: 400, want: `-32020`},
		{name: "H9 no version header", body: body, headers: []string{"Mcp-Method", "tools/list"}, status: 400, want: `-32020`},
		{name: "H9 no method header", body: body, headers: []string{"MCP-Protocol-Version", "2026-07-28"}, status: 400, want: `-32020`},
		{name: "H9 method differs", body: body, headers: modern("prompts/list", ""), status: 400, want: `-32020`},
		{name: "H9 method in another case", body: body, headers: modern("TOOLS/LIST", ""), status: 400, want: `-32020`},
		{name: "H9 method twice", body: body, headers: modernList("Mcp-Method", "tools/list"), status: 400, want: `-32020`},
		{name: "H12 no name", body: call, headers: modern("tools/call", ""), status: 400, want: `-32020`},
		{name: "H9 name differs", body: call, headers: modern("tools/call", "test"), status: 400, want: `-32020`},
		{name: "H15 name encoded", body: call, headers: modern("tools/call", protocol.EncodeHeader("täst")), status: 200, served: true},
		{name: "H9 name badly encoded", body: call, headers: modern("tools/call", "=?base64?*?="), status: 400, want: `-32020`},
		{name: "C214 name twice", body: request("7", "tools/call", `{"name":"a","Name":"b",`+meta+`}`), headers: modern("tools/call", "a"), status: 400, want: `-32602`},
		{name: "C214 name escaped", body: request("7", "tools/call", `{"na\u006de":"a",`+meta+`}`), headers: modern("tools/call", "a"), status: 200, served: true},
		{name: "H10 unknown method", body: request("7", "x/y", `{`+meta+`}`), headers: modern("x/y", ""), status: 404, want: `"id":7,"error":{"code":-32601`, served: true},
		{name: "H10 N2 ping", body: request("7", "ping", `{`+meta+`}`), headers: modern("ping", ""), status: 404, want: `-32601`, served: true},
		{name: "H10 initialize", body: request("7", "initialize", `{`+meta+`}`), headers: modern("initialize", ""), status: 404, want: `-32601`, served: true},
		{name: "H39 an answer", body: `{"jsonrpc":"2.0","id":1,"result":{}}`, headers: modernList(), status: 400, want: `-32600`},
		{name: "J3 a notification", body: `{"jsonrpc":"2.0","method":"notifications/zzz"}`, headers: modernList(), status: 202, served: true},
		{name: "a listen that takes no stream", body: request("7", "subscriptions/listen", `{`+meta+`}`), headers: append(modern("subscriptions/listen", ""), "Accept", "", "Accept", "application/json"), status: 406},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := s.in(t)
			s.expect(c.body, c.headers, c.status, c.want, c.served)
		})
	}
	if n := s.table.Len(); n != 0 {
		t.Errorf("H25: %d sessions were opened", n)
	}
	response, _ := s.post(body, modernList()...)
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		t.Errorf("H25: session id %q", id)
	}
}

// What the request declares is what the session says (L10).
func TestModernSession(t *testing.T) {
	f := &fake{call: func(_ context.Context, r proxy.Request, _ proxy.Stream) (jsonrpc.Reply, error) {
		region, ok := r.Param("Region")
		twice, _ := r.Param("Twice")
		bad, _ := r.Param("Bad")
		_, absent := r.Param("Absent")
		return result(fmt.Sprintf(`{"version":%q,"capabilities":%s,"info":%s,"level":%q,"region":%q,"ok":%v,"absent":%v,"twice":%q,"bad":%q}`,
			r.Session.Version(), r.Session.Capabilities(), r.Session.ClientInfo(), r.Session.Level(), region, ok, absent, twice, bad)), nil
	}}
	s := open(t, f)
	params := `{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":{}},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"t"},"io.modelcontextprotocol/logLevel":"debug"}}`
	headers := append(modern("tools/call", "a"), "Mcp-Param-Region", "=?base64?4pyT?=", "Mcp-Param-Twice", "1", "Mcp-Param-Twice", "1", "Mcp-Param-Bad", "=?base64?*?=")
	_, got := s.post(request("1", "tools/call", params), headers...)
	want := `{"jsonrpc":"2.0","id":1,"result":{"version":"2026-07-28","capabilities":{"sampling":{}},"info":{"name":"t"},"level":"debug",` +
		`"region":"✓","ok":true,"absent":false,"twice":"\xff","bad":"\xff"}}`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// C127, C131: a session from its beginning to its end.
func TestSessionLifecycle(t *testing.T) {
	s := open(t, &fake{}).begin()
	if !regexp.MustCompile(`^[!-~]{22,}$`).MatchString(s.session) {
		t.Errorf("H26: id %q", s.session)
	}
	response, _ := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "MCP-Protocol-Version", "2025-11-25")
	if response.StatusCode != http.StatusAccepted {
		t.Errorf("initialized: %d", response.StatusCode)
	}
	for _, step := range []struct {
		name, method, session string
		headers               []string
		status                int
	}{
		{"DELETE without id", "DELETE", "", nil, 400},
		{"DELETE of a forged id", "DELETE", "forged", nil, 404},
		{"DELETE in 2026-07-28", "DELETE", s.session, []string{"MCP-Protocol-Version", "2026-07-28"}, 405},
		{"GET in 2026-07-28", "GET", s.session, []string{"MCP-Protocol-Version", "2026-07-28"}, 405},
		{"GET with an unknown version", "GET", s.session, []string{"MCP-Protocol-Version", "1999-01-01"}, 400},
		{"C128 GET without id", "GET", "", nil, 400},
		{"C128 GET with a forged id", "GET", "forged", nil, 404},
		{"GET for JSON", "GET", s.session, []string{"Accept", "", "Accept", "application/json"}, 406},
		{"H34 GET after a foreign event", "GET", s.session, []string{"Last-Event-ID", "zz-1"}, 400},
		{"PUT", "PUT", s.session, nil, 405},
		{"DELETE", "DELETE", s.session, nil, 204},
		{"C127 DELETE again", "DELETE", s.session, nil, 404},
		{"C127 GET after the end", "GET", s.session, nil, 404},
	} {
		t.Run(step.name, func(t *testing.T) {
			s := s.in(t)
			s.session = step.session
			response := s.do(t.Context(), step.method, "", step.headers...)
			if body := s.read(response); response.StatusCode != step.status {
				t.Errorf("got %d %s, want %d", response.StatusCode, body, step.status)
			}
			if allow := response.Header.Get("Allow"); (allow != "") != (step.status == http.StatusMethodNotAllowed) {
				t.Errorf("Allow %q", allow)
			}
		})
	}
	if response, _ := s.post(list); response.StatusCode != http.StatusNotFound {
		t.Errorf("C127: %d after DELETE", response.StatusCode)
	}
}

func TestInitialize(t *testing.T) {
	s := open(t, &fake{})
	for _, c := range []struct{ name, body, version string }{
		{"C131 a version of ours", strings.Replace(hello, "2025-11-25", "2024-11-05", 1), "2024-11-05"},
		{"C131 a future version", strings.Replace(hello, "2025-11-25", "2099-01-01", 1), "2099-01-01"},
		{"L1 the modern version", strings.Replace(hello, "2025-11-25", "2026-07-28", 1), "2026-07-28"},
	} {
		t.Run(c.name, func(t *testing.T) {
			response, body := s.in(t).post(c.body, "MCP-Protocol-Version", c.version)
			if response.StatusCode != 200 || response.Header.Get("Mcp-Session-Id") == "" || !strings.Contains(body, `"protocolVersion":"20`) {
				t.Errorf("got %d %s", response.StatusCode, body)
			}
		})
	}
	before := s.table.Len()
	response, body := s.post(request("1", "initialize", "{}"))
	if response.Header.Get("Mcp-Session-Id") != "" || !strings.Contains(body, "-32602") || s.table.Len() != before {
		t.Errorf("a failed initialize: %s, %d sessions", body, s.table.Len()-before)
	}
}

func TestEndpoints(t *testing.T) {
	s := open(t, &fake{}).begin()
	all := s.url
	if _, ok := s.handler.Endpoint("unknown"); ok {
		t.Error("an unknown server has an endpoint")
	}
	s.url = strings.Replace(all, "/mcp", "/servers/files/mcp", 1)
	if response, _ := s.post(list); response.StatusCode != http.StatusNotFound {
		t.Errorf("a session of another endpoint: %d, want 404", response.StatusCode)
	}
	s.begin()
	if response, _ := s.post(list); response.StatusCode != http.StatusOK {
		t.Errorf("its own session: %d", response.StatusCode)
	}
}

func TestFull(t *testing.T) {
	s := build(t, &fake{}, streamable.Options{}, session.TableOptions{MaxSessions: 1})
	one, err := s.table.Create(caller, "")
	if err != nil {
		t.Fatal(err)
	}
	w := record(s, post(hello))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	one.Release()
	if w := record(s, post(hello)); w.Code != http.StatusOK {
		t.Errorf("after a release: %d", w.Code)
	}
	s.handler.Close()
}

// C155: what is too large is not read to its end.
func TestBodyLimit(t *testing.T) {
	s := build(t, &fake{}, streamable.Options{MaxRequestBytes: 1 << 20}, session.TableOptions{})
	defer s.handler.Close()
	body := &endless{}
	r := post("")
	r.Body, r.ContentLength = io.NopCloser(body), -1
	if w := record(s, r); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d, want 413", w.Code)
	}
	if body.read > 3<<20 {
		t.Errorf("%d bytes were read", body.read)
	}
}

type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	e.read += len(b)
	return copy(b, bytes.Repeat([]byte{' '}, len(b))), nil
}

// C152: the same id from many clients.
func TestSameID(t *testing.T) {
	f := &fake{call: func(_ context.Context, r proxy.Request, _ proxy.Stream) (jsonrpc.Reply, error) {
		return jsonrpc.Reply{Result: slices.Clone(jsonrpc.Get(r.Message.Params, "arguments"))}, nil
	}}
	s := open(t, f)
	done := make(chan string)
	for n := range 20 {
		go func() {
			own := *s
			own.begin()
			want := fmt.Sprintf(`{"n":%d}`, n)
			_, got := own.post(request("1", "tools/call", `{"name":"echo","arguments":`+want+`}`))
			if got == `{"jsonrpc":"2.0","id":1,"result":`+want+`}` {
				got = ""
			}
			done <- got
		}()
	}
	for range 20 {
		if got := <-done; got != "" {
			t.Errorf("got %s", got)
		}
	}
}

// A large answer is whole, in one piece of known length.
func TestLargeAnswer(t *testing.T) {
	text := strings.Repeat("é", 1<<20)
	f := &fake{call: func(context.Context, proxy.Request, proxy.Stream) (jsonrpc.Reply, error) {
		return result(`"` + text + `"`), nil
	}}
	s := open(t, f).begin()
	response, got := s.post(request("1", "tools/call", `{"name":"a"}`))
	if want := `{"jsonrpc":"2.0","id":1,"result":"` + text + `"}`; got != want || response.ContentLength != int64(len(want)) {
		t.Errorf("%d bytes, Content-Length %d, want %d", len(got), response.ContentLength, len(want))
	}
}
