package result_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/catalog/result"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
)

var serverInfo = json.RawMessage(`{"name":"Mainstem","version":"1"}`)

// A vector is one row of testdata/output.json.
type vector struct {
	ID, Title string
	Input     json.RawMessage
	InputText string `json:"input_text"`
	Call      struct {
		Server      string
		ShowsOutput bool `json:"shows_output_schema"`
		Client      string
	}
	Expected map[string]json.RawMessage
}

func TestVectors(t *testing.T) {
	b, err := os.ReadFile("testdata/output.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for _, v := range file.Vectors {
		for mode, want := range v.Expected {
			t.Run(v.ID+" "+mode+" "+v.Title, func(t *testing.T) { v.check(t, mode, want) })
		}
	}
}

func (v vector) check(t *testing.T, mode string, want json.RawMessage) {
	input := v.Input
	if v.InputText != "" {
		input = json.RawMessage(v.InputText)
	}
	client := v.Call.Client
	if client == "" {
		client = protocol.V20251125
	}
	r := result.Rule{Server: v.Call.Server, Mode: result.ModeOf(mode), ShowsOutput: v.Call.ShowsOutput}
	got, _, err := r.Normalize(nil, jsonrpc.Reply{Result: input}, client, nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) == `"unchanged"` {
		if client != protocol.V20260728 && &got[0] != &input[0] {
			t.Errorf("Normalize(%s)\n got %s\nwant the same bytes", input, got)
		}
		want = input
	}
	if client == protocol.V20260728 && jsonrpc.Get(want, "resultType") == nil {
		want = append(want[:len(want)-1:len(want)-1], `,"resultType":"complete"}`...)
	}
	compare(t, input, got, want)
}

// compare holds a result against the wanted one; the order of its own members is free,
// and a wanted text that ends in … stands for every text that begins so.
func compare(t *testing.T, input, got, want []byte) {
	t.Helper()
	if err := jsonrpc.Check(got); err != nil {
		t.Fatalf("Normalize(%s)\n got %s: %v", input, got, err)
	}
	g, w := members(got), members(want)
	if len(g) != len(w) {
		t.Errorf("Normalize(%s)\n got %s\nwant %s", input, got, want)
	}
	for name, value := range w {
		start, end, open := strings.Cut(value, "…")
		if value != g[name] && !(open && strings.HasPrefix(g[name], start) && strings.HasSuffix(g[name], end)) {
			t.Errorf("Normalize(%s): %s\n got %s\nwant %s", input, name, g[name], value)
		}
	}
}

func members(object []byte) map[string]string {
	out := map[string]string{}
	for m := range jsonrpc.Members(object) {
		out[m.Name()] = string(jsonrpc.Compact(nil, m.Value))
	}
	return out
}

// A check is one result and what a client gets of it. An empty want is the same bytes.
type check struct {
	name        string
	mode        result.Mode
	shows       bool
	input, want string
}

func (c check) run(t *testing.T, client string) {
	t.Run(c.name, func(t *testing.T) {
		r := result.Rule{Server: "notes", Mode: c.mode, ShowsOutput: c.shows}
		got, _, err := r.Normalize(nil, jsonrpc.Reply{Result: json.RawMessage(c.input)}, client, serverInfo)
		if err != nil {
			t.Fatal(err)
		}
		if c.want == "" {
			if string(got) != c.input {
				t.Errorf("Normalize(%s)\n got %s\nwant the same bytes", c.input, got)
			}
			return
		}
		compare(t, []byte(c.input), got, []byte(c.want))
	})
}

