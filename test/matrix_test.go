package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

// oddTools are definitions that cost some client its whole list, or this tool. A definition without a name of its own is written
// without its name; gone says that such a tool has to be left out.
var oddTools = []struct {
	name string
	more string
	gone bool
}{
	{"schema_empty", `"inputSchema":{}`, false},
	{"schema_missing", `"description":"d"`, false},
	{"schema_null", `"inputSchema":null`, false},
	{"schema_true", `"inputSchema":true`, false},
	{"schema_text", `"inputSchema":"object"`, false},
	{"type_list", `"inputSchema":{"type":["object"]}`, false},
	{"oneof_without_type", `"inputSchema":{"oneOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"string"}}}]}`, false},
	{"properties_null", `"inputSchema":{"type":"object","properties":null}`, false},
	{"properties_list", `"inputSchema":{"type":"object","properties":[]}`, false},
	{"required_null", `"inputSchema":{"type":"object","properties":{},"required":null}`, false},
	{"required_mixed", `"inputSchema":{"type":"object","properties":{"a":{}},"required":["a",7]}`, false},
	{"description_null", `"description":null,"inputSchema":{"type":"object"}`, false},
	{"annotations_null", `"annotations":null,"inputSchema":{"type":"object"}`, false},
	{"annotations_text", `"annotations":{"readOnlyHint":"yes"},"inputSchema":{"type":"object"}`, false},
	{"title_number", `"title":5,"inputSchema":{"type":"object"}`, false},
	{"meta_null", `"_meta":null,"inputSchema":{"type":"object"}`, false},
	{"icons_object", `"icons":{},"inputSchema":{"type":"object"}`, false},
	{"execution_text", `"execution":"x","inputSchema":{"type":"object"}`, false},
	{"property_true", `"inputSchema":{"type":"object","properties":{"a":true,"b":false,"c":null,"d":7}}`, false},
	{"nested_true", `"inputSchema":{"type":"object","properties":{"a":{"type":"object","properties":{"b":true}},"l":{"type":"array","items":true}}}`, false},
	{"tuple", `"inputSchema":{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"},true]}}}`, false},
	{"exclusive_true", `"inputSchema":{"type":"object","properties":{"a":{"type":"number","minimum":1,"exclusiveMinimum":true}}}`, false},
	{"required_true", `"inputSchema":{"type":"object","properties":{"a":{"type":"string","required":true}}}`, false},
	{"type_any", `"inputSchema":{"type":"object","properties":{"a":{"type":"any"},"b":{"type":"int"},"c":{"type":["str","null"]}}}`, false},
	{"keys", `"inputSchema":{"type":"object","properties":{"with space":{},"$dollar":{},"` + strings.Repeat("k", 65) + `":{}}}`, false},
	{"output_array", `"inputSchema":{"type":"object"},"outputSchema":{"type":"array"}`, false},
	{"output_no_type", `"inputSchema":{"type":"object"},"outputSchema":{"description":"d"}`, false},
	{"output_null", `"inputSchema":{"type":"object"},"outputSchema":null`, false},
	{"output_dangling", `"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`, false},
	{"recursive", `"inputSchema":{"type":"object","properties":{"a":{"$ref":"#"}}}`, false},
	{"remote", `"inputSchema":{"type":"object","properties":{"a":{"$ref":"https://example.com/x.json"}}}`, false},
	{"pattern", `"inputSchema":{"type":"object","properties":{"a":{"type":"string","pattern":"(","format":"nonsense"}}}`, false},
	{"", `"name":"","inputSchema":{"type":"object"}`, true},
	{"", `"name":" ","inputSchema":{"type":"object"}`, true},
	{"", `"name":5,"inputSchema":{"type":"object"}`, true},
	{"", `"name":null,"inputSchema":{"type":"object"}`, true},
	{"", `"inputSchema":{"type":"object"}`, true},
	{"good", `"inputSchema":{"type":"object"},"description":"the same name again"`, true},
}

