package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mainstem-mcp/mainstem/catalog/schema"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

type vectors struct {
	Schemas []struct {
		ID, Title string
		Input     json.RawMessage
		Expected  struct{ Flatten, Passthrough json.RawMessage }
		Warnings  []string
		Arguments []struct{ Public, Upstream json.RawMessage }
	}
	Tools []struct {
		ID, Title, Output string
		Input             json.RawMessage
		Override          struct {
			Title, Description *string
			Meta               json.RawMessage
		}
		Expected struct{ Flatten, Passthrough json.RawMessage }
		Warnings []string
	}
	Lists []struct {
		ID, Title       string
		Input, Expected []json.RawMessage
	}
	Budget []struct {
		ID, Title string
		Build     build
		Expected  struct {
			StringSchemas  int `json:"string_schemas"`
			MaxGrowthBytes int `json:"max_growth_bytes"`
			MaxSeconds     int `json:"max_seconds"`
		}
	}
}

func load(t testing.TB) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func compact(b []byte) string { return string(jsonrpc.Compact(nil, b)) }

func codes(w []schema.Warning) []string {
	var c []string
	for _, one := range w {
		c = append(c, one.Code)
	}
	slices.Sort(c)
	return c
}

// check compares a result with what a vector expects: a value, or "unchanged".
func check(t *testing.T, input, want json.RawMessage, got []byte) {
	t.Helper()
	expected := compact(want)
	if expected == `"unchanged"` {
		expected = compact(input)
	}
	if string(got) != expected {
		t.Errorf("input %s\n got  %s\n want %s", input, got, expected)
	}
}

func TestVectorSchemas(t *testing.T) {
	for _, v := range load(t).Schemas {
		t.Run(v.ID, func(t *testing.T) {
			got, renames, warnings := schema.Input(v.Input, schema.Flatten)
			check(t, v.Input, v.Expected.Flatten, got)
			slices.Sort(v.Warnings)
			if !slices.Equal(codes(warnings), v.Warnings) {
				t.Errorf("warnings %v, want %v", codes(warnings), v.Warnings)
			}
			compiles(t, got)
			for _, a := range v.Arguments {
				check(t, a.Public, a.Upstream, restore(renames, []byte(compact(a.Public))))
			}
			passed, renames, _ := schema.Input(v.Input, schema.Passthrough)
			check(t, v.Input, v.Expected.Passthrough, passed)
			if !renames.Empty() {
				t.Error("passthrough renamed something")
			}
		})
	}
}

// restore gives arguments the server's names, as a call does.
func restore(r schema.Renames, args []byte) []byte {
	var out []byte
	at := 0
	for _, e := range r.Restore(args) {
		out = append(append(out, args[at:e.Start]...), e.With...)
		at = e.End
	}
	return append(out, args[at:]...)
}

// compiles checks that a schema is valid in its dialect.
func compiles(t *testing.T, raw json.RawMessage) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///s.json", doc); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compile("mem:///s.json"); err != nil {
		t.Errorf("%s does not compile: %v", raw, err)
	}
}

func TestVectorTools(t *testing.T) {
	for _, v := range load(t).Tools {
		for mode, want := range map[schema.Mode]json.RawMessage{schema.Flatten: v.Expected.Flatten, schema.Passthrough: v.Expected.Passthrough} {
			t.Run(fmt.Sprintf("%s/%d", v.ID, mode), func(t *testing.T) {
				o := schema.Options{Mode: mode, Title: v.Override.Title, Description: v.Override.Description, Meta: v.Override.Meta, DropOutput: v.Output == "text"}
				tool, ok := schema.Definition(v.Input, o)
				if ok == (compact(want) == "null") {
					t.Fatalf("listed: %v", ok)
				}
				if ok {
					check(t, v.Input, want, tool.JSON)
				}
				if slices.Sort(v.Warnings); mode == schema.Flatten && !slices.Equal(codes(tool.Warnings), v.Warnings) {
					t.Errorf("warnings %v, want %v", codes(tool.Warnings), v.Warnings)
				}
			})
		}
	}
}

