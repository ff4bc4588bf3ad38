package session_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// L8, L9, C214: what a request says about itself, and what keeps it from being served.
func TestDeclare(t *testing.T) {
	const version, capabilities = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{"roots":{}}`
	for _, c := range []struct {
		name, params string
		want         int // code of the error; 0: none
	}{
		{"all", `{"_meta":{` + version + `,` + capabilities + `}}`, 0},
		{"no params", ``, protocol.CodeInvalidParams},
		{"params a list", `[1]`, protocol.CodeInvalidParams},
		{"_meta null", `{"_meta":null}`, protocol.CodeInvalidParams},
		{"no capabilities", `{"_meta":{` + version + `}}`, protocol.CodeInvalidParams},
		{"capabilities null", `{"_meta":{` + version + `,"io.modelcontextprotocol/clientCapabilities":null}}`, protocol.CodeInvalidParams},
		{"no version", `{"_meta":{` + capabilities + `}}`, protocol.CodeInvalidParams},
		{"a version before", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25",` + capabilities + `}}`, protocol.CodeUnsupportedVersion},
		{"an unknown version", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01",` + capabilities + `}}`, protocol.CodeUnsupportedVersion},
		{"version twice", `{"_meta":{` + version + `,` + version + `}}`, protocol.CodeInvalidParams},
		{"another spelling", `{"_Meta":{}}`, protocol.CodeInvalidParams},
		{"escaped", `{"\u005fmeta":{` + version + `,` + capabilities + `}}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			said, err := session.Declare(json.RawMessage(c.params))
			if err == nil {
				err = said.Check()
			}
			var e *jsonrpc.Error
			if got := errors.As(err, &e); got != (c.want != 0) || got && e.Code != c.want {
				t.Fatalf("got %v, want code %d", err, c.want)
			}
			if err != nil {
				return
			}
			s := said.Session(anonymous, "files")
			if s.Version() != "2026-07-28" || string(s.Capabilities()) != `{"roots":{}}` || s.Endpoint() != "files" || s.ID() != "" || !s.IsInitialized() {
				t.Errorf("version %s, capabilities %s", s.Version(), s.Capabilities())
			}
			s.Close()
		})
	}
}
