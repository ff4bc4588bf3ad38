package schema_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/catalog/schema"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

var legalName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// flat fails if something remains in a flattened schema that should be gone, wherever a
// schema can stand.
func flat(t *testing.T, raw json.RawMessage, depth int) {
	t.Helper()
	if depth > 33 {
		t.Fatalf("%d schemas in one another", depth)
	}
	for m := range jsonrpc.Members(raw) {
		name := m.Name()
		switch name {
		case "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "$defs", "definitions", "$id", "$anchor", "$comment":
			t.Fatalf("%s remains in %s", name, raw)
		case "properties", "patternProperties", "dependentSchemas", "dependencies":
			for p := range jsonrpc.Members(m.Value) {
				if name == "properties" && !legalName.Match(p.Key) {
					t.Fatalf("property %q in %s", p.Key, raw)
				}
				if name == "properties" && !jsonrpc.IsObject(p.Value) {
					t.Fatalf("property %q is %s", p.Key, p.Value)
				}
				flat(t, p.Value, depth+1)
			}
		case "prefixItems":
			for e := range jsonrpc.Elements(m.Value) {
				flat(t, e, depth+1)
			}
		case "items", "additionalItems", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames", "not", "if", "then", "else":
			if c := m.Value[0]; c != '{' && c != 't' && c != 'f' {
				t.Fatalf("%s is %s", name, m.Value)
			}
			flat(t, m.Value, depth+1)
		}
	}
}

func seed(f *testing.F) {
	v := load(f)
	for _, s := range v.Schemas {
		f.Add([]byte(s.Input))
	}
	for _, s := range v.Tools {
		f.Add([]byte(jsonrpc.Get(s.Input, "inputSchema")))
	}
	for _, b := range v.Budget {
		if b.Build.Bytes == 0 {
			f.Add(b.Build.schema())
		}
	}
	for _, r := range rules {
		f.Add([]byte(r.input))
	}
}

func FuzzInput(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if jsonrpc.Check(raw) != nil {
			return
		}
		for _, mode := range []schema.Mode{schema.Flatten, schema.Passthrough} {
			got, _, _ := schema.Input(raw, mode)
			if err := jsonrpc.Check(got); err != nil {
				t.Fatalf("no JSON: %s: %v", got, err)
			}
			if len(got) > len(raw)+1<<20 {
				t.Fatalf("%d bytes became %d", len(raw), len(got))
			}
			if compact(jsonrpc.Get(got, "type")) != `"object"` {
				t.Fatalf("no object: %s", got)
			}
			if p := jsonrpc.Get(got, "properties"); p != nil && !jsonrpc.IsObject(p) || p == nil && mode == schema.Flatten {
				t.Fatalf("properties: %s", got)
			}
			if mode == schema.Flatten {
				flat(t, got, 1)
			}
			again, renames, _ := schema.Input(got, mode)
			if string(again) != string(got) || !renames.Empty() {
				t.Fatalf("not stable:\n %s\n %s", got, again)
			}
			second, _, _ := schema.Input(raw, mode)
			if string(second) != string(got) {
				t.Fatalf("not the same twice:\n %s\n %s", got, second)
			}
		}
		if out, w := schema.Output(raw); out != nil {
			if compact(jsonrpc.Get(out, "type")) != `"object"` {
				t.Fatalf("output schema: %s", out)
			}
		} else if len(w) == 0 {
			t.Fatal("output schema dropped without a warning")
		}
	})
}

func FuzzDefinition(f *testing.F) {
	for _, v := range load(f).Tools {
		f.Add([]byte(v.Input), "a__b", "d", []byte(`{"k":1}`))
	}
	f.Add([]byte(`{"name":"t","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`), "", "", []byte(nil))
	f.Fuzz(func(t *testing.T, raw []byte, public, description string, meta []byte) {
		if jsonrpc.Check(raw) != nil || len(meta) > 0 && (jsonrpc.Check(meta) != nil || !jsonrpc.IsObject(meta)) {
			return
		}
		if strings.TrimSpace(public) == "" {
			public = ""
		}
		tool, ok := schema.Definition(raw, schema.Options{Public: public, Description: &description, Meta: meta})
		if !ok {
			if len(tool.Warnings) == 0 {
				t.Fatal("left out without a warning")
			}
			return
		}
		if err := jsonrpc.Check(tool.JSON); err != nil {
			t.Fatalf("no JSON: %s: %v", tool.JSON, err)
		}
		seen := map[string]bool{}
		for m := range jsonrpc.Members(tool.JSON) {
			if seen[string(m.Key)] {
				t.Fatalf("%s twice in %s", m.Key, tool.JSON)
			}
			seen[string(m.Key)] = true
		}
		var typed struct {
			Name, Title, Description string
			InputSchema              map[string]json.RawMessage
			OutputSchema             map[string]json.RawMessage
			Annotations              map[string]json.RawMessage
			Execution                struct{ TaskSupport string }
			Meta                     map[string]json.RawMessage `json:"_meta"`
			Icons                    []struct {
				Src, MimeType, Theme string
				Sizes                []string
			}
		}
		if folded(tool.JSON) {
			return // encoding/json would mistake another member for a known one
		}
		if err := json.Unmarshal(tool.JSON, &typed); err != nil {
			t.Fatalf("a strict client refuses %s: %v", tool.JSON, err)
		}
		if again, ok := schema.Definition(tool.JSON, schema.Options{}); !ok || string(again.JSON) != string(tool.JSON) {
			t.Fatalf("not stable:\n %s\n %s", tool.JSON, again.JSON)
		}
	})
}

// folded reports whether some name in a value is not spelled in lower camel case as the
// known members are.
func folded(raw []byte) bool {
	known := []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution", "taskSupport", "_meta", "icons", "src", "mimeType", "theme", "sizes"}
	odd := false
	var look func([]byte)
	look = func(v []byte) {
		for m := range jsonrpc.Members(v) {
			for _, k := range known {
				odd = odd || strings.EqualFold(m.Name(), k) && m.Name() != k
			}
			look(m.Value)
		}
		for e := range jsonrpc.Elements(v) {
			look(e)
		}
	}
	look(raw)
	return odd
}

func FuzzRestore(f *testing.F) {
	for _, v := range load(f).Schemas {
		for _, a := range v.Arguments {
			f.Add([]byte(v.Input), []byte(a.Public))
		}
	}
	f.Add([]byte(`{"properties":{"a b":{"prefixItems":[{"properties":{"c d":{}}}],"items":{"properties":{"e f":{}}}}}}`), []byte(` { "a_b" : [ {"c_d":1} , {"e_f":[]} ] } `))
	f.Fuzz(func(t *testing.T, raw, args []byte) {
		if jsonrpc.Check(raw) != nil || jsonrpc.Check(args) != nil {
			return
		}
		_, renames, _ := schema.Input(raw, schema.Flatten)
		at := 0
		for _, e := range renames.Restore(args) {
			if e.Start < at || e.End > len(args) || e.Start >= e.End || args[e.Start] != '"' || args[e.End-1] != '"' {
				t.Fatalf("edit %+v of %s", e, args)
			}
			at = e.End
		}
		if got := restore(renames, args); jsonrpc.Check(got) != nil {
			t.Fatalf("%s became %s", args, got)
		}
	})
}
