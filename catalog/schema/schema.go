// Package schema flattens and repairs the schemas of tools and the tools themselves.
//
// It knows the rules by which a schema becomes one that every client accepts: without
// references and combinators, with names that clients allow. Values go in and values
// come out; whatever a server sends, the work and the result are bounded. Everything
// that is taken must have passed jsonrpc.Check.
package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// A Mode says how much of an input schema is changed.
type Mode uint8

const (
	// Flatten writes out references and combinators and repairs what clients refuse.
	Flatten Mode = iota
	// Passthrough repairs only what would cost a client its whole list.
	Passthrough
)

// ModeOf returns the mode that the configuration calls by name; Flatten is the default.
func ModeOf(name string) Mode {
	if name == "passthrough" {
		return Passthrough
	}
	return Flatten
}

// A Warning says what was lost or repaired. It does not name the tool.
type Warning struct {
	Code    string // for example renamed_property or dropped:description
	Message string
}

// maxGrowth is how much longer than its input a schema may become.
const maxGrowth = 1 << 20

const empty = `{"type":"object","properties":{}}`

// Input returns the schema to list for an inputSchema, nil included: compact, an object
// schema in either mode. The names that were changed are in the Renames.
func Input(raw json.RawMessage, m Mode) (json.RawMessage, Renames, []Warning) {
	return input(jsonrpc.Compact(make([]byte, 0, len(raw)), raw), m)
}

func input(compact []byte, m Mode) (json.RawMessage, Renames, []Warning) {
	var w warnings
	if len(compact) == 0 || compact[0] != '{' {
		if len(compact) > 0 && !jsonrpc.IsNull(compact) {
			w.add("root_not_object", "the input schema is no object")
		}
		return json.RawMessage(empty), Renames{}, w.list
	}
	root := parse(compact)
	if m == Passthrough {
		if repairRoot(root, &w) {
			compact = root.write(nil)
		}
		return compact, Renames{}, w.list
	}
	if settled(root) {
		return compact, Renames{}, nil
	}
	out, renames := flatten(root, &w, len(compact))
	if len(out) > len(compact)+maxGrowth {
		w.add("schema_cut", "the schema would become too long: nothing of it is left")
		return json.RawMessage(empty), Renames{}, w.list
	}
	return out, renames, w.list
}

func flatten(root *node, w *warnings, size int) (json.RawMessage, Renames) {
	f := newFlattener(root, w, size)
	f.forced = true
	flat := f.schema(root, 1)
	if flat.demand != undemanded {
		w.invalid("required")
	}
	f.finish(flat)
	f.finishRoot(flat)
	renames := f.rename(flat)
	return flat.write(make([]byte, 0, size)), renames
}

// Output returns the schema to list for an outputSchema: not flattened, but repaired at
// its root; nil if it describes no object or a reference in it leads nowhere.
func Output(raw json.RawMessage) (json.RawMessage, []Warning) {
	return output(jsonrpc.Compact(make([]byte, 0, len(raw)), raw))
}

func output(compact []byte) (json.RawMessage, []Warning) {
	var w warnings
	if !jsonrpc.IsObject(compact) {
		w.add("output_schema_dropped", "the output schema is no object")
		return nil, w.list
	}
	root := parse(compact)
	doc := document{root: root}
	complete := walk(root, func(n *node) bool {
		for _, key := range references {
			if ref := n.get(key); ref != nil && doc.resolve(ref) == nil {
				w.add("output_schema_dropped", "in the output schema "+key+" "+shown(ref.raw)+" leads nowhere")
				return false
			}
		}
		return true
	}, false)
	if !complete {
		return nil, w.list
	}
	if !root.get("type").is(`"object"`) && !makesObject(root, len(compact)) {
		w.add("output_schema_dropped", "the output schema describes no object")
		return nil, w.list
	}
	if repairRoot(root, &w) {
		compact = root.write(nil)
	}
	return compact, w.list
}

// makesObject reports whether flattening gives an object schema, by type or by
// properties.
func makesObject(root *node, size int) bool {
	flat := newFlattener(root, &warnings{}, size).schema(root, 1)
	if t := flat.get("type"); t != nil {
		return slices.Contains(types(t), "object")
	}
	return flat.get("properties") != nil
}

// repairRoot does to the root of a schema, in place, what a client would otherwise drop
// its whole list for, and reports whether anything was done.
func repairRoot(root *node, w *warnings) bool {
	changed := root.repeats
	if forceObject(root, w) {
		changed = true
	}
	if i := root.find("properties"); i >= 0 && repairProperties(&root.members[i], w) {
		changed = true
	}
	if i := root.find("required"); i >= 0 {
		switch names := root.members[i].value; {
		case names.kind != list:
			w.invalid("required")
			root.remove(i)
			changed = true
		default:
			if kept := onlyStrings(names, w); kept != names {
				root.members[i].value, changed = kept, true
			}
		}
	}
	if changed {
		root.raw = ""
	}
	return changed
}

// forceObject makes the type of the root the word object: in its place, or in front.
func forceObject(root *node, w *warnings) bool {
	t := root.get("type")
	if t == nil {
		root.insert("type", text(`"object"`))
		return true
	}
	if t.is(`"object"`) {
		return false
	}
	if !slices.Contains(types(t), "object") {
		w.add("root_type_forced", "the root has type "+shown(string(t.write(nil)))+": made an object")
	}
	root.members[root.find("type")].value = text(`"object"`)
	return true
}

func repairProperties(m *member, w *warnings) bool {
	if m.value.kind != object {
		w.invalid("properties")
		m.value = build(object)
		return true
	}
	repaired, changed := build(object), m.value.repeats
	for _, p := range m.value.members {
		value := p.value
		if value.kind != object {
			if !value.isBool() {
				w.subschema()
			}
			value, changed = boolean(value), true
		}
		repaired.add(p.key, value)
	}
	if changed {
		m.value = repaired
	}
	return changed
}

// onlyStrings returns names itself if it holds nothing else.
func onlyStrings(names *node, w *warnings) *node {
	kept := build(list)
	for _, m := range names.members {
		if m.value.isString() {
			kept.add("", m.value)
		}
	}
	if len(kept.members) == len(names.members) {
		return names
	}
	w.invalid("required")
	return kept
}

// boolean returns as an object what was written as a boolean, or as no schema at all.
func boolean(v *node) *node {
	n := build(object)
	if v.is("false") {
		n.add("not", build(object))
	}
	return n
}

// warnings gathers one warning of each code: the first.
type warnings struct{ list []Warning }

// maxWarnings bounds what a schema with a thousand faults makes of the log.
const maxWarnings = 32

func (w *warnings) add(code, message string) {
	if len(w.list) == maxWarnings {
		return
	}
	for _, known := range w.list {
		if known.Code == code {
			return
		}
	}
	w.list = append(w.list, Warning{code, message})
}

func (w *warnings) invalid(key string) {
	key = shown(key)
	w.add("invalid_keyword:"+key, "the value of "+key+" is of the wrong kind: left out")
}

func (w *warnings) subschema() {
	w.add("invalid_subschema", "a value that is no schema stands where one should: anything is accepted")
}

// maxShown is how much of a server's text a warning repeats.
const maxShown = 64

// shown cuts JSON text for a warning. It has no raw control characters.
func shown(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "… (" + strconv.Itoa(len(s)) + " bytes)"
}
