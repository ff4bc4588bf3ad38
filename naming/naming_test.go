package naming_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/naming"
)

// A vector is one row of testdata/naming.json. Rows about resources only are not run.
type vector struct {
	ID, Title string
	Options   struct {
		Mode      string
		MaxLength int `json:"max_length"`
		Charset   string
		Reserved  []string
	}
	Servers []struct {
		Name          string
		Tools         []string
		Prompts       []string
		DisabledTools []string `json:"disabled_tools"`
		Overrides     map[string]string
	}
	View map[string]struct {
		SelectedTools []string `json:"selected_tools"`
	}
	Expected struct{ Tools, Prompts *[]row }
	Unknown  []string
}

type row struct{ Server, Raw, Public string }

func readVectors(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

func (v vector) options() naming.Options {
	return naming.Options{
		Mode: v.Options.Mode, MaxLength: v.Options.MaxLength, Charset: v.Options.Charset, Reserved: v.Options.Reserved,
	}
}

// tools returns the servers with what their filters leave.
func (v vector) tools() (servers []naming.Server) {
	for _, s := range v.Servers {
		out := naming.Server{Name: s.Name}
		for _, raw := range s.Tools {
			if !slices.Contains(s.DisabledTools, raw) {
				out.Tools = append(out.Tools, naming.Tool{Raw: raw, Name: s.Overrides[raw]})
			}
		}
		servers = append(servers, out)
	}
	return servers
}

func (v vector) prompts() (servers []naming.Server) {
	for _, s := range v.Servers {
		out := naming.Server{Name: s.Name}
		for _, raw := range s.Prompts {
			out.Tools = append(out.Tools, naming.Tool{Raw: raw})
		}
		servers = append(servers, out)
	}
	return servers
}

// selected returns the rows that the vector's view shows.
func (v vector) selected(named []naming.Named) []row {
	rows := []row{}
	for _, n := range named {
		if s, ok := v.View[n.Server]; v.View == nil || ok && slices.Contains(s.SelectedTools, n.Raw) {
			rows = append(rows, row{n.Server, n.Raw, n.Public})
		}
	}
	return rows
}

func TestVectors(t *testing.T) {
	var file struct{ Vectors []vector }
	readVectors(t, "testdata/naming.json", &file)
	for _, v := range file.Vectors {
		t.Run(v.ID+" "+v.Title, func(t *testing.T) {
			if v.Expected.Tools != nil {
				v.check(t, v.tools(), *v.Expected.Tools)
			}
			if v.Expected.Prompts != nil {
				v.check(t, v.prompts(), *v.Expected.Prompts)
			}
		})
	}
}

func (v vector) check(t *testing.T, servers []naming.Server, want []row) {
	t.Helper()
	got := v.selected(naming.Names(v.options(), servers))
	if !slices.Equal(got, want) {
		t.Errorf("Names(%+v)\n got %v\nwant %v", servers, got, want)
	}
	for _, r := range got {
		if slices.Contains(v.Unknown, r.Public) {
			t.Errorf("Names gives %q, which must be unknown", r.Public)
		}
	}
}

func TestTagVectors(t *testing.T) {
	var file struct {
		Tags []struct {
			ID, Title string
			Servers   []struct {
				Name  string
				Tools []string
			}
			Expected []struct{ Server, Raw, Tag string }
		} `json:"openkbs_tags"`
	}
	readVectors(t, "testdata/tags.json", &file)
	for _, v := range file.Tags {
		t.Run(v.ID+" "+v.Title, func(t *testing.T) {
			var servers []naming.Server
			for _, s := range v.Servers {
				servers = append(servers, server(s.Name, s.Tools...))
			}
			var got, want []row
			for _, tag := range naming.Tags(servers) {
				got = append(got, row{tag.Server, tag.Raw, "mcp_" + tag.ServerPart + "_" + tag.ToolPart})
			}
			for _, e := range v.Expected {
				want = append(want, row{e.Server, e.Raw, e.Tag})
			}
			if !slices.Equal(got, want) {
				t.Errorf("Tags(%v)\n got %v\nwant %v", servers, got, want)
			}
		})
	}
}

// What the reader of tags in OpenKBS finds must be what the tag was made of.
func TestTagsAreFoundByTheirReader(t *testing.T) {
	var file struct {
		Handler []struct {
			ID, Text string
			Expected *struct{ Server, Tool, Body string }
		} `json:"openkbs_handler"`
	}
	readVectors(t, "testdata/tags.json", &file)
	for _, v := range file.Handler {
		part, tool, body, ok := readTag(v.Text)
		if ok != (v.Expected != nil) || ok && [3]string{part, tool, body} != [3]string{v.Expected.Server, v.Expected.Tool, v.Expected.Body} {
			t.Fatalf("%s: the reader of this test finds %q %q %q in %q, want %v", v.ID, part, tool, body, v.Text, v.Expected)
		}
	}
	servers := []naming.Server{
		server("My_Db_", "_run", "a.b", "A-B", "x y", strings.Repeat("long", 50)), server("my-db", "RUN"), server("MY-DB", "é"),
		server("my-db-2", "q"), server("q--q", "r"),
	}
	for _, tag := range naming.Tags(servers) {
		name := "mcp_" + tag.ServerPart + "_" + tag.ToolPart
		part, tool, _, ok := readTag("<" + name + ">{}</" + name + ">")
		if !ok || part != tag.ServerPart || tool != tag.ToolPart {
			t.Errorf("%v: the reader finds %q and %q in %q", tag, part, tool, name)
		}
	}
}

var tagForm = regexp.MustCompile(`(?s)<mcp_([a-z0-9-]+)_([a-z0-9_]+)>(.*?)</mcp_([a-z0-9-]+)_([a-z0-9_]+)>`)

func readTag(text string) (server, tool, body string, ok bool) {
	m := tagForm.FindStringSubmatch(text)
	if m == nil || m[1] != m[4] || m[2] != m[5] {
		return "", "", "", false
	}
	return m[1], m[2], m[3], true
}

func server(name string, tools ...string) naming.Server {
	s := naming.Server{Name: name}
	for _, raw := range tools {
		s.Tools = append(s.Tools, naming.Tool{Raw: raw})
	}
	return s
}

func publics(named []naming.Named) []string {
	out := []string{}
	for _, n := range named {
		out = append(out, n.Public)
	}
	return out
}

func TestNames(t *testing.T) {
	opts := func(mode, charset string, size int, reserved ...string) naming.Options {
		return naming.Options{Mode: mode, Charset: charset, MaxLength: size, Reserved: reserved}
	}
	long := strings.Repeat("t", 60)
	for _, c := range []struct {
		name    string
		options naming.Options
		servers []naming.Server
		want    []string
	}{
		{"C12 the same tool on two servers", naming.Defaults(), []naming.Server{server("a", "search"), server("b", "search")}, []string{"a__search", "b__search"}},
		{"C13 names that join to the same text", naming.Defaults(), []naming.Server{server("My-Srv", "run"), server("my_srv", "run")}, []string{"my-srv__run", "my_srv__run_2"}},
		{"C13 folded in one server", naming.Defaults(), []naming.Server{server("a", "b__c", "b-_c")}, []string{"a__b-_c", "a__b__c_2"}},
		{"C14 underscores at the ends", naming.Defaults(), []naming.Server{server("my_db_", "_run")}, []string{"my_db___run"}},
		{"C21 characters that model APIs refuse", naming.Defaults(), []naming.Server{server("s", "files.read", "a/b", "my tool")}, []string{"s__a_b", "s__files_read", "s__my_tool"}},
		{"reserved: always gets a number", opts("always", "model", 48, "A__Run"), []naming.Server{server("a", "run")}, []string{"a__run_2"}},
		{"reserved: the number too", opts("never", "model", 48, "run", "run_2"), []naming.Server{server("a", "run")}, []string{"run_3"}},
		{"reserved: on_conflict gets the prefix", opts("on_conflict", "model", 48, "READ-file"), []naming.Server{server("a", "read_file", "x")}, []string{"a__read_file", "x"}},
		{"on_conflict: for all that are equal", opts("on_conflict", "model", 48), []naming.Server{server("a", "X", "x"), server("b", "x")}, []string{"a__X", "a__x_2", "b__x"}},
		{"on_conflict: decided before cutting", opts("on_conflict", "model", 48), []naming.Server{server("a", long+"1"), server("b", long+"2")},
			[]string{strings.Repeat("t", 39) + "_88a431b7", strings.Repeat("t", 39) + "_c0c591e3"}},
		{"an override that is cleaned stands back", opts("always", "model", 48), []naming.Server{{Name: "a", Tools: []naming.Tool{{Raw: "p", Name: "x y"}, {Raw: "q", Name: "x_y"}}}}, []string{"a__x_y_2", "a__x_y"}},
		{"a prefix under openkbs ends without an underscore", opts("always", "openkbs", 48), []naming.Server{server("v2-", "a"), server("q--q", "a")}, []string{"v2__a", "q__q__a"}},
		{"a head of separators", opts("never", "mcp", 24), []naming.Server{server("a", strings.Repeat(".", 30))}, []string{"_8faefe48"}},
		{"nothing at all", naming.Defaults(), nil, []string{}},
		{"zero options", naming.Options{}, []naming.Server{server("a", "b.c")}, []string{"a__b_c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := publics(naming.Names(c.options, c.servers)); !slices.Equal(got, c.want) {
				t.Errorf("Names(%+v, %v)\n got %q\nwant %q", c.options, c.servers, got, c.want)
			}
		})
	}
}

