package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

// TestAPICall has every outcome of a call over REST.
func TestAPICall(t *testing.T) {
	t.Parallel()
	result := `{"content":[{"type":"text","text":"no"}],"isError":true,"_meta":{"n":9007199254740993}}`
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("echo", "fails", "error", "drop", "huge", "hidden", "a/b c"), Calls: map[string]fake.Handler{
		"fails": answers(result),
		"error": func(c *fake.Call) { c.Error(-32050, "theirs", `{"k":[1.50]}`) },
		"drop":  func(c *fake.Call) { c.Drop() },
		"huge":  sized(2 << 20),
	}})
	silent := fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Calls: map[string]fake.Handler{"a": func(c *fake.Call) { <-c.Context().Done() }}})
	m := run.Start(t, run.Of(
		run.HTTP("up", s, fields{"max_response_bytes": 1 << 20, "disabled_tools": []string{"hidden"}}),
		run.HTTP("silent", silent, fields{"timeout": "1s"}),
		run.Server{Name: "down", Fields: fields{"url": "http://127.0.0.1:1/mcp"}},
	))
	cases := []struct {
		path, body string
		status     int
		kind       string // of the error
		want       []string
	}{
		{"up/tools/echo/call", `{"q":9007199254740993}`, 200, "", []string{`{\"q\":9007199254740993}`}},
		{"up/tools/echo/call", ``, 200, "", []string{`{}`}},
		{"up/tools/up__echo/call", ``, 404, "unknown", nil},
		{"up/tools/a%2Fb%20c/call", `{}`, 200, "", nil},
		{"up/tools/a_b_c/call", `{}`, 200, "", nil}, // the part of its tag
		{"up/tools/fails/call", `{}`, 200, "", []string{result}},
		{"up/tools/echo/call", `[1]`, 400, "usage", nil},
		{"up/tools/echo/call", `{"q":`, 400, "usage", nil},
		{"up/tools/nope/call", `{}`, 404, "unknown", nil},
		{"up/tools/hidden/call", `{}`, 404, "unknown", nil},
		{"nobody/tools/echo/call", `{}`, 404, "unknown", nil},
		{"up/tools/error/call", `{}`, 422, "", []string{"-32050", "theirs", `{"k":[1.50]}`}},
		{"up/tools/drop/call", `{}`, 502, "", []string{"unknown"}},
		{"up/tools/huge/call", `{}`, 502, "", []string{"1048576"}},
		{"down/tools/echo/call", `{}`, 502, "unreachable", []string{"down"}},
		{"silent/tools/a/call", `{}`, 504, "timeout", []string{"silent"}},
	}
	for _, c := range cases {
		w, err := http.Post(m.URL+"/api/v1/servers/"+c.path, "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		var body json.RawMessage
		if err := json.NewDecoder(w.Body).Decode(&body); err != nil {
			t.Errorf("%s %s: no JSON: %v", c.path, c.body, err)
		}
		w.Body.Close()
		if w.StatusCode != c.status {
			t.Errorf("%s %s: status %d, want %d: %s", c.path, c.body, w.StatusCode, c.status, body)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(client.Compact(body), want) {
				t.Errorf("%s: %s lacks %s", c.path, body, want)
			}
		}
		if c.status == 200 {
			continue
		}
		if got := w.Header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s: Content-Type %q", c.path, got)
		}
		if got := string(client.Member(body, "error", "kind")); got == "" || c.kind != "" && got != quote(c.kind) {
			t.Errorf("%s: kind %s, want %q: %s", c.path, got, c.kind, body)
		}
		if string(client.Member(body, "status")) != fmt.Sprint(c.status) || client.Member(body, "title") == nil {
			t.Errorf("%s: no problem of RFC 9457: %s", c.path, body)
		}
	}
	if n := len(s.Calls("hidden")); n > 0 {
		t.Errorf("the filtered tool was called %d times", n)
	}
}

