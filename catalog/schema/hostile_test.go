package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/catalog/schema"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// within flattens a schema and fails if the result breaks the budget.
func within(t *testing.T, input string) json.RawMessage {
	t.Helper()
	if err := jsonrpc.Check([]byte(input)); err != nil {
		t.Fatalf("%.200s: %v", input, err)
	}
	var got json.RawMessage
	if took := quickest(func() { got, _, _ = schema.Input([]byte(input), schema.Flatten) }); took > slow*time.Second {
		t.Errorf("took %v", took)
	}
	t.Logf("%d bytes became %d", len(input), len(got))
	if len(got) > len(input)+1<<20 {
		t.Errorf("%d bytes became %d", len(input), len(got))
	}
	if err := jsonrpc.Check(got); err != nil {
		t.Error(err)
	}
	tool := []byte(`{"name":"t","inputSchema":` + input + `,"outputSchema":` + input + `}`)
	if took := quickest(func() { schema.Definition(tool, schema.Options{}) }); took > 2*slow*time.Second {
		t.Errorf("as a tool it took %v", took)
	}
	return got
}

// quickest returns how long f takes when the machine has time for it.
func quickest(f func()) time.Duration {
	best := time.Hour
	for range 3 {
		start := time.Now()
		f()
		if best = min(best, time.Since(start)); best < slow*time.Second {
			break
		}
	}
	return best
}

// join repeats a format n times, with #N for the number; less often under the race
// detector, which is not what large inputs are for.
func join(n int, format string) string {
	if n >= 1000 {
		n /= slow
	}
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(format, "#N+1", fmt.Sprint(i+1)), "#N", fmt.Sprint(i))
	}
	return strings.Join(parts, ",")
}

