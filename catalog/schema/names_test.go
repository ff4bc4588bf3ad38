package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/catalog/schema"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("n", 60)
	for _, c := range []struct {
		name, input, want string
		args, upstream    string // nothing: not tried
	}{
		{"an empty name",
			`{"type":"object","properties":{"":{},"_":{}}}`, `{"type":"object","properties":{"__2":{},"_":{}}}`,
			`{"__2":1,"_":2,"":3}`, `{"":1,"_":2,"":3}`},
		{"case counts",
			`{"type":"object","properties":{"A b":{},"a b":{},"a_B":{}}}`, `{"type":"object","properties":{"A_b":{},"a_b":{},"a_B":{}}}`,
			`{"a_b":1,"A_b":2}`, `{"a b":1,"A b":2}`},
		{"one character, one underscore",
			`{"type":"object","properties":{"né中🚀":{}}}`, `{"type":"object","properties":{"n___":{}}}`,
			`{"n___":1}`, `{"né中🚀":1}`},
		{"64 characters stay, bytes do not count",
			`{"type":"object","properties":{"` + long + `éééé":{}}}`, `{"type":"object","properties":{"` + long + `____":{}}}`, "", ""},
		{"the head loses what would end it",
			`{"type":"object","properties":{"` + long[:50] + ` . - ` + long + `":{}}}`,
			`{"type":"object","properties":{"` + long[:50] + `_c12f3f43":{}}}`, "", ""},
		{"numbers make room",
			`{"type":"object","properties":{"` + long + `aa b":{},"` + long + `aa_b":{}}}`,
			`{"type":"object","properties":{"` + long + `aa_2":{},"` + long + `aa_b":{}}}`, "", ""},
		{"numbers that are taken",
			`{"type":"object","properties":{"a b":{},"a_b":{},"a_b_2":{},"a/b":{}}}`,
			`{"type":"object","properties":{"a_b_3":{},"a_b":{},"a_b_2":{},"a_b_4":{}}}`, "", ""},
		{"a name that only required has is not given away",
			`{"type":"object","properties":{"a b":{}},"required":["a_b","a b"]}`, `{"type":"object","properties":{"a_b_2":{}},"required":["a_b","a_b_2"]}`, "", ""},
		{"wherever the schema speaks of them",
			`{"type":"object","properties":{"a b":{},"c d":{}},"required":["a b"],"dependentRequired":{"a b":["c d"]},"dependentSchemas":{"a b":{"required":["c d"]}},` +
				`"dependencies":{"a b":["c d"],"c d":{"required":["a b"]}},"not":{"required":["c d","a b"]},"if":{"properties":{"a b":{"const":1}}},"then":{"required":["c d"]},"else":{"properties":{"e f":{"type":"object","properties":{"g h":{}}}}}}`,
			`{"type":"object","properties":{"a_b":{},"c_d":{}},"required":["a_b"],"dependentRequired":{"a_b":["c_d"]},"dependentSchemas":{"a_b":{"required":["c_d"]}},` +
				`"dependencies":{"a_b":["c_d"],"c_d":{"required":["a_b"]}},"not":{"required":["c_d","a_b"]},"if":{"properties":{"a_b":{"const":1}}},"then":{"required":["c_d"]},"else":{"properties":{"e_f":{"type":"object","properties":{"g_h":{}}}}}}`,
			`{"a_b":1,"e_f":{"g_h":2}}`, `{"a b":1,"e f":{"g h":2}}`},
		{"an object that two schemas describe",
			`{"type":"object","properties":{"o":{"properties":{"a b":{}}}},"then":{"properties":{"o":{"properties":{"a/b":{},"a_b":{}}}}}}`,
			`{"type":"object","properties":{"o":{"properties":{"a_b_2":{}}}},"then":{"properties":{"o":{"properties":{"a_b_3":{},"a_b":{}}}}}}`,
			`{"o":{"a_b":1,"a_b_2":2,"a_b_3":3}}`, `{"o":{"a_b":1,"a b":2,"a/b":3}}`},
		{"tuples, further elements and contains",
			`{"type":"object","properties":{"l":{"type":"array","prefixItems":[{"type":"object","properties":{"a b":{}}},{"type":"string"}],"items":{"type":"object","properties":{"c d":{}}},"contains":{"properties":{"c d":{"const":1}}}}}}`,
			`{"type":"object","properties":{"l":{"type":"array","prefixItems":[{"type":"object","properties":{"a_b":{}}},{"type":"string"}],"items":{"type":"object","properties":{"c_d":{}}},"contains":{"properties":{"c_d":{"const":1}}}}}}`,
			` { "l" : [ {"a_b": 1.50, "c_d": 1} , "a_b" , {"c_d":{}} , [ ] ] , "a_b":0 }`, ` { "l" : [ {"a b": 1.50, "c_d": 1} , "a_b" , {"c d":{}} , [ ] ] , "a_b":0 }`},
		{"maps and patterns",
			`{"type":"object","properties":{"p":{"type":"string"}},"patternProperties":{"^x":{"properties":{"a b":{}}}},"additionalProperties":{"properties":{"c d":{}}}}`,
			`{"type":"object","properties":{"p":{"type":"string"}},"patternProperties":{"^x":{"properties":{"a_b":{}}}},"additionalProperties":{"properties":{"c_d":{}}}}`,
			`{"p":{"c_d":1},"xx":{"a_b":1},"other":{"c_d":1}}`, `{"p":{"c_d":1},"xx":{"a b":1},"other":{"c d":1}}`},
		{"a pattern that is none",
			`{"type":"object","properties":{},"patternProperties":{"(?<n":{"properties":{"a b":{}}}},"required":["x y",1]}`,
			`{"type":"object","properties":{},"patternProperties":{"(?<n":{"properties":{"a_b":{}}}},"required":["x y"]}`,
			`{"q":{"a_b":1},"x y":0}`, `{"q":{"a_b":1},"x y":0}`},
		{"a name with escapes, in the schema and in the arguments",
			`{"type":"object","properties":{"a\"\n\u00e9":{}}}`, `{"type":"object","properties":{"a___":{}}}`,
			`{"\u0061___":1}`, `{"a\"\né":1}`},
		{"through a reference",
			`{"type":"object","properties":{"x":{"$ref":"#/$defs/A"},"y":{"$ref":"#/$defs/A"}},"$defs":{"A":{"properties":{"a b":{}},"required":["a b"]}}}`,
			`{"type":"object","properties":{"x":{"properties":{"a_b":{}},"required":["a_b"]},"y":{"properties":{"a_b":{}},"required":["a_b"]}}}`,
			`{"x":{"a_b":1},"y":{"a_b":[]}}`, `{"x":{"a b":1},"y":{"a b":[]}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, renames, warnings := schema.Input([]byte(c.input), schema.Flatten)
			if string(got) != c.want {
				t.Errorf("input %s\n got  %s\n want %s", c.input, got, c.want)
			}
			if renames.Empty() != (c.name == "a pattern that is none") || codes(warnings)[len(warnings)-1] != "renamed_property" {
				t.Errorf("renames %v, warnings %v", !renames.Empty(), codes(warnings))
			}
			if back := restore(renames, []byte(c.args)); string(back) != c.upstream {
				t.Errorf("arguments %s\n got  %s\n want %s", c.args, back, c.upstream)
			}
		})
	}
}

func TestNothingToRestore(t *testing.T) {
	var none schema.Renames
	if !none.Empty() || none.Restore([]byte(`{"a":[1]}`)) != nil {
		t.Error("the zero value renames something")
	}
	_, renames, _ := schema.Input([]byte(`{"properties":{"a b":{}}}`), schema.Flatten)
	for _, args := range []string{`null`, `[{"a_b":1}]`, `"a_b"`, `{}`} {
		if edits := renames.Restore([]byte(args)); edits != nil {
			t.Errorf("%s: %v", args, edits)
		}
	}
}

func TestManyIllegalNames(t *testing.T) {
	var s strings.Builder
	s.WriteString(`{"type":"object","properties":{`)
	for i := range 20000 {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, `"%c":{}`, 0x4e00+i)
	}
	s.WriteString("}}")
	got := within(t, s.String())
	if !strings.Contains(string(got), `"__20000":{}`) || jsonrpc.Check(got) != nil {
		t.Errorf("%.100s", got)
	}
}
