package catalog

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/mainstem-mcp/mainstem/catalog/listing"
	"github.com/mainstem-mcp/mainstem/catalog/result"
	"github.com/mainstem-mcp/mainstem/catalog/schema"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/naming"
	"github.com/mainstem-mcp/mainstem/protocol"
)

// A Header is an argument that is repeated in a header of the request.
type Header = schema.Header

// An Entry is what a call needs to know of the tool that it names.
type Entry struct {
	Ref    naming.Ref
	Quoted json.RawMessage // the raw name as JSON, for the server
	Keys   schema.Renames  // argument names that were changed for clients
	Result result.Rule
	Shown  []Header // headers that a client's request is checked against
	Raw    []Header // headers that the server wants

	public     string
	definition json.RawMessage
	tool       *schema.Tool
}

// A View is what one endpoint shows: the tools in their order, and where each public
// name leads. Lists are encoded at first use and then stay.
type View struct {
	entries []Entry
	index   map[string]int
	private bool
	info    json.RawMessage
	lists   [2]struct {
		once  sync.Once
		bytes []byte
	}
}

func newView(parts []*part, names []naming.Named, info json.RawMessage) *View {
	v := &View{entries: make([]Entry, 0, len(names)), index: make(map[string]int, len(names)), info: info}
	for _, p := range parts {
		v.private = v.private || p.private
		for i := range p.tools {
			// both are in (configuration order, raw name) order; a name may have been
			// left out, never added
			if len(names) == 0 || names[0].Ref != (naming.Ref{Server: p.source.Server.Name, Raw: p.tools[i].raw}) {
				continue
			}
			v.add(p, &p.tools[i], names[0])
			names = names[1:]
		}
	}
	return v
}

func (v *View) add(p *part, t *prepared, name naming.Named) {
	rule := result.Rule{Server: name.Server, Mode: result.ModeOf(p.source.Server.Output), ShowsOutput: t.tool.ShowsOutput}
	v.index[name.Public] = len(v.entries)
	v.entries = append(v.entries, Entry{
		Ref: name.Ref, Quoted: jsonrpc.AppendQuote(nil, name.Raw), Keys: t.tool.Renames, Result: rule, Shown: t.tool.Shown, Raw: t.tool.Raw,
		public: name.Public, definition: rename(t.tool.JSON, name.Public), tool: &t.tool,
	})
}

// rename puts the public name in the place of the raw one.
func rename(definition json.RawMessage, public string) json.RawMessage {
	for m := range jsonrpc.Members(definition) {
		if m.Is("name") {
			out := make([]byte, 0, len(definition)+len(public))
			out = append(out, definition[:m.At]...)
			out = jsonrpc.AppendQuote(out, public)
			return append(out, definition[m.End():]...)
		}
	}
	return definition
}

// Find returns the entry that a public name leads to. The name is looked up whole and
// exactly.
func (v *View) Find(_ listing.Kind, public string) (Entry, bool) {
	i, ok := v.index[public]
	if !ok {
		return Entry{}, false
	}
	return v.entries[i], true
}

// List returns the result of a list request, complete and on one page, as clients of
// the era want it. The bytes are shared and must not be changed.
func (v *View) List(_ listing.Kind, era protocol.Era) []byte {
	l := &v.lists[era-protocol.Legacy]
	l.once.Do(func() { l.bytes = v.encode(era) })
	return l.bytes
}

// Modern clients may keep a list for this long before they ask again; they are told of
// changes all the same (2026-07-28, server/utilities/caching).
const listTTL = "60000"

func (v *View) encode(era protocol.Era) []byte {
	size := 256
	for _, e := range v.entries {
		size += len(e.definition) + 1
	}
	out := append(make([]byte, 0, size), `{"tools":[`...)
	for i, e := range v.entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e.definition...)
	}
	out = append(out, ']')
	if era == protocol.Modern {
		scope := "public"
		if v.private {
			scope = "private"
		}
		out = append(out, `,"resultType":"complete","ttlMs":`+listTTL+`,"cacheScope":"`+scope+`","_meta":{"`+protocol.MetaServerInfo+`":`...)
		out = append(append(out, v.info...), '}')
	}
	return append(out, '}')
}

// Same reports whether clients of both views see the same list.
func (v *View) Same(o *View) bool {
	if v == o {
		return true
	}
	if len(v.entries) != len(o.entries) {
		return false
	}
	for i := range v.entries {
		if !bytes.Equal(v.entries[i].definition, o.entries[i].definition) {
			return false
		}
	}
	return true
}

// Names returns the public names in list order.
func (v *View) Names() []string {
	names := make([]string, len(v.entries))
	for i, e := range v.entries {
		names[i] = e.public
	}
	return names
}
