package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

// eitherKey wants one of two keys.
const eitherKey = `{"oneOf":[{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]},{"type":"object","properties":{"slug":{"type":"string"}},"required":["slug"]}]}`

// flattened are input schemas and what clients get of them with `schema: flatten`.
var flattened = []struct {
	name  string // case and what it is about
	input string
	want  string
}{
	{"C32_defs", `{"type":"object","properties":{"a":{"$ref":"#/$defs/F"},"b":{"$ref":"#/definitions/G"}},"$defs":{"F":{"type":"string","minLength":2}},"definitions":{"G":{"type":"integer"}}}`,
		`{"type":"object","properties":{"a":{"type":"string","minLength":2},"b":{"type":"integer"}}}`},
	{"C33_recursion", `{"type":"object","properties":{"root":{"$ref":"#/$defs/Node"}},"$defs":{"Node":{"type":"object","title":"Node","properties":{"v":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/Node"}}}}}}`,
		`{"type":"object","properties":{"root":{"type":"object","title":"Node","properties":{"v":{"type":"string"},"children":{"type":"array","items":{"type":"object","title":"Node"}}}}}}`},
	{"C36_pointers", `{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"},"c":{"$ref":"#/$defs/x~1y"},"d":{"$ref":"#/$defs/a%20b"}},"$defs":{"x/y":{"type":"integer"},"a b":{"type":"boolean"}}}`,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"integer"},"d":{"type":"boolean"}}}`},
	{"C37_dead_reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/Nope"},"b":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{},"b":{"type":"string"}}}`},
	{"C39_beside_ref", `{"type":"object","properties":{"a":{"$ref":"#/$defs/E","description":"local"}},"$defs":{"E":{"type":"string","description":"theirs","enum":["x","y"]}}}`,
		`{"type":"object","properties":{"a":{"description":"local","type":"string","enum":["x","y"]}}}`},
	{"C40_allOf", `{"type":"object","allOf":[{"type":"object","properties":{"a":{"type":"string"},"c":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"]}],"properties":{"c":{"description":"own"}}}`,
		`{"type":"object","properties":{"c":{"description":"own","type":"string"},"a":{"type":"string"},"b":{"type":"integer"}},"required":["a","b"]}`},
	{"C42_oneOf", eitherKey,
		`{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`},
	{"C42_anyOf_null", `{"anyOf":[{"type":"null"},{"type":"object","properties":{"q":{"type":"string"}}}]}`,
		`{"type":"object","properties":{"q":{"type":"string"}}}`},
	{"C46_no_properties", `{"type":"object"}`, `{"type":"object","properties":{}}`},
	{"C47_null", `null`, `{"type":"object","properties":{}}`},
	{"C47_empty", `{}`, `{"type":"object","properties":{}}`},
	{"C48_true", `true`, `{"type":"object","properties":{}}`},
	{"C48_types", `{"type":["object","null"],"properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`},
	{"C50_keywords", `{"type":"object","properties":{"e":{"enum":["a","b"],"default":"a"},"f":{"type":"string","format":"uri","description":"d"},"n":{"type":"integer","minimum":1,"exclusiveMaximum":9}},"additionalProperties":false,"required":["e"]}`,
		`{"type":"object","properties":{"e":{"enum":["a","b"],"default":"a"},"f":{"type":"string","format":"uri","description":"d"},"n":{"type":"integer","minimum":1,"exclusiveMaximum":9}},"additionalProperties":false,"required":["e"]}`},
}

func TestFlattenedSchemas(t *testing.T) {
	t.Parallel()
	var tools []string
	for _, c := range flattened {
		tools = append(tools, withSchema(c.name, c.input))
	}
	tools = append(tools, tool("C47_missing", `"description":"no schema"`), `{"name":5,"inputSchema":{}}`)
	_, m := behind(t, fake.Options{Tools: tools})
	start := time.Now()
	list := legacy(t, m).Tools()
	quick(t, "the list", start, soon)
	if len(list) != len(flattened)+1 {
		t.Errorf("%d tools listed, want %d", len(list), len(flattened)+1)
	}
	for _, c := range flattened {
		definition := byName(t, list, "up__"+c.name)
		same(t, c.name, client.Member(definition, "inputSchema"), c.want)
		if err := strictTool(definition); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	same(t, "C47_missing", client.Member(byName(t, list, "up__C47_missing"), "inputSchema"), `{"type":"object","properties":{}}`)
	warnings := fmt.Sprint(m.Status("up").Warnings)
	for _, name := range []string{"C37_dead_reference", "5"} {
		if !strings.Contains(warnings, name) {
			t.Errorf("no warning names %s: %s", name, warnings)
		}
	}
}

// TestC43ArgumentsOfAnotherBranch sends what the flattened schema does not allow.
func TestC43ArgumentsOfAnotherBranch(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: []string{withSchema("get", eitherKey)}})
	if got := legacy(t, m).Tool("up__get", `{"slug":"x"}`); got.Text() != `{"slug":"x"}` {
		t.Errorf("got %s%s", got.Result, got.Error)
	}
	if calls := s.Calls("get"); len(calls) != 1 || string(calls[0].Param("arguments")) != `{"slug":"x"}` {
		t.Errorf("the server received %v", calls)
	}
}