// Numbers grow by a digit, and the name is cut by one more byte.
func TestNumbersOfNamesOfFullLength(t *testing.T) {
	var tools []string
	base := strings.Repeat("t", 24)
	for i := range 12 {
		tools = append(tools, strings.Repeat("T", i)+base[i:])
	}
	got := publics(naming.Names(naming.Options{Mode: naming.Never, MaxLength: 24}, []naming.Server{server("a", tools...)}))
	numbers := 0
	for _, name := range got {
		if len(name) != 24 {
			t.Errorf("%q has %d bytes", name, len(name))
		}
		if strings.HasSuffix(strings.ToLower(name), "t_10") || strings.HasSuffix(strings.ToLower(name), "t_12") {
			numbers++
		}
	}
	if numbers != 2 {
		t.Errorf("no _10 and _12 in %q", got)
	}
}

// C17, T4: the order in which a server lists its tools moves no name.
func TestNamesDoNotDependOnListingOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, mode := range []string{naming.Always, naming.OnConflict, naming.Never} {
		for _, charset := range []string{naming.Model, naming.MCP, naming.OpenKBS} {
			o := naming.Options{Mode: mode, Charset: charset, MaxLength: 24, Reserved: []string{"a", "a_2", "A-b"}}
			for range 200 {
				servers := someServers(rng)
				want := naming.Names(o, servers)
				checkInvariants(t, o, servers, want)
				for _, s := range servers {
					rng.Shuffle(len(s.Tools), func(i, j int) { s.Tools[i], s.Tools[j] = s.Tools[j], s.Tools[i] })
				}
				if got := naming.Names(o, servers); !slices.Equal(got, want) {
					t.Fatalf("%s %s: %v\n got %v\nwant %v", mode, charset, servers, got, want)
				}
			}
		}
	}
}

