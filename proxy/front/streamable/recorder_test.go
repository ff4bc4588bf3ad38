package streamable_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/proxy/access"
	"github.com/mainstem-mcp/mainstem/proxy/front/streamable"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

var caller = access.Caller{}

func post(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", usual)
	return r
}

func record(s *site, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h, _ := s.handler.Endpoint("")
	h.ServeHTTP(w, r)
	return w
}

// Whatever comes, it is answered, with one of the statuses that there are for it.
func FuzzPost(f *testing.F) {
	f.Add(hello, "", "")
	f.Add(list, "2025-11-25", "")
	f.Add(request("1", "tools/call", `{"name":"a",`+meta+`}`), "2026-07-28", "a")
	f.Add(request("1", "tools/call", `{"na\u006de":"a","_meta":{"io.modelcontextprotocol/protocolVersion":1}}`), "2026-07-28", "=?base64?YQ==?=")
	f.Add(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, "", "")
	f.Add("[{}]", "x", "y")
	s := build(f, &fake{}, streamable.Options{MaxRequestBytes: 1 << 16}, session.TableOptions{MaxSessions: 10})
	one, err := s.table.Create(caller, "")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body, version, name string) {
		r := post(body)
		r.Header.Set("Mcp-Session-Id", one.ID())
		r.Header.Set("Mcp-Method", "tools/call")
		for header, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Name": name} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		w := record(s, r)
		switch w.Code {
		case 200, 202, 400, 404, 413:
		default:
			t.Errorf("status %d for %q", w.Code, body)
		}
		if (w.Body.Len() == 0) != (w.Code == 202) {
			t.Errorf("status %d with %d bytes", w.Code, w.Body.Len())
		}
	})
}
