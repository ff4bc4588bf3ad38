package test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

// routed calls every listed tool and checks that each call reached the expected server under its raw name.
type routed struct {
	server *fake.Server
	raw    string
	public string
}

func (r routed) check(t *testing.T, c *client.HTTP) {
	t.Helper()
	mark := fmt.Sprintf(`{"mark":%s}`, quote(r.public))
	if got := c.Tool(r.public, mark).Text(); got != mark {
		t.Errorf("%s: got %q", r.public, got)
		return
	}
	for _, call := range r.server.Calls(r.raw) {
		if string(call.Param("arguments")) == mark {
			return
		}
	}
	t.Errorf("%s did not reach %q of its server", r.public, r.raw)
}

func TestC12SameToolOnTwoServers(t *testing.T) {
	t.Parallel()
	a, b := fake.HTTP(t, fake.Options{Tools: fake.Tools("search")}), fake.HTTP(t, fake.Options{Tools: fake.Tools("search")})
	c := legacy(t, run.Start(t, run.Of(run.HTTP("a", a), run.HTTP("b", b))))
	if got := c.Names(); !slices.Equal(got, []string{"a__search", "b__search"}) {
		t.Errorf("names = %v", got)
	}
	routed{a, "search", "a__search"}.check(t, c)
	routed{b, "search", "b__search"}.check(t, c)
	if len(a.Calls("search")) != 1 || len(b.Calls("search")) != 1 {
		t.Errorf("calls: a %d, b %d", len(a.Calls("search")), len(b.Calls("search")))
	}
}

func TestC13NamesThatJoinToTheSameText(t *testing.T) {
	t.Parallel()
	first, second := fake.HTTP(t, fake.Options{Tools: fake.Tools("run")}), fake.HTTP(t, fake.Options{Tools: fake.Tools("run")})
	third := fake.HTTP(t, fake.Options{Tools: fake.Tools("b__c", "b-_c")})
	c := legacy(t, run.Start(t, run.Of(run.HTTP("My-Srv", first), run.HTTP("my_srv", second), run.HTTP("a", third))))
	want := []string{"my-srv__run", "my_srv__run_2", "a__b-_c", "a__b__c_2"}
	if got := c.Names(); !slices.Equal(got, want) {
		t.Errorf("names = %v, want %v", got, want)
	}
	routed{first, "run", want[0]}.check(t, c)
	routed{second, "run", want[1]}.check(t, c)
	routed{third, "b-_c", want[2]}.check(t, c)
	routed{third, "b__c", want[3]}.check(t, c)
}

func TestC14ServerNameWithUnderscores(t *testing.T) {
	t.Parallel()
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("_run")})
	c := legacy(t, run.Start(t, run.Of(run.HTTP("my_db_", s))))
	if got := c.Names(); !slices.Equal(got, []string{"my_db___run"}) {
		t.Fatalf("names = %v", got)
	}
	routed{s, "_run", "my_db___run"}.check(t, c)
}

func TestC17OrderDoesNotDependOnSpeed(t *testing.T) {
	t.Parallel()
	lists := make([]string, 2)
	for i := range lists {
		options := [2]fake.Options{{Tools: fake.Tools("b", "a")}, {Tools: fake.Tools("a", "c")}}
		var servers []run.Server
		for j, name := range []string{"Srv", "srv"} {
			if i == j {
				options[j].Handlers = map[string]fake.Handler{"initialize": late(500 * time.Millisecond)}
			}
			servers = append(servers, run.HTTP(name, fake.HTTP(t, options[j])))
		}
		lists[i] = string(legacy(t, run.Start(t, run.Of(servers...))).Must("tools/list", "").Result)
	}
	if lists[0] != lists[1] {
		t.Errorf("lists differ:\n%s\n%s", lists[0], lists[1])
	}
	for _, name := range []string{`"srv__a"`, `"srv__a_2"`, `"srv__b"`, `"srv__c"`} {
		if !strings.Contains(lists[0], name) {
			t.Errorf("no %s in %s", name, lists[0])
		}
	}
}

// late gives the usual answer to initialize after a while.
func late(d time.Duration) fake.Handler {
	return func(c *fake.Call) {
		if c.Sleep(d) {
			c.Usual()
		}
	}
}

func TestC19LongNames(t *testing.T) {
	t.Parallel()
	raw := strings.Repeat("long_tool_", 6)
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools(raw)})
	config := run.Of(run.HTTP("a-server-of-20-chars", s))
	var names []string
	for range 2 {
		c := legacy(t, run.Start(t, config))
		got := c.Names()
		if len(got) != 1 || len(got[0]) > 48 {
			t.Fatalf("names = %v", got)
		}
		routed{s, raw, got[0]}.check(t, c)
		names = append(names, got[0])
	}
	if names[0] != names[1] {
		t.Errorf("names of two runs: %v", names)
	}
	c := legacy(t, run.Start(t, config.With(fields{"naming": fields{"max_length": 128}})))
	if got := c.Names(); !slices.Equal(got, []string{"a-server-of-20-chars__" + raw}) {
		t.Errorf("names with a limit of 128 = %v", got)
	}
}