// someServers returns few servers with few names of few letters, so that they collide.
func someServers(rng *rand.Rand) []naming.Server {
	letters := []rune("aAb-_.é2 ")
	var servers []naming.Server
	for _, name := range []string{"a", "A", "a_", "b-b", "B_b"}[:1+rng.IntN(5)] {
		s := naming.Server{Name: name}
		for range rng.IntN(12) {
			raw := make([]rune, rng.IntN(5))
			for i := range raw {
				raw[i] = letters[rng.IntN(len(letters))]
			}
			tool := string(raw)
			if rng.IntN(4) == 0 {
				tool += strings.Repeat("x", 22)
			}
			s.Tools = append(s.Tools, naming.Tool{Raw: tool})
		}
		servers = append(servers, s)
	}
	return servers
}

var charsets = map[string]*regexp.Regexp{
	naming.Model: regexp.MustCompile(`^[A-Za-z0-9_-]+$`), naming.MCP: regexp.MustCompile(`^[A-Za-z0-9_.-]+$`), naming.OpenKBS: regexp.MustCompile(`^[a-z0-9_]+$`),
}

func checkInvariants(t *testing.T, o naming.Options, servers []naming.Server, named []naming.Named) {
	t.Helper()
	taken := map[string]bool{}
	for _, name := range o.Reserved {
		taken[folded(name)] = true
	}
	refs := map[naming.Ref]bool{}
	for _, n := range named {
		if taken[folded(n.Public)] {
			t.Errorf("%v: an equal name is taken", n)
		}
		if len(n.Public) > o.MaxLength || !charsets[o.Charset].MatchString(n.Public) {
			t.Errorf("%v: illegal", n)
		}
		taken[folded(n.Public)] = true
		refs[n.Ref] = true
	}
	for _, s := range servers {
		for _, tool := range s.Tools {
			if strings.TrimSpace(tool.Raw) != "" && !refs[naming.Ref{Server: s.Name, Raw: tool.Raw}] {
				t.Errorf("%s %q: has no name", s.Name, tool.Raw)
			}
		}
	}
	if len(refs) != len(named) {
		t.Errorf("%d names for %d tools", len(named), len(refs))
	}
}

