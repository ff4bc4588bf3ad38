package schema

import (
	"encoding/json"
	"strings"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// Options says how a tool is to be shown.
type Options struct {
	Mode               Mode
	Public             string          // its name; "" keeps the server's
	Title, Description *string         // replace the server's
	Meta               json.RawMessage // members that are added to _meta; nil for none
	DropOutput         bool            // the outputSchema goes
	// IgnoreHeaders is for servers that are asked for no headers, because they do not
	// speak 2026-07-28 over HTTP: then annotations in their schemas bind nothing, and
	// invalid ones do not cost the tool its place.
	IgnoreHeaders bool
}

// A Tool is a tool definition that every client accepts. It is never changed.
type Tool struct {
	JSON        json.RawMessage // compact, the members in the server's order
	Description string
	InputSchema json.RawMessage // the part of JSON
	ShowsOutput bool            // JSON has an outputSchema
	Renames     Renames
	Shown, Raw  []Header // from the schema that is shown, and from the server's
	Warnings    []Warning
}

// Definition makes a tool of what a server lists. false: it has to be left out, and the
// warnings say why.
func Definition(raw json.RawMessage, o Options) (Tool, bool) {
	compact := jsonrpc.Compact(make([]byte, 0, len(raw)), raw)
	var d definition
	if !jsonrpc.IsObject(compact) {
		d.add("no_object", "a tool that is no object: left out")
		return Tool{Warnings: d.list}, false
	}
	for m := range jsonrpc.Members(compact) {
		d.set(string(m.Key), m.Value) // of a member that is there twice the last one counts
	}
	if name, ok := jsonrpc.Unquote(d.get("name")); !ok || strings.TrimSpace(name) == "" {
		d.add("no_name", "a tool of which the name is no text or blank ("+shown(string(d.get("name")))+"): left out")
		return Tool{Warnings: d.list}, false
	}
	var t Tool
	if !o.IgnoreHeaders {
		var err error
		if t.Raw, err = rawHeaders(d.get("inputSchema")); err != nil {
			d.add("invalid_header", err.Error()+": left out")
			return Tool{Warnings: d.list}, false
		}
	}
	d.repair()
	t.Renames = d.input(o)
	d.output(o)
	d.override(o)
	t.JSON, t.Warnings = d.json(), d.list
	t.InputSchema = jsonrpc.Get(t.JSON, "inputSchema")
	t.Shown = shownHeaders(t.InputSchema)
	t.ShowsOutput = d.get("outputSchema") != nil
	t.Description, _ = jsonrpc.Unquote(d.get("description"))
	return t, true
}

// A definition is a tool taken apart into its members.
type definition struct {
	keys   []string
	values []json.RawMessage // nil: gone
	at     map[string]int
	warnings
}

func (d *definition) get(key string) json.RawMessage {
	if i, ok := d.at[key]; ok {
		return d.values[i]
	}
	return nil
}

// set replaces a member in its place, or appends it.
func (d *definition) set(key string, value json.RawMessage) {
	if i, ok := d.at[key]; ok && d.values[i] != nil {
		d.values[i] = value
		return
	}
	if d.at == nil {
		d.at = make(map[string]int, 8)
	}
	d.at[key] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, value)
}

// drop removes what a client would lose its list over.
func (d *definition) drop(key string) {
	d.add("dropped:"+key, key+" is malformed: left out")
}

func (d *definition) take(w []Warning) {
	for _, one := range w {
		d.add(one.Code, one.Message)
	}
}

// repair drops malformed members.
func (d *definition) repair() {
	for i, key := range d.keys {
		value := d.values[i]
		switch key {
		case "title", "description":
			if !jsonrpc.IsString(value) {
				d.values[i] = nil
			}
		case "annotations":
			d.values[i] = d.filter(value, validHint)
		case "execution":
			d.values[i] = d.filter(value, validExecution)
		case "_meta":
			if !jsonrpc.IsObject(value) {
				d.values[i] = nil
			}
		case "icons":
			d.values[i] = d.icons(value)
		}
		if d.values[i] == nil {
			d.drop(key)
		}
	}
}

