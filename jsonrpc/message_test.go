package jsonrpc_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		code     int // 0: fine
		id       string
		method   string
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 0, "1", "ping"},
		{"id is a text", `{"jsonrpc":"2.0","id":"1","method":"ping"}`, 0, `"1"`, "ping"},
		{"big id", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, 0, "9007199254740993", "ping"},
		{"notification", `{"jsonrpc":"2.0","method":"n/x","params":[1]}`, 0, "", "n/x"},
		{"escaped method", `{"jsonrpc":"2.0","id":1,"m\u0065thod":"p\u0069ng"}`, 0, "1", "ping"},
		{"byte-order mark", "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 0, "1", "ping"},
		{"answer", `{"jsonrpc":"2.0","id":1,"result":{}}`, 0, "1", ""},
		{"error without id", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`, 0, "", ""},
		{"no JSON", `not json`, jsonrpc.CodeParse, "", ""},
		{"cut", `{"jsonrpc":"2.0","id":1,"method":"pi`, jsonrpc.CodeParse, "", ""},
		{"empty", ``, jsonrpc.CodeParse, "", ""},
		{"two", `{"jsonrpc":"2.0","id":1,"method":"ping"}{}`, jsonrpc.CodeParse, "", ""},
		{"line end in a string", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\nng\"}", jsonrpc.CodeParse, "", ""},
		{"no version", `{"id":1,"method":"ping"}`, jsonrpc.CodeInvalidRequest, "1", ""},
		{"batch", ` [{"jsonrpc":"2.0","id":1,"method":"ping"}]`, jsonrpc.CodeInvalidRequest, "", ""},
		{"number", `7`, jsonrpc.CodeInvalidRequest, "", ""},
		{"empty object", `{}`, jsonrpc.CodeInvalidRequest, "", ""},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, jsonrpc.CodeInvalidRequest, "", ""},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, jsonrpc.CodeInvalidRequest, "", ""},
		{"method is a number", `{"jsonrpc":"2.0","id":1,"method":7}`, jsonrpc.CodeInvalidRequest, "1", ""},
		{"two methods", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}`, jsonrpc.CodeInvalidRequest, "1", ""},
		{"method in another case", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"x"}`, jsonrpc.CodeInvalidRequest, "1", ""},
		{"params in another case", `{"jsonrpc":"2.0","id":1,"method":"ping","PARAMS":{}}`, jsonrpc.CodeInvalidRequest, "1", ""},
		{"method and result", `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, jsonrpc.CodeInvalidRequest, "1", ""},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, jsonrpc.CodeInvalidRequest, "1", ""},
	} {
		m, err := jsonrpc.Parse([]byte(tt.in))
		var e *jsonrpc.Error
		code := 0
		if errors.As(err, &e) {
			code = e.Code
		}
		if code != tt.code || string(m.ID) != tt.id || m.Method != tt.method {
			t.Errorf("%s: %s gave id %s, method %q, %v; want %s, %q, %d", tt.name, tt.in, m.ID, m.Method, err, tt.id, tt.method, tt.code)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := jsonrpc.Parse(b)
		if err != nil {
			return
		}
		var want struct {
			ID             any
			Method         string
			Params, Result json.RawMessage
		}
		if err := json.Unmarshal(b, &want); err != nil && len(b) > 2 && b[0] != 0xef {
			t.Fatalf("Parse took %q: %v", b, err)
		}
		if m.Method != want.Method && b[0] != 0xef {
			t.Fatalf("method of %q: %q, want %q", b, m.Method, want.Method)
		}
		if kinds := btoi(m.IsRequest()) + btoi(m.IsNotification()) + btoi(m.IsReply()); kinds != 1 {
			t.Fatalf("%q is %d kinds of message", b, kinds)
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestParams(t *testing.T) {
	raw := `{ "name" : "a__b", "arguments":{"x":1}, "_meta": {"k": 1, "progressToken":"p"} }`
	p := jsonrpc.NewParams(json.RawMessage(raw))
	for m := range jsonrpc.Members([]byte(raw)) {
		if m.Is("name") {
			p.Replace(m.At, m.End(), []byte(`"b"`))
		}
	}
	p.SetMeta("progressToken", json.RawMessage("7"))
	copied := p
	p.SetMeta("z", json.RawMessage("true"))
	want := `{ "name" : "b", "arguments":{"x":1}, "_meta": {"k": 1,"progressToken":7,"z":true} }`
	want = want[:len(want)-2] + " }"
	if got := string(p.Append(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if string(copied.Meta("progressToken")) != "7" || copied.Meta("z") != nil || string(copied.Meta("k")) != "1" {
		t.Errorf("a copy has %s", copied.Append(nil))
	}
}

func TestParamsAdd(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{"none", ``, `{"arguments":{},"_meta":{"a":1}}`},
		{"null", `null`, `{"arguments":{},"_meta":{"a":1}}`},
		{"empty", `{ }`, `{ "arguments":{},"_meta":{"a":1}}`},
		{"some", `{"x":1}`, `{"x":1,"arguments":{},"_meta":{"a":1}}`},
		{"with _meta", `{"_meta":{"b":2}}`, `{"_meta":{"b":2,"a":1},"arguments":{}}`},
		{"removed", `{"_meta":{"gone":2}}`, `{"_meta":{"a":1},"arguments":{}}`},
	} {
		p := jsonrpc.NewParams(json.RawMessage(tt.raw))
		p.Add("arguments", []byte("{}"))
		p.SetMeta("a", json.RawMessage("1"))
		p.SetMeta("gone", nil)
		if got := string(p.Append(nil)); got != tt.want {
			t.Errorf("%s: %s became %s, want %s", tt.name, tt.raw, got, tt.want)
		}
	}
	var none jsonrpc.Params
	if got := none.Append(nil); len(got) != 0 {
		t.Errorf("no params became %s", got)
	}
}

func FuzzParams(f *testing.F) {
	f.Add([]byte(`{"_meta":{"a":1},"b":2}`), "k")
	f.Fuzz(func(t *testing.T, raw []byte, key string) {
		if jsonrpc.Check(raw) != nil || !jsonrpc.IsObject(raw) {
			return
		}
		p := jsonrpc.NewParams(raw)
		p.SetMeta(key, json.RawMessage("1"))
		p.Add("added", []byte("2"))
		out := p.Append(nil)
		if err := jsonrpc.Check(out); err != nil {
			t.Fatalf("%s became %s: %v", raw, out, err)
		}
		name, _ := jsonrpc.Unquote(jsonrpc.AppendQuote(nil, key))
		if got := jsonrpc.Get(jsonrpc.Get(out, "_meta"), name); string(got) != "1" && name == key {
			t.Fatalf("%s became %s, without %q", raw, out, key)
		}
	})
}

func TestStringAt(t *testing.T) {
	for name, in := range map[string]string{
		"the longest": `{"jsonrpc":"2.0","id":1,"result":{"k":"a \"long\" text"}}`,
		"another":     `{"jsonrpc":"2.0","id":1,"result":{"k":"short","other":"a much longer text than that"}}`,
		"equally":     `{"jsonrpc":"2.0","id":1,"result":{"k":"12345","kkkkk":1}}`,
	} {
		m, err := jsonrpc.Parse([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		want := jsonrpc.Get(m.Result, "k")
		if got := jsonrpc.NewReply(m, nil).StringAt(len(`{"k":`)); string(got) != string(want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