func TestLegacyClients(t *testing.T) {
	for _, c := range []check{
		{"C54 a failure", result.Mixed, true, `{"content":[{"type":"text","text":"no"}],"isError":true}`, ``},
		{"C57 data of a tool with outputSchema", result.Mixed, true, `{"content":[{"type":"text","text":"1"}],"structuredContent":{"a":1}}`, ``},
		{"C59 content is null", result.Mixed, false, `{"content":null,"structuredContent":{"a":1}}`,
			`{"content":[{"type":"text","text":"{\n  \"a\": 1\n}"}],"structuredContent":{"a":1}}`},
		{"C62 a link and two resources", result.Mixed, false, `{"content":[{"type":"resource_link","uri":"a:b","name":"n","mimeType":"x/y","annotations":{"priority":1},"_meta":{"k":1}},{"type":"resource","resource":{"uri":"a:b","text":"t","_meta":{}}},{"type":"resource","resource":{"uri":"a:c","blob":"AA=="}}]}`, ``},
		{"C63 video and text", result.Mixed, false, `{"content":[{"type":"video","data":"AA=="},{"type":"text","text":"hi"}]}`,
			`{"content":[{"type":"text","text":"{\"type\":\"video\",\"data\":\"AA==\"}\nhi"}]}`},
		{"C65 _meta of result and blocks", result.Mixed, false, `{"_meta":{"a":1},"content":[{"type":"text","text":"a","_meta":{"b":[1.0]}}]}`, ``},
		{"C66 digits in joined JSON", result.Text, false, `{"content":[{"n":[9007199254740993,1.50,1E400]},{"type":"text","text":"x"}]}`,
			`{"content":[{"type":"text","text":"{\"n\":[9007199254740993,1.50,1E400]}\nx"}]}`},
		{"T22 a list where an object was promised", result.Mixed, true, `{"content":[{"type":"text","text":"two"}],"structuredContent":[1,2]}`,
			`{"content":[{"type":"text","text":"notes…"},{"type":"text","text":"two"}],"isError":true}`},
		{"promised, only data that is null", result.Mixed, true, `{"content":[],"structuredContent":null}`, `{"content":[{"type":"text","text":"notes…"}],"isError":true}`},
		{"promised, two texts that are one object", result.Mixed, true, `{"content":[{"type":"text","text":"{\"a\":"},{"type":"text","text":"1}\n"}]}`,
			`{"content":[{"type":"text","text":"{\"a\":\n1}\n"}],"structuredContent":{"a":1}}`},
		{"promised, an annotated text", result.Mixed, true, `{"content":[{"type":"text","text":"{}","annotations":{}}],"isError":false}`,
			`{"content":[{"type":"text","text":"{}","annotations":{}}],"isError":false,"structuredContent":{}}`},
		{"promised, object and image", result.Mixed, true, `{"content":[{"type":"text","text":"{}"},{"type":"image","data":"","mimeType":"a/b"}],"isError":false}`,
			`{"content":[{"type":"text","text":"notes…"},{"type":"text","text":"{}"},{"type":"image","data":"","mimeType":"a/b"}],"isError":true}`},
		{"promised, a text that is nearly an object", result.Mixed, true, `{"content":[{"type":"text","text":"{} x"}]}`,
			`{"content":[{"type":"text","text":"notes…"},{"type":"text","text":"{} x"}],"isError":true}`},
		{"promised, isError is a text", result.Mixed, true, `{"content":[{"type":"text","text":"a"}],"isError":"true"}`, `{"content":[{"type":"text","text":"a"}],"isError":true}`},
		{"isError of other kinds goes", result.Mixed, false, `{"content":[],"isError":1}`, `{"content":[]}`},
		{"isError null goes", result.Text, false, `{"content":[{"type":"text","text":"a"}],"isError":null}`, `{"content":[{"type":"text","text":"a"}]}`},
		{"_meta that is no object goes", result.Mixed, false, `{"_meta":[],"content":[]}`, `{"content":[]}`},
		{"content is a number", result.Mixed, false, `{"content":7}`, `{"content":[{"type":"text","text":"7"}]}`},
		{"bare strings in the list", result.Mixed, false, `{"content":["a\u0022",["b"],{"type":"text","text":"c"},true]}`,
			`{"content":[{"type":"text","text":"a\"\n[\"b\"]\nc\ntrue"}]}`},
		{"a foreign block that ends in a quote", result.Mixed, false, `{"content":[{"type":"x"},"a",["\""]]}`,
			`{"content":[{"type":"text","text":"{\"type\":\"x\"}\na\n[\"\\\"\"]"}]}`},
		{"a text without text", result.Mixed, false, `{"content":[{"type":"text"},{"type":"text","text":7}]}`,
			`{"content":[{"type":"text","text":"{\"type\":\"text\"}\n{\"type\":\"text\",\"text\":7}"}]}`},
		{"nothing between texts", result.Mixed, false, `{"content":[{"type":"text","text":"a"},null,{"text":"b","type":"text"}]}`, `{"content":[{"type":"text","text":"a\nb"}]}`},
		{"half an image", result.Mixed, false, `{"content":[{"type":"image","data":null,"mimeType":"a/b"}]}`,
			`{"content":[{"type":"text","text":"{\"type\":\"image\",\"data\":null,\"mimeType\":\"a/b\"}"}]}`},
		{"a resource that is no object", result.Mixed, false, `{"content":[{"type":"resource","resource":[]}]}`,
			`{"content":[{"type":"text","text":"{\"type\":\"resource\",\"resource\":[]}"}]}`},
		{"spelled with escapes", result.Mixed, false, `{"con\u0074ent":[{"\u0074ype":"te\u0078t","text":"a"}]}`, ``},
		{"blank with escapes, and data", result.Mixed, false, `{"content":[{"type":"text","text":"\u2003\n \t\u000b"}],"structuredContent":{}}`,
			`{"content":[{"type":"text","text":"{}"}],"structuredContent":{}}`},
		{"blank without data", result.Mixed, false, `{"content":[{"type":"text","text":" "}]}`, ``},
		{"blank without data as text", result.Text, false, `{"content":[{"type":"text","text":" "}],"x":1}`,
			`{"content":[{"type":"text","text":"{\"content\":[{\"type\":\"text\",\"text\":\" \"}],\"x\":1}"}],"x":1}`},
		{"not blank by its second escape", result.Mixed, false, `{"content":[{"type":"text","text":"\n\\"}],"structuredContent":{}}`, ``},
		{"one special text as text", result.Text, false, `{"content":[{"type":"text","text":"a","annotations":{}}]}`, `{"content":[{"type":"text","text":"a"}]}`},
		{"one image as text, with data", result.Text, false, `{"content":[{"type":"image","data":"","mimeType":"a/b"}],"structuredContent":{}}`,
			`{"content":[{"type":"text","text":"{\"type\":\"image\",\"data\":\"\",\"mimeType\":\"a/b\"}"}]}`},
		{"data that is a text", result.Text, false, `{"structuredContent":"a"}`, `{"content":[{"type":"text","text":"\"a\""}]}`},
		{"content twice", result.Mixed, false, `{"content":[{"type":"text","text":"a"}],"content":[{"type":"text","text":"b"}],"x":1}`, `{"content":[{"type":"text","text":"b"}],"x":1}`},
		{"resultType stays", result.Mixed, false, `{"content":[],"resultType":"complete"}`, ``},
		{"passthrough keeps everything", result.Passthrough, true, `{"content":null,"isError":"true","_meta":7,"structuredContent":null}`, ``},
		{"an empty result", result.Mixed, false, `{ }`, `{"content":[]}`},
		{"an empty result as text", result.Text, false, `{ }`, `{"content":[{"type":"text","text":"{}"}]}`},
	} {
		c.run(t, protocol.V20251125)
	}
}

