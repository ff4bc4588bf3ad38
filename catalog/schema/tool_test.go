package schema_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/catalog/schema"
)

func TestDefinition(t *testing.T) {
	const in = `"inputSchema":{"type":"object","properties":{}}`
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		name, input string
		options     schema.Options
		want        string // "" for a tool that is left out
		warnings    string
	}{
		{"C48 no object", `["name"]`, schema.Options{}, "", "no_object"},
		{"C48 null", ` null `, schema.Options{}, "", "no_object"},
		{"C48 no name", `{` + in + `}`, schema.Options{}, "", "no_name"},
		{"C48 a blank name", `{"name":" \t\n\u3000",` + in + `}`, schema.Options{}, "", "no_name"},
		{"C48 the schema is true", `{"inputSchema":true,"name":"a"}`, schema.Options{}, `{` + in + `,"name":"a"}`, "root_not_object"},
		{"C48 a list of types", `{"name":"a","inputSchema":{"type":["object","null"]}}`, schema.Options{}, `{"name":"a",` + in + `}`, ""},
		{"C47 null", `{"name":"a","inputSchema":null,"z":1}`, schema.Options{}, `{"name":"a",` + in + `,"z":1}`, ""},
		{"C47 missing", `{"name":"a"}`, schema.Options{Mode: schema.Passthrough}, `{"name":"a",` + in + `}`, ""},
		{"C47 empty", `{"name":"a","inputSchema":{}}`, schema.Options{}, `{"name":"a",` + in + `}`, ""},
		{"C46 no properties", `{"name":"a","inputSchema":{"type":"object"}}`, schema.Options{}, `{"name":"a",` + in + `}`, ""},
		{"C52 everything stays", `{"name":"a","title":"A","annotations":{"title":"T","idempotentHint":true,"x":null},"icons":[{"src":"s","theme":"dark","sizes":["any"],"x":1}],"_meta":{"k":1.50},` + in + `,"execution":{"taskSupport":"required","x":1}}`,
			schema.Options{}, `{"name":"a","title":"A","annotations":{"title":"T","idempotentHint":true,"x":null},"icons":[{"src":"s","theme":"dark","sizes":["any"],"x":1}],"_meta":{"k":1.50},` + in + `,"execution":{"taskSupport":"required","x":1}}`, ""},
		{"members of another type", `{"name":"a","title":null,"description":["d"],"annotations":[],"execution":"x","_meta":null,"icons":{},` + in + `}`,
			schema.Options{}, `{"name":"a",` + in + `}`, "dropped:_meta dropped:annotations dropped:description dropped:execution dropped:icons dropped:title"},
		{"members inside", `{"name":"a","annotations":{"title":1,"readOnlyHint":null,"destructiveHint":0,"idempotentHint":"true","openWorldHint":{}},"execution":{"taskSupport":"maybe","y":1},"icons":[{"src":1},{"src":"a","mimeType":2},{"src":"b","sizes":[1]},{"src":"c","theme":"blue"},"d"],` + in + `}`,
			schema.Options{Mode: schema.Passthrough}, `{"name":"a","annotations":{},"execution":{"y":1},"icons":[],` + in + `}`,
			"dropped:destructiveHint dropped:icon dropped:idempotentHint dropped:openWorldHint dropped:readOnlyHint dropped:taskSupport dropped:title"},
		{"white space and escapes", " { \"name\" : \"a\\u0062\" ,\n\"description\":\"\\u00e9\\/\", " + in + " } ", schema.Options{}, `{"name":"ab","description":"é/",` + in + `}`, ""},
		{"a member that is there twice", `{"name":"a","title":"t","title":5,` + in + `}`, schema.Options{}, `{"name":"a",` + in + `}`, "dropped:title"},
		{"another name", `{"x":1,"name":"a b",` + in + `}`, schema.Options{Public: "s__a_b"}, `{"x":1,"name":"s__a_b",` + in + `}`, ""},
		{"ours after a malformed one", `{"title":5,"name":"a","_meta":7,` + in + `}`, schema.Options{Title: text("T"), Description: text("<d>\n"), Meta: []byte(` { "m" : 1 } `)},
			`{"name":"a",` + in + `,"title":"T","description":"<d>\n","_meta":{"m":1}}`, "dropped:_meta dropped:title"},
		{"C49 output: a reference to an object", `{"name":"a",` + in + `,"outputSchema":{"description":"d","$ref":"#/$defs/A","$defs":{"A":{"allOf":[{"properties":{"x":true}}]}}}}`, schema.Options{},
			`{"name":"a",` + in + `,"outputSchema":{"type":"object","description":"d","$ref":"#/$defs/A","$defs":{"A":{"allOf":[{"properties":{"x":true}}]}}}}`, ""},
		{"C49 output: repairs at the root", `{"name":"a",` + in + `,"outputSchema":{"type":["null","object"],"properties":{"x":true,"y":false,"z":0},"required":["x",1]}}`, schema.Options{},
			`{"name":"a",` + in + `,"outputSchema":{"type":"object","properties":{"x":{},"y":{"not":{}},"z":{}},"required":["x"]}}`, "invalid_keyword:required invalid_subschema"},
		{"C49 output: nothing said", `{"name":"a",` + in + `,"outputSchema":{}}`, schema.Options{}, `{"name":"a",` + in + `}`, "output_schema_dropped"},
		{"C49 output: null", `{"name":"a","outputSchema":null,` + in + `}`, schema.Options{}, `{"name":"a",` + in + `}`, "output_schema_dropped"},
		{"C49 output: a string or an object", `{"name":"a",` + in + `,"outputSchema":{"anyOf":[{"type":"string"},{"type":"object"}]}}`, schema.Options{}, `{"name":"a",` + in + `}`, "output_schema_dropped"},
		{"C49 output: an object or a string", `{"name":"a",` + in + `,"outputSchema":{"anyOf":[{"type":"object"},{"type":"string"}]}}`, schema.Options{}, `{"name":"a",` + in + `,"outputSchema":{"type":"object","anyOf":[{"type":"object"},{"type":"string"}]}}`, ""},
		{"C49 output: a remote reference in a part", `{"name":"a",` + in + `,"outputSchema":{"type":"object","not":{"anyOf":[{"$ref":"http://x/y"}]}}}`, schema.Options{}, `{"name":"a",` + in + `}`, "output_schema_dropped"},
		{"C49 output: $ref as data", `{"name":"a",` + in + `,"outputSchema":{"type":"object","properties":{"$ref":{"default":{"$ref":"#/no"}}},"x-v":{"$ref":1}}}`, schema.Options{},
			`{"name":"a",` + in + `,"outputSchema":{"type":"object","properties":{"$ref":{"default":{"$ref":"#/no"}}},"x-v":{"$ref":1}}}`, ""},
		{"output: text", `{"name":"a","outputSchema":{"type":5},` + in + `}`, schema.Options{DropOutput: true}, `{"name":"a",` + in + `}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tool, ok := schema.Definition([]byte(c.input), c.options)
			if ok != (c.want != "") || string(tool.JSON) != c.want {
				t.Errorf("input %s\n got  %s\n want %s", c.input, tool.JSON, c.want)
			}
			if got := strings.Join(codes(tool.Warnings), " "); got != c.warnings {
				t.Errorf("input %s: warnings %s, want %s", c.input, got, c.warnings)
			}
			if tool.ShowsOutput != strings.Contains(c.want, `"outputSchema"`) {
				t.Errorf("shows output: %v", tool.ShowsOutput)
			}
		})
	}
}

func TestDefinitionParts(t *testing.T) {
	tool, ok := schema.Definition([]byte(`{"name":"t","description":"a\u00e9","inputSchema":{"properties":{"a b":{"type":"string"}}}}`), schema.Options{})
	if !ok || tool.Description != "aé" || string(tool.InputSchema) != `{"type":"object","properties":{"a_b":{"type":"string"}}}` || tool.Renames.Empty() {
		t.Errorf("got %+v", tool)
	}
}

func TestHeaders(t *testing.T) {
	for _, c := range []struct {
		name, schema string
		raw, shown   []schema.Header
		invalid      bool
	}{
		{"H16 primitives, in objects too",
			`{"type":"object","properties":{"a b":{"type":"string","x-mcp-header":"A-1"},"o":{"type":"object","properties":{"c/d":{"type":"integer","x-mcp-header":"n"},"e":{"type":["boolean"],"x-mcp-header":"B!"}}}}}`,
			[]schema.Header{{[]string{"a b"}, "A-1", "string"}, {[]string{"o", "c/d"}, "n", "integer"}, {[]string{"o", "e"}, "B!", "boolean"}},
			[]schema.Header{{[]string{"a_b"}, "A-1", "string"}, {[]string{"o", "c_d"}, "n", "integer"}, {[]string{"o", "e"}, "B!", "boolean"}}, false},
		{"H16 none", `{"type":"object","properties":{"x-mcp-header":{"type":"string","default":{"x-mcp-header":""}}}}`, nil, nil, false},
		{"H17 empty", `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, nil, nil, true},
		{"H17 no token", `{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}`, nil, nil, true},
		{"H17 a colon", `{"properties":{"a":{"type":"string","x-mcp-header":"a:"}}}`, nil, nil, true},
		{"H17 not ASCII", `{"properties":{"a":{"type":"string","x-mcp-header":"é"}}}`, nil, nil, true},
		{"H17 a line end", `{"properties":{"a":{"type":"string","x-mcp-header":"a\r\nX: y"}}}`, nil, nil, true},
		{"H17 no text", `{"properties":{"a":{"type":"string","x-mcp-header":null}}}`, nil, nil, true},
		{"H17 twice but for case", `{"properties":{"a":{"type":"string","x-mcp-header":"Dup"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"dUP"}}}}}`, nil, nil, true},
		{"H17 number", `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, nil, nil, true},
		{"H17 object", `{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`, nil, nil, true},
		{"H17 no type", `{"properties":{"a":{"x-mcp-header":"A"}}}`, nil, nil, true},
		{"H17 null among the types", `{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}`, nil, nil, true},
		{"H17 behind a reference", `{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string","x-mcp-header":"A"}}}`, nil, nil, true},
		{"H17 in items", `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`, nil, nil, true},
		{"H17 in an alternative", `{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, nil, nil, true},
		{"H17 in a condition", `{"if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, nil, nil, true},
		{"H17 in additionalProperties", `{"additionalProperties":{"type":"string","x-mcp-header":"A"}}`, nil, nil, true},
		{"H17 at the root", `{"type":"object","x-mcp-header":"A"}`, nil, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tool, ok := schema.Definition([]byte(`{"name":"t","inputSchema":`+c.schema+`}`), schema.Options{})
			if ok == c.invalid || !reflect.DeepEqual(tool.Raw, c.raw) || !reflect.DeepEqual(tool.Shown, c.shown) {
				t.Errorf("%s\n got  %v %v %v\n want %v %v", c.schema, ok, tool.Raw, tool.Shown, c.raw, c.shown)
			}
			if c.invalid && codes(tool.Warnings)[0] != "invalid_header" {
				t.Errorf("warnings %v", tool.Warnings)
			}
		})
	}
}

// A server that is asked for no headers keeps a tool with an annotation that would be
// invalid, and one that flattening makes reachable is shown like any other.
func TestHeadersIgnored(t *testing.T) {
	raw := []byte(`{"name":"t","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/A"},"b":{"type":"string","x-mcp-header":""}},"$defs":{"A":{"type":"string","x-mcp-header":"A"}}}}`)
	tool, ok := schema.Definition(raw, schema.Options{IgnoreHeaders: true})
	want := []schema.Header{{Path: []string{"a"}, Name: "A", Type: "string"}}
	if !ok || tool.Raw != nil || !reflect.DeepEqual(tool.Shown, want) {
		t.Errorf("got %v %v %v", ok, tool.Raw, tool.Shown)
	}
}

func TestCache(t *testing.T) {
	c := schema.NewCache(0)
	raw := []byte(`{"name":"t","description":"d"}`)
	title := "T"
	for _, o := range []schema.Options{{}, {Public: "p"}, {Title: &title}, {Description: &title}, {Mode: schema.Passthrough}, {Meta: []byte(`{"a":1}`)}, {DropOutput: true}, {IgnoreHeaders: true}} {
		want, _ := schema.Definition(raw, o)
		for range 2 {
			if got, ok := c.Definition(raw, o); !ok || string(got.JSON) != string(want.JSON) {
				t.Errorf("%+v: got %s, want %s", o, got.JSON, want.JSON)
			}
		}
	}
	for range 2 {
		if tool, ok := c.Definition([]byte(`{}`), schema.Options{}); ok || len(tool.Warnings) != 1 {
			t.Errorf("got %v %v", ok, tool.Warnings)
		}
	}
}

func TestModeOf(t *testing.T) {
	if schema.ModeOf("passthrough") != schema.Passthrough || schema.ModeOf("flatten") != schema.Flatten || schema.ModeOf("") != schema.Flatten {
		t.Error("modes")
	}
}
