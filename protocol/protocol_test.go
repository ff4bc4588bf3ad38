package protocol_test

import (
	"encoding/json"
	"testing"

	"github.com/mainstem-mcp/mainstem/protocol"
)

func TestNegotiate(t *testing.T) {
	for requested, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2026-07-28": "2025-11-25", "1999-01-01": "2025-11-25", "": "2025-11-25",
	} {
		if got := protocol.Negotiate(requested); got != want {
			t.Errorf("Negotiate(%q) = %q, want %q", requested, got, want)
		}
	}
}

func TestSupportedVersionsHaveAnEra(t *testing.T) {
	for _, version := range protocol.Supported() {
		if _, ok := protocol.EraOf(version); !ok {
			t.Errorf("%s has no era", version)
		}
	}
	if _, ok := protocol.EraOf("2099-01-01"); ok {
		t.Error("2099-01-01 has an era")
	}
}

// The examples of the specification's table, and what must not be taken for encoded.
func TestHeaderCoding(t *testing.T) {
	for text, want := range map[string]string{
		"us-west1": "us-west1", "": "", "a b": "a b",
		"Hello, 世界": "=?base64?SGVsbG8sIOS4lueVjA==?=", " padded ": "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2": "=?base64?bGluZTEKbGluZTI=?=", "=?base64?x?=": "=?base64?PT9iYXNlNjQ/eD89?=",
	} {
		got := protocol.EncodeHeader(text)
		if got != want {
			t.Errorf("EncodeHeader(%q) = %q, want %q", text, got, want)
		}
		if back, err := protocol.DecodeHeader(got); err != nil || back != text {
			t.Errorf("DecodeHeader(%q) = %q, %v, want %q", got, back, err, text)
		}
	}
	if _, err := protocol.DecodeHeader("=?base64?*?="); err == nil {
		t.Error("malformed base64 was taken")
	}
}

func TestStatus(t *testing.T) {
	for code, want := range map[int]int{
		protocol.CodeParse: 400, protocol.CodeInvalidRequest: 400, protocol.CodeMethodNotFound: 404, protocol.CodeInvalidParams: 200,
		protocol.CodeHeaderMismatch: 400, protocol.CodeMissingCapability: 400, protocol.CodeUnsupportedVersion: 400, -1: 200,
	} {
		if got := protocol.Status(code); got != want {
			t.Errorf("Status(%d) = %d, want %d", code, got, want)
		}
	}
}

func TestMethodsKnowTheirEras(t *testing.T) {
	for name, want := range map[string][2]bool{
		protocol.CallTool: {true, true}, protocol.ListTools: {true, true}, protocol.Ping: {true, false}, protocol.Initialize: {true, false},
		protocol.SetLevel: {true, false}, protocol.Discover: {false, true}, protocol.Listen: {false, true}, "x/y": {false, false},
	} {
		m, _ := protocol.MethodOf(name)
		if got := [2]bool{m.Knows(protocol.Legacy), m.Knows(protocol.Modern)}; got != want {
			t.Errorf("%s: legacy, modern = %v, want %v", name, got, want)
		}
	}
}

func TestErrorObject(t *testing.T) {
	got := string(protocol.ErrorObject(-32602, "no \"x\"", json.RawMessage(`{"a":1}`)))
	if want := `{"code":-32602,"message":"no \"x\"","data":{"a":1}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add("=?base64?YQ==?=")
	f.Fuzz(func(t *testing.T, text string) {
		value := protocol.EncodeHeader(text)
		for i := range len(value) {
			if value[i] < 0x20 || value[i] > 0x7e {
				t.Fatalf("EncodeHeader(%q) = %q", text, value)
			}
		}
		if back, err := protocol.DecodeHeader(value); err != nil || back != text {
			t.Fatalf("%q came back as %q, %v", text, back, err)
		}
	})
}