func TestAPILists(t *testing.T) {
	t.Parallel()
	full := tool("b", `"title":"T","description":"d","inputSchema":{"$ref":"#/$defs/r","$defs":{"r":{"type":"object"}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}`)
	s := fake.HTTP(t, fake.Options{Tools: []string{full, fake.Tool("a")}})
	m := run.Start(t, run.Of(run.HTTP("up", s, fields{"description": "Ours", "disabled_tools": []string{"a"}})))
	legacy(t, m).Names()
	_, body := m.Get("/api/v1/servers/up/tools")
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(body, &list); err != nil || len(list.Tools) != 2 {
		t.Fatalf("tools: %v: %s", err, body)
	}
	off, on := list.Tools[0], list.Tools[1]
	if string(client.Member(off, "name")) != `"a"` || string(client.Member(off, "enabled")) != "false" || client.Member(off, "public_name") != nil || string(client.Member(off, "tokens")) != "0" {
		t.Errorf("a filtered tool: %s", off)
	}
	for member, want := range map[string]string{
		"name": `"b"`, "public_name": `"up__b"`, "title": `"T"`, "description": `"d"`, "inputSchema": `{"type":"object","properties":{}}`,
		"outputSchema": `{"type":"object"}`, "annotations": `{"readOnlyHint":true}`, "enabled": "true",
	} {
		if got := client.Member(on, member); got == nil || client.Compact(got) != want {
			t.Errorf("%s = %s, want %s", member, got, want)
		}
	}
	_, body = m.Get("/api/v1/servers/up")
	for member, want := range map[string]string{
		"name": `"up"`, "description": `"Ours"`, "status": `"healthy"`, "transport": `"streamable_http"`, "era": `"legacy"`, "protocol_version": `"2025-11-25"`, "tools": "1", "warnings": "[]",
	} {
		if got := string(client.Member(body, member)); got != want {
			t.Errorf("%s = %s, want %s", member, got, want)
		}
	}
	if _, err := time.Parse(time.RFC3339, strings.Trim(string(client.Member(body, "refreshed_at")), `"`)); err != nil {
		t.Errorf("refreshed_at: %v", err)
	}
	for _, path := range []string{"/api/v1/servers/nobody", "/api/v1/servers/nobody/tools"} {
		if code, _ := m.Get(path); code != 404 {
			t.Errorf("%s: status %d", path, code)
		}
	}
}

// TestCheckOfADeadServer is 200 all the same.
func TestCheckOfADeadServer(t *testing.T) {
	t.Parallel()
	m := run.Start(t, run.Of(run.Server{Name: "down", Fields: fields{"url": "http://127.0.0.1:1/mcp"}}))
	code, body := m.Post("/api/v1/servers/down/check", "")
	if got := oneCheck(t, body); code != 200 || got.OK || got.Error == nil || got.Server != "down" {
		t.Errorf("check: %d %s", code, body)
	}
	if code, _ := m.Post("/api/v1/servers/nobody/check", ""); code != 404 {
		t.Errorf("an unknown server: status %d", code)
	}
}

func TestTokenVectors(t *testing.T) {
	t.Parallel()
	type cost struct {
		ID     string
		Tool   json.RawMessage
		Public string
		Tokens int
	}
	var servers []run.Server
	byServer := map[string][]string{}
	all := vectors[cost](t, "tokens.json", "tools")
	for _, v := range all {
		server, _, _ := strings.Cut(v.Public, "__")
		byServer[server] = append(byServer[server], string(v.Tool))
	}
	for server, tools := range byServer {
		servers = append(servers, run.HTTP(server, fake.HTTP(t, fake.Options{Tools: tools})))
	}
	m := run.Start(t, run.Of(servers...))
	legacy(t, m).Names()
	sums := map[string]int{}
	for _, v := range all {
		server, _, _ := strings.Cut(v.Public, "__")
		sums[server] += v.Tokens
		var got int
		run.Eventually(t, "tokens of "+v.Public, func() bool {
			_, body := m.Get("/api/v1/servers/" + server + "/tools")
			got = tokensOf(t, body, v.Public)
			return got != 0
		})
		if got != v.Tokens {
			t.Errorf("%s: %s costs %d tokens, want %d", v.ID, v.Public, got, v.Tokens)
		}
	}
	for server, want := range sums {
		if got := m.Status(server).Tokens; got != want {
			t.Errorf("%s costs %d tokens, want %d", server, got, want)
		}
	}
}

func tokensOf(t *testing.T, body []byte, public string) int {
	t.Helper()
	var list struct {
		Tools []struct {
			PublicName string `json:"public_name"`
			Tokens     int
		}
	}
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, tool := range list.Tools {
		if tool.PublicName == public {
			return tool.Tokens
		}
	}
	t.Fatalf("no %s in %s", public, body)
	return 0
}