// oddHeaders are annotations that a server of 2026-07-28 may not make; such a tool is left out. To other servers they mean nothing.
var oddHeaders = map[string]string{
	"twice":        `{"a":{"type":"string","x-mcp-header":"K"},"b":{"type":"string","x-mcp-header":"k"}}`,
	"by_reference": `{"a":{"$ref":"#/$defs/r"}},"$defs":{"r":{"type":"string","x-mcp-header":"K"}}`,
	"number":       `{"a":{"type":"number","x-mcp-header":"K"}}`,
	"line_end":     `{"a":{"type":"string","x-mcp-header":"K\r\nX: y"}}`,
	"empty":        `{"a":{"type":"string","x-mcp-header":""}}`,
	"no_text":      `{"a":{"type":"string","x-mcp-header":7}}`,
	"in_items":     `{"a":{"type":"array","items":{"type":"string","x-mcp-header":"K"}}}`,
}

func TestInvalidHeaderAnnotations(t *testing.T) {
	t.Parallel()
	tools := []string{fake.Tool("good"), withSchema("fine", `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"K"}}}}}`)}
	for name, properties := range oddHeaders {
		tools = append(tools, withSchema(name, `{"type":"object","properties":`+properties+`}`))
	}
	fresh := fake.HTTP(t, fake.Options{Tools: tools, Modern: true, NoHandshake: true})
	old := fake.HTTP(t, fake.Options{Tools: tools})
	m := run.Start(t, run.Of(run.HTTP("fresh", fresh), run.HTTP("old", old)))
	if got := client.Dial(t, m.One("fresh"), client.Latest).Names(); !slices.Equal(got, []string{"fine", "good"}) {
		t.Errorf("names = %v", got)
	}
	if got := client.Dial(t, m.One("old"), client.Latest).Names(); len(got) != len(tools) {
		t.Errorf("%d of %d tools of a server with a handshake: %v", len(got), len(tools), got)
	}
	warnings := fmt.Sprint(m.Status("fresh").Warnings)
	for name := range oddHeaders {
		if !strings.Contains(warnings, name) {
			t.Errorf("no warning names %s: %s", name, warnings)
		}
	}
}

// TestMalformedTools puts each odd tool beside a good one on a server of its own, in both schema modes, and checks the list as a strict
// client would. One Mainstem has them all.
func TestMalformedTools(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"flatten", "passthrough"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			var servers []run.Server
			for i, odd := range oddTools {
				definition := "{" + odd.more + "}"
				if odd.name != "" {
					definition = tool(odd.name, odd.more)
				}
				s := fake.HTTP(t, fake.Options{Tools: []string{fake.Tool("good"), definition, `null`, `7`, `[]`}})
				servers = append(servers, run.HTTP(numbered("s", i+1)[i], s, fields{"schema": mode}))
			}
			m := run.Start(t, run.Of(servers...))
			c := legacy(t, m)
			list := c.Tools()
			for _, definition := range list {
				if err := strictTool(definition); err != nil {
					t.Errorf("%v: %s", err, definition)
				}
				if err := flatSchema(client.Member(definition, "inputSchema")); mode == "flatten" && err != nil {
					t.Errorf("%v: %s", err, definition)
				}
			}
			names := c.Names()
			for i, odd := range oddTools {
				server := servers[i].Name
				want := []string{server + "__good"}
				if !odd.gone {
					want = append(want, server+"__"+odd.name)
				}
				slices.Sort(want)
				got := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, server+"__") })
				if !slices.Equal(got, want) {
					t.Errorf("%s %s: listed %v, want %v", odd.name, odd.more, got, want)
				}
				for _, name := range want {
					if a := c.Tool(name, "{}"); strictResult(a.Result) != nil {
						t.Errorf("%s: got %s%s", name, a.Result, a.Error)
					}
				}
				if warnings := m.Status(server).Warnings; len(warnings) == 0 {
					t.Errorf("%s: no warning", server) // at least about null, 7 and []
				}
			}
		})
	}
}