func folded(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "-", "_")
}

func FuzzNames(f *testing.F) {
	f.Add("a.b\na_b\na/b", "a_b\nA_B", uint8(0))
	f.Add("jira__search", "search\nsearch\n \n", uint8(1))
	f.Add(strings.Repeat("x", 60)+"\n"+strings.Repeat("X", 60), "\u212a\u0130\n\xff\xfe", uint8(8))
	modes := []string{naming.Always, naming.OnConflict, naming.Never}
	sets := []string{naming.Model, naming.MCP, naming.OpenKBS}
	f.Fuzz(func(t *testing.T, first, second string, choice uint8) {
		o := naming.Options{Mode: modes[choice%3], Charset: sets[choice/3%3], MaxLength: naming.MinMaxLength + int(choice), Reserved: strings.Fields(second)}
		servers := []naming.Server{
			server("a", strings.Split(first, "\n")...), server("A_", strings.Split(second, "\n")...), server("b-c", strings.Split(first, "\n")...),
		}
		named := naming.Names(o, servers)
		checkInvariants(t, o, servers, named)
		for i := range servers {
			slices.Reverse(servers[i].Tools)
		}
		if again := naming.Names(o, servers); !slices.Equal(named, again) {
			t.Errorf("reversed lists: %v, before %v", again, named)
		}
	})
}

// crowds are lists that are slow to name if every search for a number starts at _2.
func crowds(n int) map[string][]naming.Server {
	one, distinct, heads := naming.Server{Name: "s"}, naming.Server{Name: "s"}, naming.Server{Name: "s"}
	for i := range n {
		one.Tools = append(one.Tools, naming.Tool{Raw: fmt.Sprint(i), Name: "same"})
		distinct.Tools = append(distinct.Tools, naming.Tool{Raw: fmt.Sprintf("tool_number_%d", i)})
		// Pairs of equal names of full length that differ in their last bytes only.
		name := strings.Repeat("h", 41) + fmt.Sprintf("%04d", i/2)
		if i%2 == 0 {
			name = strings.ToUpper(name)
		}
		heads.Tools = append(heads.Tools, naming.Tool{Raw: name})
	}
	return map[string][]naming.Server{"one name": {one}, "distinct": {distinct}, "one head": {heads}}
}

func TestCrowdsAreNamedInLinearTime(t *testing.T) {
	for name, servers := range crowds(10_000) {
		start := time.Now()
		named := naming.Names(naming.Defaults(), servers)
		// Some 20 ms are usual; a search that starts over for each name takes seconds.
		if took := time.Since(start); took > time.Second {
			t.Errorf("%s: %v", name, took)
		}
		checkInvariants(t, naming.Defaults(), servers, named)
	}
}

func BenchmarkNames(b *testing.B) {
	for name, servers := range crowds(10_000) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				naming.Names(naming.Defaults(), servers)
			}
		})
	}
}
