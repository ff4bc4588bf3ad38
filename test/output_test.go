package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

// answers makes a handler that gives one raw result.
func answers(result string) fake.Handler {
	return func(c *fake.Call) { c.Result(result) }
}

// resultCases are results of a server in the default mode, and what a client gets; empty: the same.
var resultCases = []struct {
	name   string
	result string
	want   string
}{
	{"C54_error", `{"content":[{"type":"text","text":"Not found"}],"isError":true}`, ""},
	{"C59_structured_only", `{"structuredContent":{"a":1}}`, `{"content":[{"type":"text","text":"{\n  \"a\": 1\n}"}],"structuredContent":{"a":1}}`},
	{"C59_content_null", `{"content":null,"structuredContent":{"a":1}}`, `{"content":[{"type":"text","text":"{\n  \"a\": 1\n}"}],"structuredContent":{"a":1}}`},
	{"C61_image", `{"content":[{"type":"text","text":"x"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]}`, ""},
	{"C62_resources", `{"content":[{"type":"resource_link","uri":"file:///a","name":"a","mimeType":"text/plain","annotations":{"priority":0.5},"_meta":{"k":1}},{"type":"resource","resource":{"uri":"file:///b","mimeType":"text/plain","text":"b","_meta":{"k":2}}},{"type":"resource","resource":{"uri":"file:///c","mimeType":"image/png","blob":"AA=="}}]}`, ""},
	{"C63_unknown_type", `{"content":[{"type":"video","n":1},{"type":"text","text":"x"}]}`, `{"content":[{"type":"text","text":"{\"type\":\"video\",\"n\":1}\nx"}]}`},
	{"C65_meta", `{"content":[{"type":"text","text":"x","_meta":{"c":[1]}}],"_meta":{"com.example/r":{"n":9007199254740993}}}`, ""},
	{"C66_big_integer", `{"content":[],"structuredContent":{"n":9007199254740993,"l":[[9007199254740993]]}}`,
		`{"content":[{"type":"text","text":"{\n  \"n\": 9007199254740993,\n  \"l\": [\n    [\n      9007199254740993\n    ]\n  ]\n}"}],"structuredContent":{"n":9007199254740993,"l":[[9007199254740993]]}}`},
}

func TestResults(t *testing.T) {
	t.Parallel()
	calls := map[string]fake.Handler{}
	for _, c := range resultCases {
		calls[c.name] = answers(c.result)
	}
	_, m := behind(t, fake.Options{Tools: fake.Tools(slices.Sorted(maps.Keys(calls))...), Calls: calls})
	for _, c := range resultCases {
		want := c.want
		if want == "" {
			want = c.result
		}
		got := legacy(t, m).Tool("up__"+c.name, "{}")
		sameMembers(t, c.name, got.Result, want)
		if err := strictResult(got.Result); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		same(t, c.name+" for 2026-07-28", plain(modern(t, m).Tool("up__"+c.name, "{}").Result), string(plain(json.RawMessage(want))))
	}
}

// plain leaves out what every result for 2026-07-28 has, and sorts the members.
func plain(result json.RawMessage) json.RawMessage {
	members, err := object(result)
	if err != nil {
		return result
	}
	delete(members, "resultType")
	if meta, err := object(members["_meta"]); err == nil {
		delete(meta, "io.modelcontextprotocol/serverInfo")
		members["_meta"], _ = json.Marshal(meta)
		if len(meta) == 0 {
			delete(members, "_meta")
		}
	}
	out := []string{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		out = append(out, quote(name)+":"+string(members[name]))
	}
	return json.RawMessage("{" + strings.Join(out, ",") + "}")
}

// sameMembers compares results: only the order of their own members is free.
func sameMembers(t *testing.T, what string, got json.RawMessage, want string) {
	t.Helper()
	g, err := object(got)
	if err != nil {
		t.Errorf("%s: got %s, want %s", what, got, want)
		return
	}
	w, _ := object(json.RawMessage(want))
	for name := range w {
		if g[name] == nil || client.Compact(g[name]) != client.Compact(w[name]) {
			t.Errorf("%s: %s\n got  %s\n want %s", what, name, g[name], w[name])
		}
		delete(g, name)
	}
	for name := range g {
		t.Errorf("%s: %s is not wanted: %s", what, name, g[name])
	}
}

