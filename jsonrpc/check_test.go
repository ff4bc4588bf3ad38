package jsonrpc_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

var seeds = []string{
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,2.5e-3,"\u00e9\ud83d\ude00"]}}}`,
	`{"jsonrpc":"2.0","id":"1","result":{}}`, ` [ {} , [] , null , true , -0.0E+1 ] `, `"\ud800"`, `{"a":1,"A":2,"a":3}`,
	"\"a\nb\"", "{\"a\"\n:\r\t1}", `{"a":1,}`, `[1,]`, `01`, `1.`, `-`, `"\x"`, "\"\xff\"", `{"a" 1}`, `nul`, `{}{}`, `"0123456789abcdef\"012345"`,
	"\"0123456\x1f9\"", `"日本語テキスト"`, `{"` + strings.Repeat("k", 70) + `":[[[[{}]]]]}`,
}

func TestCheckLimitsDepth(t *testing.T) {
	for _, tt := range []struct {
		levels int
		ok     bool
	}{{jsonrpc.MaxDepth, true}, {jsonrpc.MaxDepth + 1, false}} {
		deep := strings.Repeat("[", tt.levels) + "1" + strings.Repeat("]", tt.levels)
		if err := jsonrpc.Check([]byte(deep)); (err == nil) != tt.ok {
			t.Errorf("Check of %d levels: %v, want ok %v", tt.levels, err, tt.ok)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := jsonrpc.Check(b)
		if want := json.Valid(b) && utf8.Valid(b); (err == nil) != want {
			t.Fatalf("Check(%q) = %v, want valid %v", b, err, want)
		}
		if err != nil {
			return
		}
		walk(t, b, 0)
		sameValue(t, b, jsonrpc.Compact(nil, b))
		sameValue(t, b, jsonrpc.Pretty(nil, b))
		line := bytes.Clone(b)
		jsonrpc.Unline(line)
		if bytes.ContainsAny(line, "\r\n") {
			t.Fatalf("Unline(%q) = %q", b, line)
		}
		sameValue(t, b, line)
	})
}

// walk compares what the scanner yields with encoding/json, level by level.
func walk(t *testing.T, b []byte, depth int) {
	if depth > 20 {
		return
	}
	if end := jsonrpc.Skip(bytes.TrimLeft(b, " \r\n\t"), 0); !json.Valid(bytes.TrimLeft(b, " \r\n\t")[:end]) {
		t.Fatalf("Skip(%q) = %d", b, end)
	}
	var elements []json.RawMessage
	if jsonrpc.IsArray(b) {
		if err := json.Unmarshal(b, &elements); err != nil {
			t.Fatal(err)
		}
		n := 0
		for e := range jsonrpc.Elements(b) {
			if string(e) != string(elements[n]) {
				t.Fatalf("element %d of %q: %q, want %q", n, b, e, elements[n])
			}
			walk(t, e, depth+1)
			n++
		}
		if n != len(elements) {
			t.Fatalf("%q: %d elements, want %d", b, n, len(elements))
		}
	}
	last := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &last); err != nil {
		return
	}
	seen := map[string]json.RawMessage{}
	for m := range jsonrpc.Members(b) {
		if string(b[m.At:m.End()]) != string(m.Value) || b[m.KeyAt] != '"' || !m.Is(m.Name()) {
			t.Fatalf("member %q of %q is not where it says", m.Key, b)
		}
		seen[m.Name()] = m.Value
		walk(t, m.Value, depth+1)
	}
	for name, want := range last {
		if string(seen[name]) != string(want) {
			t.Fatalf("member %q of %q: %q, want %q", name, b, seen[name], want)
		}
	}
}

func sameValue(t *testing.T, a, b []byte) {
	t.Helper()
	if err := jsonrpc.Check(b); err != nil {
		t.Fatalf("%q became %q: %v", a, b, err)
	}
	if string(canonical(a)) != string(canonical(b)) {
		t.Fatalf("%q became %q", a, b)
	}
}

// canonical decodes with numbers as written and encodes again.
func canonical(b []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil
	}
	out, _ := json.Marshal(v)
	return out
}

func FuzzUnquote(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Add([]byte(`"\ud83d\ude00\ud800\u0000\/"`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if jsonrpc.Check(b) != nil {
			return
		}
		got, ok := jsonrpc.Unquote(b)
		var want string
		if err := json.Unmarshal(b, &want); (err == nil && !jsonrpc.IsNull(b)) != ok || ok && got != want {
			t.Fatalf("Unquote(%q) = %q, %v; want %q, %v", b, got, ok, want, err)
		}
		if !ok {
			return
		}
		if back, _ := jsonrpc.Unquote(jsonrpc.AppendQuote(nil, got)); back != got {
			t.Fatalf("%q came back as %q", got, back)
		}
	})
}

func TestCompactKeepsWhatHasNoOtherSpelling(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"needless escapes", `{ "a" : "\u00e9\/\u003c" }`, `{"a":"é/<"}`},
		{"needed escapes", `"\u000a\u0001\"\\"`, `"\n\u0001\"\\"`},
		{"a lone surrogate", `"\uD800x"`, `"\ud800x"`},
		{"a pair", `"\uD83D\uDE00"`, `"😀"`},
		{"numbers", `[ 1.0, 1e5, 9007199254740993 ]`, `[1.0,1e5,9007199254740993]`},
	} {
		if got := string(jsonrpc.Compact(nil, []byte(tt.in))); got != tt.want {
			t.Errorf("%s: %s became %s, want %s", tt.name, tt.in, got, tt.want)
		}
	}
}

func TestPretty(t *testing.T) {
	got := string(jsonrpc.Pretty(nil, []byte(`{"a":[1, {}],"b":{ },"c":{"d":[ ]}}`)))
	want := "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {},\n  \"c\": {\n    \"d\": []\n  }\n}"
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestPick(t *testing.T) {
	names := []string{"name", "_meta"}
	for _, tt := range []struct {
		name, obj string
		want      string // value of name; "error" if refused
	}{
		{"plain", `{"name":"a"}`, `"a"`},
		{"absent", `{"x":1}`, ``},
		{"escaped", `{"na\u006de":"a"}`, `"a"`},
		{"twice", `{"name":"a","name":"b"}`, "error"},
		{"twice, once escaped", `{"name":"a","na\u006de":"b"}`, "error"},
		{"other case", `{"name":"a","Name":"b"}`, "error"},
		{"other case alone", `{"NAME":"b"}`, "error"},
		{"other case of another", `{"name":"a","_META":{}}`, "error"},
		{"nested twins are others", `{"name":"a","arguments":{"Name":1,"name":2}}`, `"a"`},
	} {
		out := make([]jsonrpc.Member, 2)
		err := jsonrpc.Pick([]byte(tt.obj), names, out)
		if got := string(out[0].Value); (err != nil) != (tt.want == "error") || err == nil && got != tt.want {
			t.Errorf("%s: %s gave %s, %v; want %s", tt.name, tt.obj, got, err, tt.want)
		}
	}
	if err := jsonrpc.Pick([]byte(`{"to\u212aen":1}`), []string{"token"}, make([]jsonrpc.Member, 1)); err == nil {
		t.Error("a Kelvin sign folds to k, yet was let through")
	}
}

func BenchmarkCheck(b *testing.B) {
	small := []byte(seeds[0])
	large := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("lorem ipsum ", 64<<10/12) + `"}]}}`)
	escaped := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat(`The quick \"brown\" fox\tjumps over the lazy dog; café \u003cb\u003e\u0026amp;\u003c/b\u003e 0123456789.\n`, 64<<10/78) + `"}]}}`)
	mixed := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat(`a line of \"text\" with é and 日本,\n`, 64<<10/44) + `"}]}}`)
	for _, bb := range []struct {
		name string
		in   []byte
	}{{"small", small}, {"64KiB", large}, {"64KiB of mixed text", mixed}, {"64KiB with escapes", escaped}} {
		b.Run("Parse/"+bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.in)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = jsonrpc.Parse(bb.in)
			}
		})
	}
}
