package result_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/catalog/result"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
)

func oneText(text string) json.RawMessage {
	quoted := string(jsonrpc.AppendQuote(nil, text))
	return json.RawMessage(`{"content":[{"type":"text","text":` + quoted + `}],"isError":false}`)
}

var (
	line  = strings.Repeat("a line of text with a \"quote\" in it\n", 2)
	small = oneText("hi")
	large = oneText(strings.Repeat(line, 64<<10/len(line)))
)

// What nearly every call is like must cost nothing.
func TestUsualResultsCostNoAllocation(t *testing.T) {
	for name, input := range map[string]json.RawMessage{"small": small, "64 KiB": large, "blank start": oneText("\n\n" + line)} {
		n := testing.AllocsPerRun(100, func() {
			if got, _, err := (result.Rule{Server: "s"}).Normalize(nil, jsonrpc.Reply{Result: input}, protocol.V20251125, serverInfo); err != nil || &got[0] != &input[0] {
				t.Fatalf("%s: changed, or %v", name, err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		dst := make([]byte, 0, 2*len(input)+1000)
		n = testing.AllocsPerRun(100, func() {
			if _, _, err := (result.Rule{Server: "s"}).Normalize(dst, jsonrpc.Reply{Result: input}, protocol.V20260728, serverInfo); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s for a client of 2026-07-28: %v allocations", name, n)
		}
	}
}

func BenchmarkNormalize(b *testing.B) {
	several := json.RawMessage(`{"content":[` + strings.Repeat(`{"type":"text","text":"some words of text"},`, 99) + `{"type":"text","text":"x"}]}`)
	data := json.RawMessage(`{"structuredContent":{"rows":[` + strings.Repeat(`{"id":9007199254740993,"name":"n","tags":["a","b"]},`, 99) + `{}]}}`)
	for _, c := range []struct {
		name    string
		mode    result.Mode
		version string
		input   json.RawMessage
	}{
		{"small/legacy", result.Mixed, protocol.V20251125, small},
		{"small/modern", result.Mixed, protocol.V20260728, small},
		{"small/text", result.Text, protocol.V20251125, small},
		{"64KiB/legacy", result.Mixed, protocol.V20251125, large},
		{"64KiB/modern", result.Mixed, protocol.V20260728, large},
		{"100 texts", result.Mixed, protocol.V20251125, several},
		{"data only", result.Mixed, protocol.V20251125, data},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.input)))
			dst := make([]byte, 0, 4*len(c.input))
			r := result.Rule{Server: "s", Mode: c.mode}
			for b.Loop() {
				if _, _, err := r.Normalize(dst, jsonrpc.Reply{Result: c.input}, c.version, serverInfo); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