func TestC55ProtocolErrorKeepsCodeMessageData(t *testing.T) {
	t.Parallel()
	data := `{"uri":"x","n":9007199254740993,"list":[1.50]}`
	_, m := behind(t, fake.Options{Tools: fake.Tools("bad", "lost"), Calls: map[string]fake.Handler{
		"bad":  func(c *fake.Call) { c.Error(-32602, "bad \"q\" é", data) },
		"lost": func(c *fake.Call) { c.Error(-32002, "not found", data) },
	}})
	for _, c := range []*client.HTTP{legacy(t, m), modern(t, m)} {
		a := c.Tool("up__bad", "{}")
		if a.Code() != -32602 || a.ErrorText() != "bad \"q\" é" {
			t.Errorf("%s: got %s%s", c.Version, a.Result, a.Error)
		}
		same(t, c.Version, client.Member(a.Error, "data"), data)
	}
	if got := legacy(t, m).Tool("up__lost", "{}").Code(); got != -32002 {
		t.Errorf("legacy: code %d, want -32002", got)
	}
	if got := modern(t, m).Tool("up__lost", "{}").Code(); got != -32602 {
		t.Errorf("2026-07-28: code %d, want -32602", got)
	}
}

// TestC57StructuredContentStays also has the tool that promises an object and sends none.
func TestC57StructuredContentStays(t *testing.T) {
	t.Parallel()
	schema := `"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}`
	tools := []string{tool("keeps", schema), tool("as_text", schema), tool("breaks", schema), tool("fails", schema)}
	calls := map[string]fake.Handler{
		"keeps":   answers(`{"content":[{"type":"text","text":"n"}],"structuredContent":{"n":"no integer"}}`),
		"as_text": answers(`{"content":[{"type":"text","text":"{\"n\": 2}"}]}`),
		"breaks":  answers(`{"content":[{"type":"text","text":"done"}]}`),
		"fails":   answers(`{"content":[{"type":"text","text":"no"}],"isError":true}`),
	}
	s := fake.HTTP(t, fake.Options{Tools: tools, Calls: calls})
	m := run.Start(t, run.Of(run.HTTP("up", s), run.HTTP("text", s, fields{"output": "text"})))
	c := legacy(t, m)
	for _, definition := range c.Tools() {
		shows := client.Member(definition, "outputSchema") != nil
		if want := strings.Contains(string(definition), "up__"); shows != want {
			t.Errorf("outputSchema shown %v, want %v: %s", shows, want, definition)
		}
	}
	same(t, "C60: data that breaks the schema", client.Member(c.Tool("up__keeps", "{}").Result, "structuredContent"), `{"n":"no integer"}`)
	same(t, "object as text", client.Member(c.Tool("up__as_text", "{}").Result, "structuredContent"), `{"n": 2}`)
	got := c.Tool("up__breaks", "{}")
	failed(t, got.Message, "up")
	if !strings.HasSuffix(got.Text(), "\ndone") {
		t.Errorf("the content is lost: %q", got.Text())
	}
	sameMembers(t, "error of the tool", c.Tool("up__fails", "{}").Result, `{"content":[{"type":"text","text":"no"}],"isError":true}`)
	sameMembers(t, "text mode", c.Tool("text__keeps", "{}").Result, `{"content":[{"type":"text","text":"n"}]}`)
}

func TestC66BigIntegersInArguments(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("echo")})
	arguments := `{"n":9007199254740993,"l":[[12345678901234567890.0],1e400],"s":"\u00e9\u2028"}`
	legacy(t, m).Tool("up__echo", arguments)
	same(t, "arguments", s.Calls("echo")[0].Param("arguments"), arguments)
}

