// Package catalog merges listings into what clients see: it filters, names, flattens
// and encodes, and its result is one value that never changes.
package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mainstem-mcp/mainstem/catalog/listing"
	"github.com/mainstem-mcp/mainstem/catalog/schema"
	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/naming"
	"github.com/mainstem-mcp/mainstem/protocol"
)

// A Source is one server and what it listed last.
type Source struct {
	Server  *config.Server
	Listing *listing.Listing // nil: nothing known yet
}

// A Warning says what was odd about a server's tools and what was done about it.
type Warning struct {
	Server  string
	Tool    string // raw name; "" if it concerns no single tool
	Message string
}

// A Catalog is everything that clients can see at one time. It is never changed once
// built; any goroutine may read it.
type Catalog struct {
	all      *View
	servers  map[string]*part
	order    map[string]int // of configuration, by server
	warnings []Warning
	flat     *schema.Cache
	info     json.RawMessage
}

// A part is one server's contribution. It is kept from one catalog to the next while
// listing and settings stay the same.
type part struct {
	hash     [sha256.Size]byte
	settings string
	tools    []prepared // what passes the filters, by raw name
	filtered []prepared // what does not
	warnings []Warning
	private  bool
	source   Source
	alone    *View // the server by itself, with bare names
}

// prepared is a tool whose definition lacks only its public name.
type prepared struct {
	raw  string
	tool schema.Tool
}

// flattened is how many tool definitions are remembered in flattened form.
const flattened = 20_000

// Build makes the catalog of these servers, which are in configuration order. prev, the
// catalog before, may be nil; what did not change is taken from it. info is our
// serverInfo, which goes into modern lists.
func Build(prev *Catalog, cfg *config.Config, info json.RawMessage, sources []Source) *Catalog {
	c := &Catalog{servers: map[string]*part{}, order: map[string]int{}, info: info}
	if prev != nil {
		c.flat = prev.flat
	} else {
		c.flat = schema.NewCache(flattened)
	}
	var parts []*part
	var names []naming.Server
	for _, s := range sources {
		if s.Listing == nil || !s.Server.Enabled {
			continue
		}
		p := c.part(prev, cfg.Naming, s)
		c.servers[s.Server.Name] = p
		c.order[s.Server.Name] = len(parts) + 1 // 0 is for servers that are not here
		parts = append(parts, p)
		names = append(names, p.named())
		c.warnings = append(c.warnings, p.warnings...)
	}
	c.all = newView(parts, naming.Names(cfg.Naming, names), info)
	return c
}

// part prepares one server's tools, or takes them from the catalog before.
func (c *Catalog) part(prev *Catalog, names naming.Options, s Source) *part {
	if prev != nil {
		if p := prev.servers[s.Server.Name]; p != nil && p.hash == s.Listing.Hash() && p.source.Listing.Version == s.Listing.Version && p.settings == s.Server.Hash && p.private == s.Listing.Private {
			return p
		}
	}
	p := &part{hash: s.Listing.Hash(), settings: s.Server.Hash, private: s.Listing.Private, source: s}
	seen := map[string]bool{}
	var raws []string
	for _, item := range s.Listing.Items(listing.Tools) {
		if seen[item.Name] && item.Name != "" {
			p.warn(item.Name, "listed twice; the first definition counts")
			continue
		}
		seen[item.Name] = true
		raws = append(raws, item.Name)
		c.prepare(p, item)
	}
	for _, pattern := range s.Server.Unmatched(raws) {
		p.warn("", "no tool fits the filter entry "+string(jsonrpc.AppendQuote(nil, pattern)))
	}
	for _, note := range s.Listing.Notes {
		p.warn("", note)
	}
	byName := func(a, b prepared) int { return strings.Compare(a.raw, b.raw) }
	slices.SortFunc(p.tools, byName)
	slices.SortFunc(p.filtered, byName)
	bare := names
	bare.Mode = naming.Never
	p.alone = newView([]*part{p}, naming.Names(bare, []naming.Server{p.named()}), c.info)
	return p
}

