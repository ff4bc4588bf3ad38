// Package naming knows which public name each tool of each server bears.
//
// It is pure: the same servers give the same names, whatever the order in which
// they list their tools. Prompts are named by the same function, apart from tools.
package naming

import (
	"slices"
	"strings"
)

// The values of Options.Mode.
const (
	Always     = "always"      // every name begins with its server's prefix
	OnConflict = "on_conflict" // only names that two servers share do
	Never      = "never"       // no name does
)

// The values of Options.Charset.
const (
	Model   = "model"   // A-Z a-z 0-9 _ -: what the APIs of models take
	MCP     = "mcp"     // also the dot
	OpenKBS = "openkbs" // a-z 0-9 _, everything lower-cased
)

// The bounds of Options.MaxLength.
const (
	MinMaxLength = 24
	MaxMaxLength = 128
)

// Options say how names are made.
type Options struct {
	Mode      string   // Always, OnConflict or Never
	MaxLength int      // of a public name, in bytes
	Charset   string   // Model, MCP or OpenKBS
	Reserved  []string // names that the host uses itself: nothing of ours bears them
}

// Defaults returns the options of a configuration that sets none.
func Defaults() Options {
	return Options{Mode: Always, MaxLength: 48, Charset: Model}
}

// A Ref says where a call goes: a server and the name that this server lists.
type Ref struct {
	Server, Raw string
}

// A Tool is what one server lists, after its filters.
type Tool struct {
	Raw  string
	Name string // what the configuration calls it; "" if it says nothing
}

// A Server is a configured server with what it lists, in any order.
type Server struct {
	Name  string
	Tools []Tool
}

// A Named is a Ref with the name that clients see.
type Named struct {
	Ref
	Public string
}

// seam stands between the prefix and the rest of a name.
const seam = "__"

// An entry is one name in the making.
type entry struct {
	Ref
	server int    // position of the server in the configuration
	part   string // the cleaned name without a prefix
	asIs   bool   // nothing was replaced or cut
	name   string // what it would be called if it were alone
	public string // "" until it is given
}

// Names gives every tool its public name. The result is in list order: the order
// of servers, then the bytes of the raw name. A raw name that a server lists twice
// counts once, and blank ones are left out.
func Names(o Options, servers []Server) []Named {
	o.MaxLength = max(o.MaxLength, MinMaxLength) // a number and a hash need room
	entries := collect(o.Charset, servers)
	compose(o, servers, entries)
	assign(o, entries)
	out := make([]Named, len(entries))
	for i, e := range entries {
		out[i] = Named{Ref: e.Ref, Public: e.public}
	}
	return out
}

// collect returns the tools in list order, with their cleaned parts.
func collect(charset string, servers []Server) []entry {
	n := 0
	for _, s := range servers {
		n += len(s.Tools)
	}
	entries := make([]entry, 0, n)
	for i, s := range servers {
		tools := slices.Clone(s.Tools)
		// Stable: of two definitions with one name, the first counts.
		slices.SortStableFunc(tools, func(a, b Tool) int { return strings.Compare(a.Raw, b.Raw) })
		for j, t := range tools {
			if Blank(t.Raw) || j > 0 && tools[j-1].Raw == t.Raw {
				continue
			}
			wanted := t.Raw
			if t.Name != "" {
				wanted = t.Name
			}
			part := clean(charset, wanted)
			entries = append(entries, entry{
				Ref: Ref{Server: s.Name, Raw: t.Raw}, server: i, part: part, asIs: part == wanted,
			})
		}
	}
	return entries
}

// compose puts prefixes in front, as the mode says, and cuts what is too long.
func compose(o Options, servers []Server, entries []entry) {
	prefixes := make([]string, len(servers))
	for i, s := range servers {
		prefixes[i] = prefix(o.Charset, s.Name) + seam
	}
	prefixed := func(entry) bool { return o.Mode != Never }
	if o.Mode == OnConflict {
		shared := conflicts(o.Reserved, entries)
		prefixed = func(e entry) bool { return shared[fold(e.part)] }
	}
	for i := range entries {
		e := &entries[i]
		e.name = e.part
		if prefixed(*e) {
			e.name = prefixes[e.server] + e.part
		}
		if len(e.name) > o.MaxLength {
			e.name = shorten(e.name, o.MaxLength, e.Ref)
			e.asIs = false
		}
	}
}

// conflicts returns the folded parts that two servers share or the host uses.
func conflicts(reserved []string, entries []entry) map[string]bool {
	shared := make(map[string]bool, len(reserved))
	for _, name := range reserved {
		shared[fold(name)] = true
	}
	first := make(map[string]int, len(entries))
	for _, e := range entries {
		key := fold(e.part)
		if server, ok := first[key]; !ok {
			first[key] = e.server
		} else if server != e.server {
			shared[key] = true
		}
	}
	return shared
}

// assign lines the names up and lets each choose. Names that went in as they were
// come first, so that a tool's own name is not lost to one that only became equal;
// numbers come last, so that they never take a name that a tool has by itself.
func assign(o Options, entries []entry) {
	line := make([]*entry, 0, len(entries))
	for _, asIs := range []bool{true, false} {
		for i := range entries {
			if entries[i].asIs == asIs {
				line = append(line, &entries[i])
			}
		}
	}
	r := newRegister('_', o.MaxLength, len(entries)+len(o.Reserved))
	for _, name := range o.Reserved {
		r.claim(name)
	}
	for _, e := range line {
		if r.claim(e.name) {
			e.public = e.name
		}
	}
	for _, e := range line {
		if e.public == "" {
			e.public = r.number(e.name)
		}
	}
}
