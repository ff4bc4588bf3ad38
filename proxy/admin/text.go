package admin

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/mainstem-mcp/mainstem/catalog"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/naming"
)

// Formats of the catalog.
const (
	Markdown = "markdown"
	XML      = "xml"
	JSON     = "json"
)

// Catalog returns the enabled tools of all servers as text for a system prompt.
func (a *Admin) Catalog(_ context.Context, format string) ([]byte, error) {
	c := a.proxy.Fresh()
	switch format {
	case Markdown:
		return a.markdown(c), nil
	case XML:
		return a.xml(c), nil
	case JSON:
		return a.json(c), nil
	}
	return nil, &Error{Kind: Usage, Message: fmt.Sprintf("unknown format %q (want %s, %s or %s)", format, Markdown, XML, JSON)}
}

func (a *Admin) markdown(c *catalog.Catalog) []byte {
	var out bytes.Buffer
	for _, u := range a.upstreams.All() {
		tools := enabledTools(c, u.Server().Name)
		if len(tools) == 0 {
			continue
		}
		paragraph(&out, "## "+u.Server().Name)
		paragraph(&out, u.Server().Description)
		for _, t := range tools {
			paragraph(&out, "### "+t.Public)
			paragraph(&out, t.Description)
			schema := string(jsonrpc.Compact(nil, t.InputSchema))
			fence := fence(schema)
			paragraph(&out, fence+"json\n"+schema+"\n"+fence)
		}
	}
	return out.Bytes()
}

// paragraph writes text with an empty line between it and what was written before.
func paragraph(out *bytes.Buffer, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	if out.Len() > 0 {
		out.WriteByte('\n')
	}
	out.WriteString(text)
	out.WriteByte('\n')
}

// fence returns a code fence that text cannot close.
func fence(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}

// xml is the OpenKBS form: one element a line, whose tag is what the model writes to
// call the tool.
func (a *Admin) xml(c *catalog.Catalog) []byte {
	known := map[string]map[string]catalog.Tool{}
	for _, u := range a.upstreams.All() {
		tools := map[string]catalog.Tool{}
		for _, t := range enabledTools(c, u.Server().Name) {
			tools[t.Ref.Raw] = t
		}
		known[u.Server().Name] = tools
	}
	var out []byte
	for _, tag := range naming.Tags(a.listed(c)) {
		t := known[tag.Server][tag.Raw]
		name := "mcp_" + tag.ServerPart + "_" + tag.ToolPart
		out = append(out, "<"+name+">"...)
		body := jsonrpc.AppendQuote([]byte(`{"description":`), t.Description)
		body = append(jsonrpc.Compact(append(body, `,"inputSchema":`...), t.InputSchema), '}')
		// < stands in strings only. Escaped, no description can close the element.
		out = append(out, bytes.ReplaceAll(body, []byte("<"), []byte(`\u003c`))...)
		out = append(out, "</"+name+">\n"...)
	}
	return out
}

// json writes the fields of Catalog. The schemas keep their bytes.
func (a *Admin) json(c *catalog.Catalog) []byte {
	out := Catalog{Tools: []Listed{}}
	for _, u := range a.upstreams.All() {
		for _, t := range enabledTools(c, u.Server().Name) {
			out.Tools = append(out.Tools, Listed{
				Name: t.Public, Server: t.Ref.Server, RawName: t.Ref.Raw, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
			})
		}
	}
	return Encode(out)
}

func enabledTools(c *catalog.Catalog, server string) []catalog.Tool {
	var tools []catalog.Tool
	for _, t := range c.Tools(server) {
		if t.Enabled {
			tools = append(tools, t)
		}
	}
	return tools
}