// filter returns an object with the members that are valid, nil for anything else.
func (d *definition) filter(value json.RawMessage, valid func(name string, v json.RawMessage) bool) json.RawMessage {
	if !jsonrpc.IsObject(value) {
		return nil
	}
	var kept definition
	dropped := false
	for m := range jsonrpc.Members(value) {
		if !valid(string(m.Key), m.Value) {
			d.drop(shown(string(m.Key)))
			dropped = true
			continue
		}
		kept.set(string(m.Key), m.Value)
	}
	if !dropped {
		return value
	}
	return kept.json()
}

func validHint(name string, v json.RawMessage) bool {
	switch name {
	case "title":
		return jsonrpc.IsString(v)
	case "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint":
		return string(v) == "true" || string(v) == "false"
	}
	return true
}

func validExecution(name string, v json.RawMessage) bool {
	if name != "taskSupport" {
		return true
	}
	switch string(v) {
	case `"forbidden"`, `"optional"`, `"required"`:
		return true
	}
	return false
}

// icons returns a list of the icons that are well formed, nil for what is no list.
func (d *definition) icons(value json.RawMessage) json.RawMessage {
	if !jsonrpc.IsArray(value) {
		return nil
	}
	kept, dropped := []byte{'['}, false
	for icon := range jsonrpc.Elements(value) {
		if !validIcon(icon) {
			d.drop("icon")
			dropped = true
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, icon...)
	}
	if !dropped {
		return value
	}
	return append(kept, ']')
}

func validIcon(icon json.RawMessage) bool {
	source := false
	for m := range jsonrpc.Members(icon) {
		valid := true
		switch string(m.Key) {
		case "src":
			valid = jsonrpc.IsString(m.Value)
			source = valid
		case "mimeType":
			valid = jsonrpc.IsString(m.Value)
		case "sizes":
			valid = jsonrpc.IsArray(m.Value)
			for size := range jsonrpc.Elements(m.Value) {
				valid = valid && jsonrpc.IsString(size)
			}
		case "theme":
			valid = string(m.Value) == `"light"` || string(m.Value) == `"dark"`
		}
		if !valid {
			return false
		}
	}
	return source
}

// input flattens or repairs the inputSchema.
func (d *definition) input(o Options) Renames {
	schema, renames, w := input(d.get("inputSchema"), o.Mode)
	d.take(w)
	d.set("inputSchema", schema)
	return renames
}

// output repairs or removes the outputSchema.
func (d *definition) output(o Options) {
	i, ok := d.at["outputSchema"]
	switch {
	case !ok:
	case o.DropOutput:
		d.values[i] = nil
	default:
		var w []Warning
		d.values[i], w = output(d.values[i])
		d.take(w)
	}
}

// override applies what the configuration says of the tool.
func (d *definition) override(o Options) {
	if o.Public != "" {
		d.set("name", jsonrpc.AppendQuote(nil, o.Public))
	}
	if o.Title != nil {
		d.set("title", jsonrpc.AppendQuote(nil, *o.Title))
	}
	if o.Description != nil {
		d.set("description", jsonrpc.AppendQuote(nil, *o.Description))
	}
	if len(o.Meta) == 0 {
		return
	}
	var meta definition
	for _, source := range []json.RawMessage{d.get("_meta"), jsonrpc.Compact(nil, o.Meta)} {
		for m := range jsonrpc.Members(source) {
			meta.set(string(m.Key), m.Value)
		}
	}
	d.set("_meta", meta.json())
}

func (d *definition) json() json.RawMessage {
	size := 2
	for i, value := range d.values {
		size += len(d.keys[i]) + len(value) + len(`"":,`)
	}
	out := append(make([]byte, 0, size), '{')
	for i, value := range d.values {
		if value == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), d.keys[i]...), '"', ':')
		out = append(out, value...)
	}
	return append(out, '}')
}