// Order and repetitions are the catalog's matter; here each tool of a list by itself.
func TestVectorLists(t *testing.T) {
	for _, v := range load(t).Lists {
		t.Run(v.ID, func(t *testing.T) {
			want := map[string]string{}
			for _, tool := range v.Expected {
				want[compact(jsonrpc.Get(tool, "name"))] = compact(tool)
			}
			for _, raw := range v.Input {
				tool, ok := schema.Definition(raw, schema.Options{})
				name := compact(jsonrpc.Get(raw, "name"))
				if expected, listed := want[name]; listed != ok || ok && string(tool.JSON) != expected {
					t.Errorf("%s\n got  %s\n want %s", raw, tool.JSON, expected)
				}
				delete(want, name)
				if name == `"x"` { // a second definition of that name is left out by its caller
					break
				}
			}
		})
	}
}

type build struct {
	Kind                       string
	Levels, Width, Bytes, Uses int
}

// schema makes the input that a vector of the budget describes.
func (b build) schema() []byte {
	var s strings.Builder
	switch b.Kind {
	case "fan_out", "all_of_fan_out":
		width := max(b.Width, 2)
		s.WriteString(`{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{`)
		for level := range b.Levels {
			var parts []string
			for i := range width {
				ref := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, level+1)
				if b.Kind == "fan_out" {
					ref = fmt.Sprintf(`"p%d":%s`, i, ref)
				}
				parts = append(parts, ref)
			}
			if b.Kind == "fan_out" {
				fmt.Fprintf(&s, `"d%d":{"type":"object","properties":{%s}},`, level, strings.Join(parts, ","))
			} else {
				fmt.Fprintf(&s, `"d%d":{"allOf":[%s]},`, level, strings.Join(parts, ","))
			}
		}
		last := `{"type":"string"}`
		if b.Kind != "fan_out" {
			last = `{"type":"object","properties":{"s":{"type":"string"}}}`
		}
		fmt.Fprintf(&s, `"d%d":%s}}`, b.Levels, last)
	case "big_text", "self_references":
		s.WriteString(`{"type":"object","properties":{`)
		var uses []string
		for i := range b.Uses {
			uses = append(uses, fmt.Sprintf(`"u%d":{"$ref":"#/$defs/t"}`, i))
		}
		long := strings.Repeat("d", b.Bytes)
		if b.Kind == "big_text" {
			fmt.Fprintf(&s, `%s},"$defs":{"t":{"type":"string","description":"%s"}}}`, strings.Join(uses, ","), long)
		} else {
			fmt.Fprintf(&s, `"x":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"object","description":"%s","properties":{%s}}}}`, long, strings.Join(uses, ","))
		}
	case "nest":
		s.WriteString(`{"type":"object","properties":{"x":`)
		s.WriteString(strings.Repeat(`{"type":"object","properties":{"x":`, b.Levels))
		s.WriteString(`{"type":"string"}` + strings.Repeat(`}}`, b.Levels+1))
	}
	return []byte(s.String())
}

func TestVectorBudget(t *testing.T) {
	for _, v := range load(t).Budget {
		t.Run(v.ID, func(t *testing.T) {
			input := v.Build.schema()
			var got json.RawMessage
			var warnings []schema.Warning
			if took := quickest(func() { got, _, warnings = schema.Input(input, schema.Flatten) }); took > slow*time.Second {
				t.Errorf("took %v", took)
			}
			if len(got) > len(input)+1<<20 {
				t.Errorf("%d bytes became %d", len(input), len(got))
			}
			if n := strings.Count(string(got), `"type":"string"`); v.Expected.StringSchemas > 0 && n != v.Expected.StringSchemas {
				t.Errorf("%d string schemas, want %d", n, v.Expected.StringSchemas)
			}
			if v.Expected.StringSchemas == 0 && len(warnings) == 0 {
				t.Error("cut without a warning")
			}
			compiles(t, got)
		})
	}
}
