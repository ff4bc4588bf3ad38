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

// A bomb says how a schema is made that is large only when written out.
type bomb struct {
	Kind   string
	Levels int
	Width  int
	Bytes  int
	Uses   int
}

func (b bomb) schema() string {
	switch b.Kind {
	case "fan_out":
		return b.fanOut(func(next string) string {
			var properties []string
			for i := range max(b.Width, 2) {
				properties = append(properties, fmt.Sprintf(`"p%d":{"$ref":%q}`, i, next))
			}
			return `{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`
		}, `{"type":"string"}`)
	case "all_of_fan_out":
		return b.fanOut(func(next string) string {
			return fmt.Sprintf(`{"allOf":[{"$ref":%q},{"$ref":%q}]}`, next, next)
		}, `{"type":"object","properties":{"s":{"type":"string"}}}`)
	case "big_text":
		return b.uses(`{"type":"string","description":"`+strings.Repeat("x", b.Bytes)+`"}`, "")
	case "self_references":
		return `{"type":"object","properties":{"x":{"$ref":"#/$defs/d"}},"$defs":{"d":` + b.uses("", strings.Repeat("x", b.Bytes)) + `}}`
	default:
		return strings.Repeat(`{"type":"object","properties":{"n":`, b.Levels) + `{"type":"string"}` + strings.Repeat(`}}`, b.Levels)
	}
}

// fanOut makes a chain of definitions, each of which uses the next one more than once.
func (b bomb) fanOut(link func(next string) string, last string) string {
	var defs strings.Builder
	for i := range b.Levels {
		fmt.Fprintf(&defs, `"d%d":%s,`, i, link(fmt.Sprintf("#/$defs/d%d", i+1)))
	}
	return fmt.Sprintf(`{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{%s"d%d":%s}}`, defs.String(), b.Levels, last)
}

// uses makes an object whose properties all refer to one definition.
func (b bomb) uses(definition, description string) string {
	var properties []string
	for i := range b.Uses {
		properties = append(properties, fmt.Sprintf(`"u%d":{"$ref":"#/$defs/d"}`, i))
	}
	out := `{"type":"object","properties":{` + strings.Join(properties, ",") + `}`
	if description != "" {
		out += `,"description":"` + description + `"`
	}
	if definition != "" {
		out += `,"$defs":{"d":` + definition + `}`
	}
	return out + `}`
}

// TestSchemaBudget has each bomb as a tool of a server of its own, so that one cannot hide behind another.
func TestSchemaBudget(t *testing.T) {
	t.Parallel()
	type budget struct {
		ID       string
		Build    bomb
		Expected struct {
			StringSchemas  int `json:"string_schemas"`
			MaxGrowthBytes int `json:"max_growth_bytes"`
		}
	}
	all := vectors[budget](t, "schema.json", "budget")
	var servers []run.Server
	for _, v := range all {
		servers = append(servers, run.HTTP(v.ID, fake.HTTP(t, fake.Options{Tools: []string{withSchema("t", v.Build.schema())}})))
	}
	m := run.Start(t, run.Of(servers...))
	start := time.Now()
	list := legacy(t, m).Tools()
	quick(t, "the first list", start, 7*time.Second+soon)
	for _, v := range all {
		definition := byName(t, list, strings.ToLower(v.ID)+"__t")
		if definition == nil {
			continue
		}
		schema := client.Member(definition, "inputSchema")
		if want := v.Expected.StringSchemas; want > 0 && countStrings(t, schema) != want {
			t.Errorf("%s: %d string schemas, want %d", v.ID, countStrings(t, schema), want)
		}
		if grown, limit := len(schema)-len(v.Build.schema()), v.Expected.MaxGrowthBytes; limit > 0 && grown > limit {
			t.Errorf("%s: grew by %d bytes, limit %d", v.ID, grown, limit)
		}
		if strings.Contains(string(schema), `"$ref"`) {
			t.Errorf("%s: a reference is left", v.ID)
		}
	}
}

func countStrings(t *testing.T, schema json.RawMessage) int {
	t.Helper()
	if !json.Valid(schema) {
		t.Fatalf("no JSON: %.100s", schema)
	}
	return strings.Count(client.Compact(schema), `"type":"string"`)
}