func TestC49OutputSchemaWithoutObject(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: []string{
		tool("bad", `"inputSchema":{"type":"object"},"outputSchema":{"description":"x"}`),
		tool("list", `"inputSchema":{"type":"object"},"outputSchema":{"type":"array"}`),
		tool("open", `"inputSchema":{"type":"object"},"outputSchema":{"properties":{"a":{"type":"string"}}}`),
	}})
	list := legacy(t, m).Tools()
	if len(list) != 3 {
		t.Errorf("%d tools", len(list))
	}
	for _, definition := range list {
		if err := strictTool(definition); err != nil {
			t.Errorf("%v: %s", err, definition)
		}
	}
	same(t, "completed", client.Member(byName(t, list, "up__open"), "outputSchema"), `{"type":"object","properties":{"a":{"type":"string"}}}`)
}

func TestC52AnnotationsTitleIconsMeta(t *testing.T) {
	t.Parallel()
	more := `"title":"T","description":"d","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true,"x-hint":1},"icons":[{"src":"https://x/i.png"}],"_meta":{"a/b":{"n":9007199254740993}},"x-vendor":[null]`
	_, m := behind(t, fake.Options{Tools: []string{tool("full", more)}})
	for _, c := range []*client.HTTP{legacy(t, m), modern(t, m)} {
		same(t, c.Version, c.Tools()[0], tool("up__full", more))
	}
}

type schemaVector struct {
	ID       string
	Input    json.RawMessage
	Expected struct {
		Flatten     json.RawMessage
		Passthrough json.RawMessage
	}
	Output    string
	Override  json.RawMessage
	Arguments []struct{ Public, Upstream json.RawMessage }
}

// want is what a vector expects in a mode.
func (v schemaVector) want(mode string) json.RawMessage {
	expected := v.Expected.Flatten
	if mode == "passthrough" {
		expected = v.Expected.Passthrough
	}
	if string(expected) == `"unchanged"` {
		return v.Input
	}
	return expected
}

// TestSchemaVectors lists the schemas of all vectors through one Mainstem, once in each mode, and sends their arguments.
func TestSchemaVectors(t *testing.T) {
	t.Parallel()
	all := vectors[schemaVector](t, "schema.json", "schemas")
	var tools []string
	for _, v := range all {
		tools = append(tools, withSchema(v.ID, string(v.Input)))
	}
	modes := []string{"flatten", "passthrough"}
	fakes := map[string]*fake.Server{}
	var servers []run.Server
	for _, mode := range modes {
		fakes[mode] = fake.HTTP(t, fake.Options{Tools: tools})
		servers = append(servers, run.HTTP(mode, fakes[mode], fields{"schema": mode}))
	}
	c := legacy(t, run.Start(t, run.Of(servers...)))
	list := c.Tools()
	for _, mode := range modes {
		for _, v := range all {
			definition := byName(t, list, mode+"__"+v.ID)
			same(t, v.ID+" "+mode, client.Member(definition, "inputSchema"), string(v.want(mode)))
			if err := strictTool(definition); err != nil {
				t.Errorf("%s %s: %v", v.ID, mode, err)
			}
		}
	}
	for _, v := range all {
		for _, arguments := range v.Arguments {
			c.Tool("flatten__"+v.ID, string(arguments.Public))
			calls := fakes["flatten"].Calls(v.ID)
			if len(calls) == 0 {
				t.Errorf("%s: the call did not arrive", v.ID)
				continue
			}
			same(t, v.ID+" arguments", calls[len(calls)-1].Param("arguments"), string(arguments.Upstream))
		}
	}
}

func TestToolVectors(t *testing.T) {
	t.Parallel()
	var servers []run.Server
	all := vectors[schemaVector](t, "schema.json", "tools")
	modes := []string{"flatten", "passthrough"}
	for _, mode := range modes {
		for _, v := range all {
			more := fields{"schema": mode, "output": v.Output}
			if v.Override != nil {
				more["tools"] = fields{"t": v.Override}
			}
			servers = append(servers, run.HTTP(v.ID+mode, fake.HTTP(t, fake.Options{Tools: []string{string(v.Input)}}), more))
		}
	}
	c := legacy(t, run.Start(t, run.Of(servers...)))
	list, listed := c.Tools(), c.Names()
	for _, mode := range modes {
		for _, v := range all {
			name := strings.ToLower(v.ID) + mode + "__t"
			want := string(v.want(mode))
			if want == "null" {
				if strings.Contains(fmt.Sprint(listed), strings.TrimSuffix(name, "t")) {
					t.Errorf("%s %s: listed", v.ID, mode)
				}
				continue
			}
			same(t, v.ID+" "+mode, byName(t, list, name), strings.Replace(client.Compact([]byte(want)), `"name":"t"`, `"name":`+quote(name), 1))
		}
	}
}

func TestListVectors(t *testing.T) {
	t.Parallel()
	type list struct {
		ID       string
		Input    []json.RawMessage
		Expected []json.RawMessage
	}
	for _, v := range vectors[list](t, "schema.json", "lists") {
		var tools []string
		for _, definition := range v.Input {
			tools = append(tools, string(definition))
		}
		_, m := behind(t, fake.Options{Tools: tools})
		got := client.Dial(t, m.One("up"), client.Latest).Tools()
		if len(got) != len(v.Expected) {
			t.Errorf("%s: %d tools, want %d", v.ID, len(got), len(v.Expected))
			continue
		}
		for i := range got {
			same(t, fmt.Sprint(v.ID, " ", i), got[i], string(v.Expected[i]))
		}
	}
}
