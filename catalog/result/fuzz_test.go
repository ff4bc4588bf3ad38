package result_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/mainstem-mcp/mainstem/catalog/result"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
)

// What clients demand of every result must hold whatever a server sends, and what has
// been normalized once is not changed again.
func FuzzNormalize(f *testing.F) {
	b, err := os.ReadFile("testdata/output.json")
	if err != nil {
		f.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(b, &file); err != nil {
		f.Fatal(err)
	}
	for i, v := range file.Vectors {
		f.Add([]byte(v.Input), uint8(i))
	}
	f.Add([]byte(`{"content":["\ud83d","\ude00",["\ud800\""],{"type":"resource","resource":{"uri":"","blob":""}}],"content":{},"isError":"true"}`), uint8(7))
	f.Fuzz(func(t *testing.T, input []byte, choice uint8) {
		if jsonrpc.Check(input) != nil {
			return
		}
		r := result.Rule{Server: "s", Mode: result.Mode(choice % 3), ShowsOutput: choice&8 != 0}
		client := protocol.Supported()[choice>>4%5]
		before := bytes.Clone(input)
		got, _, err := r.Normalize(nil, jsonrpc.Reply{Result: input}, client, serverInfo)
		if err != nil {
			return
		}
		if !bytes.Equal(input, before) {
			t.Fatalf("Normalize(%s) has changed its input to %s", before, input)
		}
		if jsonrpc.Check(got) != nil || !json.Valid(got) {
			t.Fatalf("Normalize(%s) = %s: not valid", input, got)
		}
		again, _, err := r.Normalize(nil, jsonrpc.Reply{Result: got}, client, serverInfo)
		if r.ShowsOutput && string(jsonrpc.Get(got, "isError")) == "true" {
			again = got // the text that says why may be joined with what follows it
		}
		if err != nil || string(again) != string(got) {
			t.Fatalf("Normalize(%s) = %s, and again %s, %v", input, got, again, err)
		}
		if kind := jsonrpc.Get(got, "resultType"); r.Mode != result.Passthrough && (kind == nil || string(kind) == `"complete"`) {
			checkResult(t, r, client, input, got)
		}
	})
}

func checkResult(t *testing.T, r result.Rule, client string, input, got []byte) {
	t.Helper()
	content := jsonrpc.Get(got, "content")
	n := 0
	for block := range jsonrpc.Elements(content) {
		n++
		if !accepted(block) {
			t.Errorf("Normalize(%s) = %s: no client takes %s", input, got, block)
		}
	}
	if !jsonrpc.IsArray(content) || r.Mode == result.Text && n != 1 {
		t.Errorf("Normalize(%s) = %s: content", input, got)
	}
	data, flag, meta := jsonrpc.Get(got, "structuredContent"), jsonrpc.Get(got, "isError"), jsonrpc.Get(got, "_meta")
	switch {
	case flag != nil && string(flag) != "true" && string(flag) != "false":
		t.Errorf("Normalize(%s) = %s: isError", input, got)
	case meta != nil && !jsonrpc.IsObject(meta):
		t.Errorf("Normalize(%s) = %s: _meta", input, got)
	case data != nil && (r.Mode == result.Text || client != protocol.V20260728 && !jsonrpc.IsObject(data)):
		t.Errorf("Normalize(%s) = %s: structuredContent", input, got)
	case data == nil && r.Mode == result.Mixed && r.ShowsOutput && string(flag) != "true":
		t.Errorf("Normalize(%s) = %s: no structuredContent", input, got)
	}
	// Whatever was data stays data, digit by digit.
	if sent := last(input, "structuredContent"); r.Mode == result.Mixed && jsonrpc.IsObject(sent) && !bytes.Equal(sent, data) {
		t.Errorf("Normalize(%s) = %s: structuredContent differs", input, got)
	}
}

// last returns the value of the last member of that name.
func last(object []byte, name string) (value json.RawMessage) {
	for m := range jsonrpc.Members(object) {
		if m.Is(name) {
			value = m.Value
		}
	}
	return value
}

// accepted reports whether strict clients take a block.
func accepted(block json.RawMessage) bool {
	has := func(object json.RawMessage, name string) bool { return jsonrpc.IsString(last(object, name)) }
	kind, _ := jsonrpc.Unquote(last(block, "type"))
	switch kind {
	case "text":
		return has(block, "text")
	case "image", "audio":
		return has(block, "data") && has(block, "mimeType")
	case "resource_link":
		return has(block, "uri") && has(block, "name")
	case "resource":
		inner := last(block, "resource")
		return has(inner, "uri") && (has(inner, "text") || has(inner, "blob"))
	}
	return false
}
