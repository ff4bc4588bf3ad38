package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/dial"
	"github.com/mainstem-mcp/mainstem/observe"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/admin"
	"github.com/mainstem-mcp/mainstem/proxy/console"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/upstream"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

func open(t *testing.T, yaml string) *httptest.Server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mainstem.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load([]string{path}, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	set := upstream.NewSet(t.Context(), cfg, upstream.Options{Log: zerolog.Nop(), Transport: transport.Options{Policy: dial.New(nil)}})
	t.Cleanup(set.Close)
	p := proxy.New(cfg, set, proxy.Options{Log: zerolog.Nop(), Observe: observe.New(zerolog.Nop(), observe.Build{})})
	s := httptest.NewServer(console.New(admin.New(cfg, p, set), console.Options{MaxBody: 1000}))
	t.Cleanup(s.Close)
	return s
}

type reply struct {
	status int
	header http.Header
	body   string
}

func ask(t *testing.T, method, url, body string, fields ...string) reply {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	var text strings.Builder
	if err := w.Write(&text); err != nil {
		t.Fatal(err)
	}
	_, content, _ := strings.Cut(text.String(), "\r\n\r\n")
	return reply{w.StatusCode, w.Header, content}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("echo", "a/b", "..", "error"), Calls: map[string]fake.Handler{
		"error": func(c *fake.Call) { c.Error(-32050, "theirs", "") },
	}})
	web := open(t, fmt.Sprintf("mcpServers: {up: {url: %s}, down: {url: 'http://127.0.0.1:1/mcp'}}", s.URL))
	for _, test := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "servers/up/check", "", 200, `"ok": true`},
		{"POST", "servers/up/check", "", 200, `"checks": [`},
		{"POST", "servers/down/check", "", 200, `"ok": false`},
		{"GET", "servers", "", 200, `"servers": [`},
		{"GET", "servers/up", "", 200, `"tools": 4`},
		{"GET", "servers/up/tools", "", 200, `"public_name": "up__a_b"`},
		{"POST", "servers/up/tools/echo/call", `{"x":1.50}`, 200, `1.50`},
		{"POST", "servers/up/tools/echo/call", ``, 200, `{}`},
		{"POST", "servers/up/tools/a%2Fb/call", `{}`, 200, `{}`},
		{"POST", "servers/up/tools/%2E%2E/call", `{}`, 200, `{}`},
		{"POST", "servers/up/tools/error/call", `{}`, 422, `"code": -32050`},
		{"POST", "servers/up/tools/echo/call", `[]`, 400, `"kind": "usage"`},
		{"POST", "servers/up/tools/echo/call", `{"x":"` + strings.Repeat("y", 1000) + `"}`, 413, `max_request_bytes`},
		{"POST", "servers/up/tools/nope/call", `{}`, 404, `"kind": "unknown"`},
		{"POST", "servers/nobody/tools/echo/call", `{}`, 404, `"server": "nobody"`},
		{"POST", "servers/down/tools/echo/call", `{}`, 502, `"kind": "unreachable"`},
		{"POST", "servers/nobody/check", "", 404, `"kind": "unknown"`},
		{"GET", "servers/nobody", "", 404, `"kind": "unknown"`},
		{"GET", "servers/nobody/tools", "", 404, `"kind": "unknown"`},
		{"GET", "catalog", "", 200, "### up__echo"},
		{"GET", "catalog?format=xml", "", 200, "<mcp_up_echo>"},
		{"GET", "catalog?format=json", "", 200, `"name": "up__echo"`},
		{"GET", "catalog?format=latex", "", 400, `"kind": "usage"`},
		{"GET", "catalog?view=nope", "", 404, `"kind": "unknown"`},
		{"GET", "nope", "", 404, `"kind": "unknown"`},
		{"DELETE", "servers/up", "", 405, `"kind": "usage"`},
		{"GET", "servers/up/tools/echo/call", "", 405, `"kind": "usage"`},
	} {
		got := ask(t, test.method, web.URL+console.Prefix+test.path, test.body)
		if got.status != test.status || !strings.Contains(got.body, test.want) {
			t.Errorf("%s %s %.40s: %d %s, want %d with %s", test.method, test.path, test.body, got.status, got.body, test.status, test.want)
		}
		if test.status < 400 {
			continue
		}
		var problem struct {
			Type, Title, Detail string
			Status              int
			Error               struct{ Kind, Message string }
		}
		if err := json.Unmarshal([]byte(got.body), &problem); err != nil || got.header.Get("Content-Type") != "application/problem+json" ||
			problem.Status != test.status || problem.Title == "" || problem.Detail == "" || problem.Error.Message == "" {
			t.Errorf("%s %s: no problem document: %v: %s", test.method, test.path, err, got.body)
		}
		if test.status == 405 && got.header.Get("Allow") == "" {
			t.Errorf("%s %s: 405 without Allow", test.method, test.path)
		}
	}
}

func TestETag(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	web := open(t, fmt.Sprintf("mcpServers: {up: {url: %s}}", s.URL))
	url := web.URL + console.Prefix
	ask(t, "POST", url+"servers/up/check", "")
	etag := ask(t, "GET", url+"catalog", "").header.Get("ETag")
	for _, test := range []struct {
		field  string
		status int
	}{
		{etag, 304}, {"*", 304}, {`"x", W/` + etag, 304}, {`"x"`, 200}, {"", 200},
	} {
		got := ask(t, "GET", url+"catalog", "", "If-None-Match", test.field)
		if got.status != test.status || got.header.Get("ETag") != etag || (got.status == 304 && got.body != "") {
			t.Errorf("If-None-Match %s: %+v, want %d", test.field, got, test.status)
		}
	}
	if other := ask(t, "GET", url+"catalog?format=json", "").header.Get("ETag"); other == etag {
		t.Error("two formats with one ETag")
	}
	if head := ask(t, "HEAD", url+"catalog", ""); head.status != 200 || head.body != "" || head.header.Get("ETag") != etag {
		t.Errorf("HEAD: %+v", head)
	}
	s.SetTools(fake.Tools("b")...)
	ask(t, "POST", url+"servers/up/check", "")
	if got := ask(t, "GET", url+"catalog", "", "If-None-Match", etag); got.status != 200 {
		t.Errorf("after a change: %d", got.status)
	}
}
