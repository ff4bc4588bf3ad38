package test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
)

// envelope is a request of 2026-07-28 that is in order; tests change one thing in it.
type envelope struct {
	method string
	params string // without _meta
	meta   string // raw; empty: as it should be
	header http.Header
}

func (e envelope) send(c *client.HTTP) client.Answer {
	if e.meta == "" {
		e.meta = client.Meta()
	}
	params := `{"_meta":` + e.meta + `}`
	if e.params != "" {
		params = `{"_meta":` + e.meta + `,` + e.params + `}`
	}
	h := http.Header{"Mcp-Protocol-Version": {client.Modern}, "Mcp-Method": {e.method}}
	for name, values := range e.header {
		h[name] = values
		if values == nil {
			delete(h, name)
		}
	}
	return c.Post(client.Request("1", e.method, params), h).Wait()
}

func TestModernEnvelope(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a", "naïve")})
	c := modern(t, m)
	const version, capabilities = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{}`
	call := `"name":"up__a","arguments":{}`
	named := http.Header{"Mcp-Name": {"up__a"}}
	cases := []struct {
		name   string
		e      envelope
		status int
		code   int
	}{
		{"in order", envelope{method: "tools/call", params: call, header: named}, 200, 0},
		{"encoded name", envelope{method: "tools/call", params: call, header: http.Header{"Mcp-Name": {"=?base64?dXBfX2E=?="}}}, 200, 0},
		{"no client info", envelope{method: "tools/list", meta: "{" + version + "," + capabilities + "}"}, 200, 0},
		{"session and event id are ignored", envelope{method: "tools/list", header: http.Header{"Mcp-Session-Id": {"x"}, "Last-Event-Id": {"y"}}}, 200, 0},
		{"no version in _meta", envelope{method: "tools/list", meta: "{" + capabilities + "}"}, 400, -32602},
		{"no capabilities", envelope{method: "tools/list", meta: "{" + version + "}"}, 400, -32602},
		{"no version header", envelope{method: "tools/list", header: http.Header{"Mcp-Protocol-Version": nil}}, 400, -32020},
		{"another version header", envelope{method: "tools/list", header: http.Header{"Mcp-Protocol-Version": {client.Latest}}}, 400, -32020},
		{"no method header", envelope{method: "tools/list", header: http.Header{"Mcp-Method": nil}}, 400, -32020},
		{"another method header", envelope{method: "tools/list", header: http.Header{"Mcp-Method": {"tools/call"}}}, 400, -32020},
		{"no name header", envelope{method: "tools/call", params: call}, 400, -32020},
		{"another name header", envelope{method: "tools/call", params: call, header: http.Header{"Mcp-Name": {"up__b"}}}, 400, -32020},
		{"unknown version", envelope{method: "tools/list", meta: `{"io.modelcontextprotocol/protocolVersion":"2099-01-01",` + capabilities + `}`, header: http.Header{"Mcp-Protocol-Version": {"2099-01-01"}}}, 400, -32022},
		{"unknown method", envelope{method: "nonsense/method"}, 404, -32601},
		{"ping", envelope{method: "ping"}, 404, -32601},
		{"logging/setLevel", envelope{method: "logging/setLevel", params: `"level":"info"`}, 404, -32601},
		{"resources/subscribe", envelope{method: "resources/subscribe", params: `"uri":"x"`}, 404, -32601},
	}
	for _, v := range cases {
		a := v.e.send(c)
		if a.Status != v.status || a.Code() != v.code {
			t.Errorf("%s: %d %s, want status %d, code %d", v.name, a.Status, a.Body, v.status, v.code)
		}
		if a.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: a session was made", v.name)
		}
	}
	unknown := cases[12].e.send(c)
	if !slices.ContainsFunc([]string{string(client.Member(unknown.Error, "data", "supported"))}, func(s string) bool { return strings.Contains(s, client.Modern) }) ||
		string(client.Member(unknown.Error, "data", "requested")) != `"2099-01-01"` {
		t.Errorf("unknown version: %s", unknown.Error)
	}
	if n := len(s.Calls("a")); n != 2 {
		t.Errorf("%d calls arrived, want 2", n)
	}
}

func TestModernMethods(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := modern(t, m)
	h := http.Header{"Mcp-Protocol-Version": {client.Modern}}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if p := c.Do(method, nil, h); p.Status() != http.StatusMethodNotAllowed || !strings.Contains(p.Header().Get("Allow"), "POST") {
			t.Errorf("%s: status %d, Allow %q", method, p.Status(), p.Header().Get("Allow"))
		}
	}
	h.Set("Mcp-Method", "x")
	if a := c.Post(`{"jsonrpc":"2.0","id":1,"result":{}}`, h).Wait(); a.Status != http.StatusBadRequest {
		t.Errorf("a response: %d %s", a.Status, a.Body)
	}
	if a := c.Notify("notifications/zzz", ""); a.Status != http.StatusAccepted || len(a.Body) > 0 {
		t.Errorf("a notification: %d %s", a.Status, a.Body)
	}
}

// TestModernResults looks at what every result has.
func TestModernResults(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := modern(t, m)
	for _, a := range []client.Answer{c.Must("server/discover", ""), c.Must("tools/list", ""), c.Tool("up__a", "{}")} {
		if got := string(client.Member(a.Result, "resultType")); got != `"complete"` {
			t.Errorf("resultType = %s in %.300s", got, a.Result)
		}
		if got := string(client.Member(a.Result, "_meta", "io.modelcontextprotocol/serverInfo", "name")); got != `"Mainstem"` {
			t.Errorf("serverInfo.name = %s in %.300s", got, a.Result)
		}
	}
	discovered := c.Must("server/discover", "").Result
	var versions []string
	_ = json.Unmarshal(client.Member(discovered, "supportedVersions"), &versions)
	if len(versions) != 5 || versions[0] != client.Modern {
		t.Errorf("supportedVersions = %v", versions)
	}
	for _, result := range []json.RawMessage{discovered, c.Must("tools/list", "").Result} {
		var hints struct {
			TTL   *int   `json:"ttlMs"`
			Scope string `json:"cacheScope"`
		}
		if json.Unmarshal(result, &hints) != nil || hints.TTL == nil || *hints.TTL < 0 || hints.Scope != "public" && hints.Scope != "private" {
			t.Errorf("hints %+v in %.300s", hints, result)
		}
	}
	// A client with a handshake gets none of this.
	if got := legacy(t, m).Tool("up__a", "{}").Result; client.Member(got, "resultType") != nil || client.Member(got, "_meta") != nil {
		t.Errorf("legacy: %s", got)
	}
}

// TestResultTypes has a server of 2026-07-28 that answers with each kind of result.
func TestResultTypes(t *testing.T) {
	t.Parallel()
	ask := `{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?"}}},"requestState":"opaque \u00e9"}`
	_, m := behind(t, fake.Options{Modern: true, NoHandshake: true, Tools: fake.Tools("ask", "odd"), Calls: map[string]fake.Handler{
		"ask": func(c *fake.Call) { c.RawResult(ask) },
		"odd": func(c *fake.Call) { c.RawResult(`{"resultType":"zzz","content":[]}`) },
	}})
	c := modern(t, m)
	same(t, "input_required", plain(c.Tool("up__ask", "{}").Result), string(plain(json.RawMessage(ask))))
	if a := c.Tool("up__odd", "{}"); a.Result != nil && !a.IsError() || !strings.Contains(a.Text()+a.ErrorText(), "up") {
		t.Errorf("an unknown kind: got %s%s", a.Result, a.Error)
	}
}

// TestInvalidCursor has a cursor that we never gave.
func TestInvalidCursor(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	for _, c := range []*client.HTTP{legacy(t, m), modern(t, m)} {
		if a := c.Call("tools/list", `{"cursor":"garbage"}`); a.Code() != -32602 {
			t.Errorf("%s: got %s%s", c.Version, a.Result, a.Error)
		}
	}
}

// TestMetaPasses has members of _meta that are nobody's here.
func TestMetaPasses(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	meta := `"_meta":{"com.example/k":{"n":9007199254740993},"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`
	for _, c := range []*client.HTTP{legacy(t, m), modern(t, m)} {
		c.Call("tools/call", `{"name":"up__a","arguments":{},`+meta+`,"vendor":[1.50]}`)
	}
	for _, r := range s.Calls("a") {
		same(t, "_meta", r.Param("_meta", "com.example/k"), `{"n":9007199254740993}`)
		same(t, "an unknown member", r.Param("vendor"), `[1.50]`)
		if got := string(r.Param("_meta", "traceparent")); !strings.Contains(got, "0af7651916cd43dd8448eb211c80319c") {
			t.Errorf("traceparent = %s", got)
		}
		if r.Param("_meta", "io.modelcontextprotocol/protocolVersion") != nil {
			t.Errorf("the envelope of 2026-07-28 went to a server with a handshake: %s", r.Params)
		}
	}
}