func TestModernClients(t *testing.T) {
	const added = `,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"Mainstem","version":"1"}}}`
	for _, c := range []check{
		{"J4 a legacy server's result", result.Mixed, false, `{"content":[{"type":"text","text":"a"}]}`, `{"content":[{"type":"text","text":"a"}]` + added},
		{"J4 in passthrough", result.Passthrough, false, `{"content":null}`, `{"content":null` + added},
		{"J4 as text", result.Text, false, `{"content":"x"}`, `{"content":[{"type":"text","text":"x"}]` + added},
		{"an empty result in passthrough", result.Passthrough, false, `{}`, `{` + added[1:]},
		{"T22 any data", result.Mixed, true, `{"content":[],"structuredContent":[1]}`, `{"content":[{"type":"text","text":"[\n  1\n]"}],"structuredContent":[1]` + added},
		{"_meta stays, but the server's own serverInfo", result.Mixed, false,
			`{"content":[],"resultType":"complete","_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"s"},"b":2}}`,
			`{"content":[],"resultType":"complete","_meta":{"a":1,"b":2,"io.modelcontextprotocol/serverInfo":{"name":"Mainstem","version":"1"}}}`},
		{"_meta that is no object", result.Passthrough, false, `{"_meta":7}`, `{` + added[1:]},
		{"a result that asks for input", result.Mixed, true, `{"resultType":"input_required","requestState":"s","isError":"true"}`,
			`{"resultType":"input_required","requestState":"s","isError":"true","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"Mainstem","version":"1"}}}`},
	} {
		c.run(t, protocol.V20260728)
	}
}

func TestBrokenResults(t *testing.T) {
	for _, input := range []string{`{"resultType":"zzz"}`, `{"resultType":null}`, `{"resultType":7}`, `{"resultType":"task"}`, `[]`, `"x"`, `null`} {
		for _, mode := range []result.Mode{result.Mixed, result.Text, result.Passthrough} {
			got, _, err := result.Rule{Server: "notes", Mode: mode}.Normalize(nil, jsonrpc.Reply{Result: json.RawMessage(input)}, protocol.V20251125, nil)
			if err == nil || !strings.HasPrefix(err.Error(), "notes: ") {
				t.Errorf("Normalize(%s) = %s, %v, want an error that names the server", input, got, err)
			}
		}
	}
}

func TestFailure(t *testing.T) {
	const want = `{"content":[{"type":"text","text":"notes: \"no\"\n"}],"isError":true}`
	if got := result.Failure("notes: \"no\"\n"); string(got) != want {
		t.Errorf("Failure = %s, want %s", got, want)
	}
}

// What is indented far is written compactly, or a server could make us hold many times
// the size that it may send.
func TestDeepDataIsNotPrettyPrinted(t *testing.T) {
	deep := strings.Repeat("[", 60) + strings.Repeat("1,", 50_000) + "1" + strings.Repeat("]", 60)
	got, _, err := result.Rule{}.Normalize(nil, jsonrpc.Reply{Result: json.RawMessage(`{"structuredContent":{"a":` + deep + `}}`)}, protocol.V20251125, nil)
	if err != nil || len(got) > 3*len(deep) {
		t.Errorf("%d bytes of data became %d, %v", len(deep), len(got), err)
	}
}

func TestNormalizeWritesIntoDst(t *testing.T) {
	dst := make([]byte, 7, 1000)
	got, _, err := result.Rule{}.Normalize(dst, jsonrpc.Reply{Result: json.RawMessage(`{"content":"x"}`)}, protocol.V20251125, nil)
	if err != nil || &got[0] != &dst[0] {
		t.Errorf("Normalize does not use dst: %s, %v", got, err)
	}
}