// TestMalformedLists has results that are no lists; nobody else suffers.
func TestMalformedLists(t *testing.T) {
	t.Parallel()
	var servers []run.Server
	for i, result := range []string{`{}`, `{"tools":null}`, `{"tools":{}}`, `[]`, `null`, `"x"`, `{"tools":[],"nextCursor":7}`} {
		s := fake.HTTP(t, fake.Options{Handlers: map[string]fake.Handler{"tools/list": func(c *fake.Call) { c.RawResult(result) }}})
		servers = append(servers, run.HTTP(numbered("bad", i+1)[i], s))
	}
	servers = append(servers, run.HTTP("good", fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})))
	m := run.Start(t, run.Of(servers...))
	if got := legacy(t, m).Names(); !slices.Equal(got, []string{"good__a"}) {
		t.Errorf("names = %v", got)
	}
}

// TestMalformedResults has results that a strict client refuses, in the default mode.
func TestMalformedResults(t *testing.T) {
	t.Parallel()
	results := []string{
		`{}`, `{"content":null}`, `{"content":{}}`, `{"content":"text"}`, `{"content":[null,{},7,"x",[]]}`, `{"content":[{"type":"text"}]}`,
		`{"content":[{"type":"image"}]}`, `{"content":[{"text":"no type"}]}`, `{"content":[{"type":5}]}`, `{"content":[],"isError":"true"}`,
		`{"content":[],"isError":null}`, `{"content":[],"structuredContent":null}`, `{"content":[],"structuredContent":[1]}`, `{"content":[],"_meta":7}`,
		`{"content":[{"type":"resource","resource":{}}]}`, `{"content":[{"type":"resource_link","uri":"x"}]}`, `{"content":[{"type":"audio","data":5,"mimeType":"x"}]}`,
	}
	calls := map[string]fake.Handler{}
	names := numbered("r", len(results))
	for i, result := range results {
		calls[names[i]] = func(c *fake.Call) { c.RawResult(result) }
	}
	wrong := []string{`null`, `7`, `"x"`, `[]`}
	for i, result := range wrong {
		name := numbered("w", i+1)[i]
		names = append(names, name)
		calls[name] = func(c *fake.Call) { c.RawResult(result) }
	}
	_, m := behind(t, fake.Options{Tools: fake.Tools(names...), Calls: calls})
	c := legacy(t, m)
	for _, name := range names {
		a := c.Tool("up__"+name, "{}")
		if a.Error != nil && strings.HasPrefix(name, "w") {
			continue // a JSON-RPC error is as good an answer to a result that is none
		}
		if err := strictResult(a.Result); err != nil {
			t.Errorf("%s: %v: got %s%s", name, err, a.Result, a.Error)
		}
		if strings.HasPrefix(name, "w") {
			failed(t, a.Message, "up")
		}
	}
}

// TestStrictCheck keeps the checks of this file honest: each must refuse what it is for.
func TestStrictCheck(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		`{"name":5,"inputSchema":{"type":"object"}}`, `{"name":"a"}`, `{"name":"a","inputSchema":{}}`, `{"name":"a","inputSchema":{"type":"object","properties":{"b":true}}}`,
		`{"name":"a","inputSchema":{"type":"object","required":null}}`, `{"name":"a","inputSchema":{"type":"object"},"title":5}`,
		`{"name":"a","inputSchema":{"type":"object"},"outputSchema":{}}`, `{"name":"a","inputSchema":{"type":"object"},"icons":[{}]}`,
	} {
		if strictTool(json.RawMessage(bad)) == nil {
			t.Errorf("passed: %s", bad)
		}
	}
	for _, bad := range []string{
		`{"anyOf":[]}`, `{"items":[]}`, `{"exclusiveMinimum":true}`, `{"required":true}`, `{"type":"any"}`, `{"properties":{"a b":{}}}`, `{"properties":{"a":true}}`, `{"properties":{"a":{"items":true}}}`,
	} {
		if flatSchema(json.RawMessage(bad)) == nil {
			t.Errorf("passed as flat: %s", bad)
		}
	}
}