func TestHostile(t *testing.T) {
	object := func(s string) string { return `{"type":"object","properties":{` + s + `}}` }
	for name, input := range map[string]string{
		"T18 100,000 nodes":                object(join(100000, `"p#N":{"type":"string"}`)),
		"T18 100,000 references":           `{"properties":{` + join(100000, `"p#N":{"$ref":"#/$defs/T"}`) + `},"$defs":{"T":{"type":["string","number","integer","boolean","object","array","null"]}}}`,
		"T18 100,000 arrays":               object(join(100000, `"p#N":{"type":"array"}`)),
		"T18 a chain of references":        `{"$ref":"#/$defs/d0","$defs":{` + join(20000, `"d#N":{"$ref":"#/$defs/d#N+1"}`) + `}}`,
		"T18 a chain to null, often":       `{"properties":{` + join(20000, `"p#N":{"anyOf":[{"$ref":"#/$defs/d0"},{}]}`) + `},"$defs":{` + join(20000, `"d#N":{"$ref":"#/$defs/d#N+1"}`) + `,"d20000":{"type":"null"}}}`,
		"T18 branches with many names":     `{"allOf":[` + join(20000, `{"required":["r#N"],"properties":{"p#N":{}}}`) + `]}`,
		"T18 branches with one big enum":   `{"enum":[` + join(20000, `#N`) + `],"allOf":[` + join(20000, `{"enum":["x"]}`) + `]}`,
		"T18 branches that all differ":     `{"x-v":[` + join(20000, `{"a":#N}`) + `],"allOf":[` + join(20000, `{"x-v":#N}`) + `]}`,
		"T18 branches with their own keys": `{"allOf":[` + join(20000, `{"x-#N":#N}`) + `]}`,
		"T18 conflicts of their own":       `{"allOf":[` + join(20000, `{"x-#N":#N}`) + `,` + join(20000, `{"x-#N":"y"}`) + `]}`,
		"T18 multiples":                    `{"allOf":[` + join(5000, `{"multipleOf":1#N`+strings.Repeat("7", 250)+`}`) + `]}`,
		"T18 long numbers":                 `{"allOf":[` + join(200, `{"minimum":1#N`+strings.Repeat("7", 5000)+`}`) + `]}`,
		"T18 huge exponents":               `{"allOf":[` + join(2000, `{"minimum":1e99999999#N,"maximum":-1e#N999999999999999999999999,"multipleOf":1e999999999,"maxLength":1e999999999,"enum":[1e999999999]}`) + `]}`,
		"T18 deep":                         strings.Repeat(`{"not":`, 9000) + `{}` + strings.Repeat(`}`, 9000),
		"T18 deep branches":                strings.Repeat(`{"allOf":[`, 4000) + `{}` + strings.Repeat(`]}`, 4000),
		"T18 deep data":                    `{"allOf":[{"const":` + strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000) + `},{"const":1}]}`,
		"T18 deep with headers":            strings.Repeat(`{"properties":{"a":`, 4000) + `{"type":"string","x-mcp-header":"A"}` + strings.Repeat(`}}`, 4000),
		"T18 deep alternatives":            strings.Repeat(`{"anyOf":[{"type":"null"},`, 4000) + `{}` + strings.Repeat(`]}`, 4000),
		"T18 many small alternatives":      `{"properties":{` + join(3000, `"p#N":{"$ref":"#/$defs/A"}`) + `},"$defs":{"A":{"oneOf":[` + join(500, `{"const":#N}`) + `]}}}`,
		"T18 long pointers":                `{"properties":{` + join(100, `"p#N":{"$ref":"#/$defs/#N`+strings.Repeat("/x", 20000)+`"}`) + `}}`,
		"T18 anchors":                      `{"properties":{` + join(20000, `"p#N":{"$ref":"#a#N"}`) + `},"$defs":{` + join(20000, `"d#N":{"$anchor":"a#N","type":"string"}`) + `}}`,
		"T18 required of its own":          object(join(20000, `"p#N":{"required":true}`)),
		"T18 tiny targets":                 `{"allOf":[` + join(40000, `{"$ref":"#/$defs/a"}`) + `],"$defs":{"a":{}}}`,
		"T18 wide fan-out":                 string(build{Kind: "fan_out", Levels: 12, Width: 20}.schema()),
		"T18 fan-out of branches":          string(build{Kind: "all_of_fan_out", Levels: 12, Width: 20}.schema()),
		"T18 mutual recursion, wide":       `{"$ref":"#/$defs/d0","$defs":{` + join(40, `"d#N":{"type":"object","properties":{`+strings.ReplaceAll(join(40, `"p@":{"$ref":"#/$defs/d#N"}`), "@", "")+`}}`) + `}}`,
		"T18 a big schema in a reference":  `{"$ref":"#/$defs/A","$defs":{"A":` + object(join(5000, `"p#N":{"type":"string","description":"0123456789"}`)) + `}}`,
		"T18 stubs with long texts":        string(build{Kind: "self_references", Bytes: 60000, Uses: 5000}.schema()),
	} {
		t.Run(name, func(t *testing.T) { within(t, input) })
	}
}

func TestBudget(t *testing.T) {
	uses := func(n, size int) string {
		target := `{"type":"string","title":"` + strings.Repeat("t", size-len(`{"type":"string","title":""}`)) + `"}`
		return `{"type":"object","properties":{` + join(n, `"p#N":{"$ref":"#/$defs/T"}`) + `},"$defs":{"T":` + target + `}}`
	}
	// fewer than 64 KiB come from references: all of it is there
	if got := within(t, uses(65, 1008)); strings.Count(string(got), `"title"`) != 65 {
		t.Errorf("%d of 65 targets written out", strings.Count(string(got), `"title"`))
	}
	nested := strings.Repeat(`{"type":"array","items":`, 31) + `{"title":"t"}` + strings.Repeat(`}`, 31)
	if got := within(t, `{"properties":{"x":`+strings.Repeat(`{"type":"array","items":`, 30)+`{"title":"t"}`+strings.Repeat(`}`, 30)+`}}`); !strings.Contains(string(got), `"title"`) {
		t.Errorf("32 schemas in one another were cut: %s", got)
	}
	if got := within(t, `{"properties":{"x":`+nested+`}}`); strings.Contains(string(got), `"title"`) {
		t.Errorf("33 schemas in one another were not cut: %s", got)
	}
}
