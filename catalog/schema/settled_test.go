package schema

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// What is settled has to be what the flattener would leave alone.
func FuzzSettled(f *testing.F) {
	var vectors struct {
		Schemas []struct{ Input json.RawMessage }
	}
	b, err := os.ReadFile("testdata/schema.json")
	if err != nil || json.Unmarshal(b, &vectors) != nil {
		f.Fatal("no vectors")
	}
	for _, s := range vectors.Schemas {
		f.Add([]byte(s.Input))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if jsonrpc.Check(raw) != nil || !jsonrpc.IsObject(raw) {
			return
		}
		compact := jsonrpc.Compact(nil, raw)
		if !settled(parse(compact)) {
			return
		}
		var w warnings
		if got, renames := flatten(parse(compact), &w, len(compact)); string(got) != string(compact) || len(w.list) > 0 || !renames.Empty() {
			t.Fatalf("settled: %s\nbut flattened: %s %v", compact, got, w.list)
		}
	})
}

const ordinary = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{` +
	`"owner":{"type":"string","description":"Repository owner, a user or an organization"},` +
	`"repo":{"type":"string","description":"Repository name"},` +
	`"state":{"type":"string","enum":["open","closed","all"],"default":"open","description":"Which issues to list"},` +
	`"labels":{"type":"array","items":{"type":"string","minLength":1},"description":"Labels that each issue has to have"},` +
	`"page":{"type":"integer","minimum":1,"maximum":1000,"default":1},"per_page":{"type":"integer","minimum":1,"maximum":100},` +
	`"filter":{"type":"object","properties":{"since":{"type":"string","format":"date-time"},"author":{"type":"string"}},"required":["since"],"additionalProperties":false}},` +
	`"required":["owner","repo"],"additionalProperties":false}`

const referring = `{"type":"object","properties":{"place":{"$ref":"#/$defs/Place"},"when":{"anyOf":[{"$ref":"#/$defs/Span"},{"type":"null"}],"default":null},` +
	`"filters":{"type":"array","items":{"allOf":[{"$ref":"#/$defs/Base"},{"properties":{"value":{"type":"string"}}}]}}},` +
	`"$defs":{"Place":{"type":"object","title":"Place","properties":{"city":{"type":"string"},"geo":{"$ref":"#/$defs/Geo"}},"required":["city"]},` +
	`"Geo":{"type":"object","properties":{"lat":{"type":"number"},"lon":{"type":"number"}}},"Span":{"type":"object","properties":{"from":{"type":"string"},"to":{"type":"string"}}},` +
	`"Base":{"type":"object","properties":{"field":{"type":"string"},"op":{"enum":["eq","lt"]}},"required":["field"]}}}`

func BenchmarkInput(b *testing.B) {
	for name, raw := range map[string]string{"settled": ordinary, "references": referring, "names": strings.ReplaceAll(ordinary, `"owner"`, `"the owner"`)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				Input([]byte(raw), Flatten)
			}
		})
	}
}

func BenchmarkDefinition(b *testing.B) {
	raw := []byte(`{"name":"list_issues","description":"Lists the issues of a repository","inputSchema":` + ordinary + `,"annotations":{"readOnlyHint":true}}`)
	b.Run("made", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Definition(raw, Options{Public: "github__list_issues"})
		}
	})
	cache := NewCache(10)
	b.Run("cached", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			cache.Definition(raw, Options{Public: "github__list_issues"})
		}
	})
}
