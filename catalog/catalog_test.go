package catalog_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/catalog"
	"github.com/mainstem-mcp/mainstem/catalog/listing"
	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/naming"
	"github.com/mainstem-mcp/mainstem/protocol"
)

var info = protocol.Info("test")

func listed(t testing.TB, tools ...string) *listing.Listing {
	t.Helper()
	var b listing.Builder
	if _, err := b.Add(listing.Tools, []byte(`{"tools":[`+strings.Join(tools, ",")+`]}`)); err != nil {
		t.Fatal(err)
	}
	return b.Done()
}

func tool(name string) string {
	return fmt.Sprintf(`{"name":%s,"inputSchema":{"type":"object","properties":{}}}`, jsonrpc.AppendQuote(nil, name))
}

func source(t testing.TB, name string, tools ...string) catalog.Source {
	t.Helper()
	return catalog.Source{
		Server:  &config.Server{Name: name, Enabled: true, Schema: "flatten", Output: "mixed", Hash: name},
		Listing: listed(t, tools...),
	}
}

func configured() *config.Config { return &config.Config{Naming: naming.Defaults()} }

// list decodes what clients of an era see.
func list(t testing.TB, v *catalog.View, era protocol.Era) (tools []json.RawMessage, names []string) {
	t.Helper()
	b := v.List(listing.Tools, era)
	if err := jsonrpc.Check(b); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	for e := range jsonrpc.Elements(jsonrpc.Get(b, "tools")) {
		name, _ := jsonrpc.Unquote(jsonrpc.Get(e, "name"))
		tools, names = append(tools, e), append(names, name)
	}
	return tools, names
}