func TestC68SplitCharacters(t *testing.T) {
	t.Parallel()
	options := fake.Options{Tools: fake.Tools("echo"), Framing: fake.Framing{Split: true}}
	over := fake.Options{Tools: fake.Tools("echo"), Framing: fake.Framing{Split: true, SSE: true, EOL: "\r\n"}}
	m := run.Start(t, run.Of(run.Stdio("pipe", fake.Stdio(t, options)), run.HTTP("web", fake.HTTP(t, over))))
	c := legacy(t, m)
	for _, name := range []string{"pipe__echo", "web__echo"} {
		if got := c.Tool(name, `{"q":"é😀漢"}`).Text(); got != `{"q":"é😀漢"}` {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestC70InvalidUTF8(t *testing.T) {
	t.Parallel()
	bad := func(c *fake.Call) { c.Result("{\"content\":[{\"type\":\"text\",\"text\":\"caf\xe9\"}]}") }
	options := fake.Options{Tools: fake.Tools("bad", "good"), Calls: map[string]fake.Handler{"bad": bad}}
	m := run.Start(t, run.Of(
		run.Stdio("pipe", fake.Stdio(t, options), fields{"timeout": "3s"}),
		run.HTTP("web", fake.HTTP(t, options), fields{"timeout": "3s"}),
	))
	c := legacy(t, m)
	for _, server := range []string{"pipe", "web"} {
		start := time.Now()
		a := c.Tool(server+"__bad", "{}")
		quick(t, "the reply", start, 3*time.Second+soon)
		if a.Raw == nil || !json.Valid(a.Raw) || strings.ToValidUTF8(string(a.Raw), "") != string(a.Raw) {
			t.Errorf("%s: got %q", server, a.Raw)
		}
		if got := c.Tool(server+"__good", `{"q":"x"}`).Text(); got != `{"q":"x"}` {
			t.Errorf("%s: the next call got %q", server, got)
		}
	}
}

func TestC71HugeResult(t *testing.T) {
	t.Parallel()
	huge := func(c *fake.Call) { c.Text(strings.Repeat("x", 6<<20)) }
	s, m := behind(t, fake.Options{Tools: fake.Tools("huge", "small"), Calls: map[string]fake.Handler{"huge": huge}})
	c := legacy(t, m)
	failed(t, c.Tool("up__huge", "{}").Message, "up", "5242880")
	if got := c.Tool("up__small", `{"q":1}`).Text(); got != `{"q":1}` {
		t.Errorf("the next call got %q", got)
	}
	if n := len(s.Calls("huge")); n != 1 {
		t.Errorf("called %d times", n)
	}
}

type outputVector struct {
	ID   string
	Call struct {
		Shows  bool `json:"shows_output_schema"`
		Client string
	}
	Input     json.RawMessage
	InputText string `json:"input_text"`
	Expected  map[string]json.RawMessage
}

// TestOutputVectors has a Mainstem for each mode, as the name of the server is part of some expectations.
func TestOutputVectors(t *testing.T) {
	t.Parallel()
	all := vectors[outputVector](t, "output.json", "vectors")
	for i, v := range all {
		if v.InputText == "" {
			all[i].InputText = string(v.Input)
		}
	}
	for _, mode := range []string{"mixed", "text", "passthrough"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			var tools []string
			calls := map[string]fake.Handler{}
			for _, v := range all {
				more := `"inputSchema":{"type":"object"}`
				if v.Call.Shows {
					more += `,"outputSchema":{"type":"object"}`
				}
				tools = append(tools, tool(v.ID, more))
				calls[v.ID] = func(c *fake.Call) { c.Result(v.InputText) }
			}
			options := fake.Options{Tools: tools, Calls: calls}
			old := fake.HTTP(t, options)
			options.Modern, options.NoHandshake = true, true
			fresh := fake.HTTP(t, options)
			m := run.Start(t, run.Of(run.HTTP("notes", old, fields{"output": mode}), run.HTTP("fresh", fresh, fields{"output": mode})))
			for _, v := range all {
				v.check(t, m, mode)
			}
		})
	}
}

func (v outputVector) check(t *testing.T, m *run.Mainstem, mode string) {
	t.Helper()
	version := v.Call.Client
	if strings.Contains(v.InputText, "resultType") {
		version = client.Modern // the vectors are about a result of that version
	}
	if version == "" {
		version = client.Latest
	}
	server := "notes"
	if version == client.Modern {
		server = "fresh" // of the same era, so that nothing is lost on the way
	}
	got := client.Dial(t, m.Endpoint(), version).Tool(server+"__"+v.ID, "{}").Result
	want := string(v.Expected[mode])
	if want == `"unchanged"` {
		want = v.InputText
	}
	what := fmt.Sprint(v.ID, " ", mode)
	if version == client.Modern {
		if kind := client.Member(got, "resultType"); kind == nil {
			t.Errorf("%s: no resultType: %s", what, got)
		}
		got, want = plain(got), string(plain(json.RawMessage(want)))
	}
	sameMembers(t, what, completed(got, want), want)
}

// completed puts the texts of want that end in … into got, where got has a text that begins with them.
func completed(got json.RawMessage, want string) json.RawMessage {
	var g, w struct{ Content []struct{ Text string } }
	if json.Unmarshal(got, &g) != nil || json.Unmarshal([]byte(want), &w) != nil || len(g.Content) != len(w.Content) {
		return got
	}
	for i, block := range w.Content {
		begin, open := strings.CutSuffix(block.Text, "…")
		if open && strings.HasPrefix(g.Content[i].Text, begin) {
			got = json.RawMessage(strings.Replace(string(got), quote(g.Content[i].Text), quote(block.Text), 1))
		}
	}
	return got
}