func TestC21CharactersThatModelsRefuse(t *testing.T) {
	t.Parallel()
	raws := []string{"a/b", "files.read", "my tool"}
	s, m := behind(t, fake.Options{Tools: fake.Tools(raws...)})
	c := legacy(t, m)
	for i, name := range c.Names() {
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,48}$`).MatchString(name) {
			t.Errorf("name %q", name)
		}
		routed{s, raws[i], name}.check(t, c)
	}
}

func TestC24FilteredToolCannotBeCalled(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("danger", "safe")}, fields{"disabled_tools": []string{"danger"}})
	for _, c := range []*client.HTTP{legacy(t, m), modern(t, m)} {
		if got := c.Names(); !slices.Equal(got, []string{"up__safe"}) {
			t.Errorf("names = %v", got)
		}
		a := c.Tool("up__danger", "{}")
		if a.Code() != -32602 || a.ErrorText() != "Unknown tool: up__danger" {
			t.Errorf("%s: got %s%s", c.Version, a.Result, a.Error)
		}
		one := client.Dial(t, m.One("up"), c.Version)
		if a := one.Tool("danger", "{}"); a.Code() != -32602 {
			t.Errorf("/servers/up/mcp: got %s%s", a.Result, a.Error)
		}
	}
	if code, body := m.Post("/api/v1/servers/up/tools/danger/call", "{}"); code != 404 {
		t.Errorf("REST: %d %s", code, body)
	}
	if calls := s.Seen("tools/call"); len(calls) > 0 {
		t.Errorf("the server received %s", calls[0].Body)
	}
}

func TestC26DenyWins(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a", "b")}, fields{"enabled_tools": []string{"a", "b"}, "disabled_tools": []string{"a"}})
	if got := legacy(t, m).Names(); !slices.Equal(got, []string{"up__b"}) {
		t.Errorf("names = %v", got)
	}
}

func TestC27AllowedToolOnPageTwo(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("early", "later"), PageSize: 1}, fields{"enabled_tools": []string{"later"}})
	if got := legacy(t, m).Names(); !slices.Equal(got, []string{"up__later"}) {
		t.Errorf("names = %v", got)
	}
}

// TestOneServerAlone has the names of /servers/NAME/mcp, which are given by themselves.
func TestOneServerAlone(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("read file", "write")}, fields{"disabled_tools": []string{"write"}})
	c := client.Dial(t, m.One("up"), client.Latest)
	if got := c.Names(); !slices.Equal(got, []string{"read_file"}) {
		t.Errorf("names = %v", got)
	}
	routed{s, "read file", "read_file"}.check(t, c)
	if a := c.Tool("up__read_file", "{}"); a.Code() != -32602 {
		t.Errorf("the long name: got %s%s", a.Result, a.Error)
	}
}

type namingVector struct {
	ID      string
	Options struct {
		Mode      string   `json:"mode"`
		MaxLength int      `json:"max_length"`
		Charset   string   `json:"charset"`
		Reserved  []string `json:"reserved,omitempty"`
	}
	Servers []struct {
		Name          string
		Tools         []string
		Prompts       []string
		DisabledTools []string `json:"disabled_tools"`
		EnabledTools  []string `json:"enabled_tools"`
		Overrides     map[string]string
	}
	View     map[string]any
	Expected struct {
		Tools []struct{ Server, Raw, Public string }
	}
	Unknown []string
}

// TestNamingVectors runs every vector about tools through a Mainstem of its own, as names are given for a whole configuration.
func TestNamingVectors(t *testing.T) {
	t.Parallel()
	for _, v := range vectors[namingVector](t, "naming.json", "vectors") {
		if v.View != nil || v.Expected.Tools == nil {
			continue // about views, prompts or resources alone
		}
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			v.check(t)
		})
	}
}

func (v namingVector) check(t *testing.T) {
	var servers []run.Server
	fakes := map[string]*fake.Server{}
	for _, s := range v.Servers {
		fakes[s.Name] = fake.HTTP(t, fake.Options{Tools: fake.Tools(s.Tools...)})
		more, tools := fields{}, fields{}
		if s.DisabledTools != nil {
			more["disabled_tools"] = s.DisabledTools
		}
		if s.EnabledTools != nil {
			more["enabled_tools"] = s.EnabledTools
		}
		for raw, name := range s.Overrides {
			tools[raw] = fields{"name": name}
		}
		if len(tools) > 0 {
			more["tools"] = tools
		}
		servers = append(servers, run.HTTP(s.Name, fakes[s.Name], more))
	}
	c := legacy(t, run.Start(t, run.Of(servers...).With(fields{"naming": v.Options})))
	want := []string{}
	for _, e := range v.Expected.Tools {
		want = append(want, e.Public)
	}
	if got := c.Names(); !slices.Equal(got, want) {
		t.Fatalf("names:\n got  %q\n want %q", got, want)
	}
	for _, e := range v.Expected.Tools {
		routed{fakes[e.Server], e.Raw, e.Public}.check(t, c)
	}
	calls := 0
	for _, s := range fakes {
		calls += len(s.Seen("tools/call"))
	}
	for _, name := range v.Unknown {
		if a := c.Tool(name, "{}"); a.Code() != -32602 || a.ErrorText() != "Unknown tool: "+name {
			t.Errorf("%q: got %s%s", name, a.Result, a.Error)
		}
	}
	for _, s := range fakes {
		calls -= len(s.Seen("tools/call"))
	}
	if calls != 0 {
		t.Errorf("%d calls of unknown tools reached a server", -calls)
	}
}