// TestCatalogTags has the tags of every vector in the catalog, and calls by their parts.
func TestCatalogTags(t *testing.T) {
	t.Parallel()
	type tags struct {
		ID      string
		Servers []struct {
			Name  string
			Tools []string
		}
		Expected []struct{ Server, Raw, Tag string }
	}
	for _, v := range vectors[tags](t, "behaviour.json", "openkbs_tags") {
		fakes := map[string]*fake.Server{}
		var servers []run.Server
		for _, s := range v.Servers {
			fakes[s.Name] = fake.HTTP(t, fake.Options{Tools: fake.Tools(s.Tools...)})
			servers = append(servers, run.HTTP(s.Name, fakes[s.Name]))
		}
		m := run.Start(t, run.Of(servers...))
		legacy(t, m).Names()
		code, catalog := m.Get("/api/v1/catalog?format=xml")
		last := 0
		for _, e := range v.Expected {
			at := strings.Index(string(catalog), "<"+e.Tag+">")
			if at < last || !strings.Contains(string(catalog), "</"+e.Tag+">") {
				t.Errorf("%s: %s is not in its place: %d %s", v.ID, e.Tag, code, catalog)
			}
			last = at
			server, part, _ := strings.Cut(strings.TrimPrefix(e.Tag, "mcp_"), "_")
			if fakes[server] != nil && server != e.Server {
				continue // the name of another server goes before the part of a tag
			}
			code, body := m.Post("/api/v1/servers/"+server+"/tools/"+part+"/call", `{}`)
			if code != 200 || len(fakes[e.Server].Calls(e.Raw)) == 0 {
				t.Errorf("%s: a call of %s %s: %d %s", v.ID, server, part, code, body)
			}
		}
	}
}

func TestCatalogETag(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	c := legacy(t, m)
	c.Names()
	get := func(etag string) *http.Response {
		r, _ := http.NewRequest(http.MethodGet, m.URL+"/api/v1/catalog", nil)
		r.Header.Set("If-None-Match", etag)
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		w.Body.Close()
		return w
	}
	etag := get("").Header.Get("ETag")
	if w := get(etag); etag == "" || w.StatusCode != http.StatusNotModified {
		t.Errorf("ETag %q: status %d", etag, w.StatusCode)
	}
	s.SetTools(fake.Tools("b")...)
	m.Post("/api/v1/servers/up/check", "")
	if w := get(etag); w.StatusCode != 200 || w.Header.Get("ETag") == etag {
		t.Errorf("after a change: status %d, ETag %q", w.StatusCode, w.Header.Get("ETag"))
	}
	for _, format := range []string{"markdown", "xml", "json"} {
		if code, body := m.Get("/api/v1/catalog?format=" + format); code != 200 || !strings.Contains(string(body), "b") {
			t.Errorf("%s: %d %s", format, code, body)
		}
	}
	if code, _ := m.Get("/api/v1/catalog?format=latex"); code != 400 {
		t.Errorf("an unknown format: status %d", code)
	}
}

// TestParamHeaders has a tool whose arguments are mirrored into headers, between modern and legacy on either side.
func TestParamHeaders(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"Count"},"on":{"type":"boolean","x-mcp-header":"On"},"q":{"type":"string"}}}`
	s, m := behind(t, fake.Options{Modern: true, NoHandshake: true, Tools: []string{withSchema("find", schema), withSchema("bad", `{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}`)}})
	c := modern(t, m)
	if got := c.Names(); !slices.Equal(got, []string{"up__find"}) {
		t.Errorf("names = %v", got)
	}
	if w := fmt.Sprint(m.Status("up").Warnings); !strings.Contains(w, "bad") {
		t.Errorf("no warning names the tool that was left out: %s", w)
	}
	arguments := `{"region":"é","n":42,"on":true,"q":"x"}`
	params := `"name":"up__find","arguments":` + arguments
	h := http.Header{"Mcp-Name": {"up__find"}, "Mcp-Param-Region": {"=?base64?w6k=?="}, "Mcp-Param-Count": {"42"}, "Mcp-Param-On": {"true"}}
	if a := (envelope{method: "tools/call", params: params, header: h}).send(c); a.Text() != arguments {
		t.Errorf("got %s%s", a.Result, a.Error)
	}
	if a := legacy(t, m).Tool("up__find", arguments); a.Text() != arguments {
		t.Errorf("legacy: got %s%s", a.Result, a.Error)
	}
	for _, r := range s.Calls("find") {
		if r.Header.Get("Mcp-Param-Region") != "=?base64?w6k=?=" || r.Header.Get("Mcp-Param-Count") != "42" || r.Header.Get("Mcp-Param-On") != "true" {
			t.Errorf("upstream headers %v", r.Header)
		}
	}
	wrong := http.Header{"Mcp-Name": {"up__find"}, "Mcp-Param-Region": {"x"}, "Mcp-Param-Count": {"42"}, "Mcp-Param-On": {"true"}}
	if a := (envelope{method: "tools/call", params: params, header: wrong}).send(c); a.Status != 400 || a.Code() != -32020 {
		t.Errorf("another header than the argument: %d %s", a.Status, a.Body)
	}
	legacy(t, m).Tool("up__find", `{"region":null,"q":"x"}`)
	calls := s.Calls("find")
	if last := calls[len(calls)-1]; last.Header.Values("Mcp-Param-Region") != nil || last.Header.Values("Mcp-Param-Count") != nil {
		t.Errorf("headers for arguments that are not there: %v", last.Header)
	}
}