func (c *Catalog) prepare(p *part, item listing.Item) {
	server := p.source.Server
	o := server.Tools[item.Name]
	tool, ok := c.flat.Definition(item.Raw, schema.Options{
		Mode: schema.ModeOf(server.Schema), Title: o.Title, Description: o.Description, Meta: o.Meta, DropOutput: server.Output == "text",
		// only a modern server over HTTP reads headers, so only there can they be wrong
		IgnoreHeaders: p.source.Listing.Version != protocol.V20260728 || server.Transport == config.Stdio,
	})
	for _, w := range tool.Warnings {
		p.warn(item.Name, w.Message)
	}
	switch {
	case !ok:
	case server.Allows(item.Name):
		p.tools = append(p.tools, prepared{item.Name, tool})
	default:
		p.filtered = append(p.filtered, prepared{item.Name, tool})
	}
}

func (p *part) warn(tool, message string) {
	p.warnings = append(p.warnings, Warning{p.source.Server.Name, tool, message})
}

func (p *part) named() naming.Server {
	s := naming.Server{Name: p.source.Server.Name}
	for _, t := range p.tools {
		tool := naming.Tool{Raw: t.raw}
		if o := p.source.Server.Tools[t.raw]; o.Name != nil {
			tool.Name = *o.Name
		}
		s.Tools = append(s.Tools, tool)
	}
	return s
}

// All is the view of every enabled server.
func (c *Catalog) All() *View { return c.all }

// Alone is the view of one server by itself, with bare names; an empty one if nothing
// is known of it.
func (c *Catalog) Alone(server string) *View {
	if p := c.servers[server]; p != nil {
		return p.alone
	}
	return newView(nil, nil, c.info)
}

// Public returns the public name of a tool; false if it is not listed.
func (c *Catalog) Public(ref naming.Ref) (string, bool) {
	i, ok := slices.BinarySearchFunc(c.all.entries, ref, func(e Entry, ref naming.Ref) int {
		if e.Ref.Server != ref.Server {
			return c.order[e.Ref.Server] - c.order[ref.Server]
		}
		return strings.Compare(e.Ref.Raw, ref.Raw)
	})
	if !ok {
		return "", false
	}
	return c.all.entries[i].public, true
}

// Known reports whether the catalog has anything of a server, even an empty list.
func (c *Catalog) Known(server string) bool { return c.servers[server] != nil }

// Empty reports whether the catalog has nothing of any server.
func (c *Catalog) Empty() bool { return len(c.servers) == 0 }

// Warnings says what was odd about the listed tools.
func (c *Catalog) Warnings() []Warning { return c.warnings }

// A Tool is what a person asks about: one tool of one server.
type Tool struct {
	Ref          naming.Ref
	Public       string // "" if filtered out
	Enabled      bool
	Definition   json.RawMessage // as listed, under the raw name if filtered out
	Title        string
	Description  string
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage // nil: none shown
	Annotations  json.RawMessage // nil: none
}

// Tools returns a server's tools: those that are listed, by raw name, then those that
// its filters keep out.
func (c *Catalog) Tools(server string) []Tool {
	p := c.servers[server]
	if p == nil {
		return nil
	}
	var tools []Tool
	for _, e := range c.all.entries {
		if e.Ref.Server == server {
			tools = append(tools, describe(e.Ref, e.public, e.definition, e.tool))
		}
	}
	for _, t := range p.filtered {
		tools = append(tools, describe(naming.Ref{Server: server, Raw: t.raw}, "", t.tool.JSON, &t.tool))
	}
	return tools
}

func describe(ref naming.Ref, public string, definition json.RawMessage, tool *schema.Tool) Tool {
	title, _ := jsonrpc.Unquote(jsonrpc.Get(definition, "title"))
	return Tool{
		Ref: ref, Public: public, Enabled: public != "", Definition: definition, Title: title, Description: tool.Description,
		InputSchema: tool.InputSchema, OutputSchema: jsonrpc.Get(definition, "outputSchema"), Annotations: jsonrpc.Get(definition, "annotations"),
	}
}