func TestNamingVectors(t *testing.T) {
	raw, err := os.ReadFile("../naming/testdata/naming.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			ID      string
			Options struct {
				Mode      string
				MaxLength int `json:"max_length"`
				Charset   string
				Reserved  []string
			}
			Servers []struct {
				Name      string
				Tools     []string
				Overrides map[string]string // raw name to the configured one
				Enabled   []string          `json:"enabled_tools"`
				Disabled  []string          `json:"disabled_tools"`
			}
			Expected struct {
				Tools []struct{ Server, Raw, Public string }
			}
			Unknown []string
			View    any // of a later kind
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, v := range file.Vectors {
		if v.Expected.Tools == nil || v.View != nil {
			continue
		}
		ran++
		cfg := &config.Config{Naming: naming.Options{Mode: v.Options.Mode, MaxLength: v.Options.MaxLength, Charset: v.Options.Charset, Reserved: v.Options.Reserved}}
		var sources []catalog.Source
		for _, s := range v.Servers {
			var tools []string
			for _, name := range s.Tools {
				tools = append(tools, tool(name))
			}
			src := source(t, s.Name, tools...)
			src.Server.EnabledTools, src.Server.DisabledTools = s.Enabled, s.Disabled
			src.Server.Tools = map[string]config.Override{}
			for rawName, o := range s.Overrides {
				src.Server.Tools[rawName] = config.Override{Name: &o}
			}
			sources = append(sources, src)
		}
		c := catalog.Build(nil, cfg, info, sources)
		_, names := list(t, c.All(), protocol.Legacy)
		if len(names) != len(v.Expected.Tools) {
			t.Errorf("%s: %q", v.ID, names)
			continue
		}
		for i, want := range v.Expected.Tools {
			e, ok := c.All().Find(listing.Tools, want.Public)
			if names[i] != want.Public || !ok || e.Ref != (naming.Ref{Server: want.Server, Raw: want.Raw}) {
				t.Errorf("%s: place %d is %q and leads to %+v, want %+v", v.ID, i, names[i], e.Ref, want)
			}
		}
		for _, name := range v.Unknown {
			if e, ok := c.All().Find(listing.Tools, name); ok {
				t.Errorf("%s: %q leads to %+v", v.ID, name, e.Ref)
			}
		}
	}
	if ran < 30 {
		t.Fatalf("only %d vectors ran", ran)
	}
}

func TestListVectors(t *testing.T) {
	raw, err := os.ReadFile("schema/testdata/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Lists []struct {
			ID              string
			Input, Expected []json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	for _, v := range file.Lists {
		var tools []string
		for _, e := range v.Input {
			tools = append(tools, string(e))
		}
		c := catalog.Build(nil, configured(), info, []catalog.Source{source(t, "s", tools...)})
		got, _ := list(t, c.Alone("s"), protocol.Legacy)
		if len(got) != len(v.Expected) {
			t.Errorf("%s: %d tools, want %d", v.ID, len(got), len(v.Expected))
			continue
		}
		for i := range got {
			if want := string(jsonrpc.Compact(nil, v.Expected[i])); string(got[i]) != want {
				t.Errorf("%s: %s, want %s", v.ID, got[i], want)
			}
		}
	}
}

func TestListsOfBothEras(t *testing.T) {
	c := catalog.Build(nil, configured(), info, []catalog.Source{source(t, "s", tool("a"))})
	legacy := string(c.All().List(listing.Tools, protocol.Legacy))
	if want := `{"tools":[{"name":"s__a","inputSchema":{"type":"object","properties":{}}}]}`; legacy != want {
		t.Errorf("legacy %s, want %s", legacy, want)
	}
	modern := c.All().List(listing.Tools, protocol.Modern)
	if string(jsonrpc.Get(modern, "resultType")) != `"complete"` || string(jsonrpc.Get(modern, "cacheScope")) != `"public"` || jsonrpc.Get(modern, "ttlMs") == nil {
		t.Errorf("modern %s", modern)
	}
	if none, _ := list(t, catalog.Build(nil, configured(), info, nil).All(), protocol.Modern); len(none) != 0 {
		t.Errorf("nothing configured lists %s", none)
	}
}

func TestFiltersOverridesAndWarnings(t *testing.T) {
	src := source(t, "s", tool("get_a"), tool("drop"), `{"name":"odd","title":7,"inputSchema":null}`, tool("get_a"), `{"name":" "}`)
	title := "Better"
	src.Server.DisabledTools = []string{"dro*", "nope"}
	src.Server.Tools = map[string]config.Override{"get_a": {Title: &title, Meta: json.RawMessage(`{"k":1}`)}}
	c := catalog.Build(nil, configured(), info, []catalog.Source{src})
	if _, names := list(t, c.All(), protocol.Legacy); strings.Join(names, " ") != "s__get_a s__odd" {
		t.Errorf("listed %q", names)
	}
	if _, ok := c.All().Find(listing.Tools, "s__drop"); ok {
		t.Error("a filtered tool is found")
	}
	tools := c.Tools("s")
	if len(tools) != 3 || !tools[0].Enabled || tools[0].Title != "Better" || tools[2].Enabled || tools[2].Ref.Raw != "drop" || tools[2].Public != "" {
		t.Errorf("tools %+v", tools)
	}
	var said []string
	for _, w := range c.Warnings() {
		said = append(said, w.Tool+": "+w.Message)
	}
	for _, want := range []string{"nope", "get_a: listed twice", "odd: "} {
		if !strings.Contains(strings.Join(said, "\n"), want) {
			t.Errorf("no warning with %q in %q", want, said)
		}
	}
}

func TestBuildReusesWhatDidNotChange(t *testing.T) {
	a, b := source(t, "a", tool("x")), source(t, "b", tool("x"))
	first := catalog.Build(nil, configured(), info, []catalog.Source{a, b})
	again := catalog.Build(first, configured(), info, []catalog.Source{a, {Server: b.Server, Listing: listed(t, tool("x"))}})
	if !first.All().Same(again.All()) || first.Alone("b") != again.Alone("b") {
		t.Error("a listing with the same content makes another catalog")
	}
	changed := catalog.Build(first, configured(), info, []catalog.Source{a, {Server: b.Server, Listing: listed(t, tool("x"), tool("y"))}})
	if first.All().Same(changed.All()) || first.Alone("a") != changed.Alone("a") || first.Alone("b").Same(changed.Alone("b")) {
		t.Error("a changed listing was not told from an unchanged one")
	}
}

func BenchmarkBuild(b *testing.B) {
	var sources []catalog.Source
	for s := range 50 {
		var tools []string
		for n := range 100 {
			tools = append(tools, fmt.Sprintf(`{"name":"tool_%d","description":"Does what tool %d does.","inputSchema":{"type":"object","properties":{"q":{"$ref":"#/$defs/Q"},"n":{"anyOf":[{"type":"integer"},{"type":"null"}]},"o":{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]}}}},"required":["q"],"$defs":{"Q":{"type":"string","description":"server %d"}}}}`, n, n, s))
		}
		sources = append(sources, source(b, fmt.Sprintf("s%d", s), tools...))
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			catalog.Build(nil, configured(), info, sources).All().List(listing.Tools, protocol.Legacy)
		}
	})
	prev := catalog.Build(nil, configured(), info, sources)
	b.Run("one server changed", func(b *testing.B) {
		b.ReportAllocs()
		changed := append([]catalog.Source(nil), sources...)
		changed[7] = source(b, "s7", tool("only"))
		for b.Loop() {
			catalog.Build(prev, configured(), info, changed).All().List(listing.Tools, protocol.Legacy)
		}
	})
}
