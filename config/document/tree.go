package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Bounds of one file. Aliases count as often as they are used.
const (
	maxDepth = 64
	maxNodes = 100_000
)

type kind uint8

const (
	null kind = iota
	text
	integer
	float
	boolean
	list
	mapping
	strange // a tag of somebody else's
)

// A node is a value of the file with aliases and merge keys resolved.
type node struct {
	kind    kind
	line    int
	scalar  string   // as written, quotes and escapes undone
	items   []*node  // of a list
	members []member // of a mapping, keys once each
}

type member struct {
	key   string
	line  int
	value *node
}

// A file is one file while it is read.
type file struct {
	name   string
	report *Report

	lines int                 // of text
	nodes int                 // counted against maxNodes
	open  map[*yaml.Node]bool // lists and mappings around the one being read
}

// Read reads the one YAML or JSON document of data, the content of a file, into a Value.
// False: there is nothing in it, or it cannot be read, which r knows then.
func Read(r *Report, name string, data []byte) (Value, bool) {
	r.order[name] = len(r.order)
	f := &file{name: name, report: r}
	root := f.parse(data)
	if root == nil {
		return Value{}, false
	}
	return Value{root, f, root.line, ""}, true
}

// errUnfit ends the reading of a tree that has no end or is too large.
var errUnfit = errors.New("unfit")

// parse returns the tree of data; nil if there is none or it could not be read.
func (f *file) parse(data []byte) *node {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if at := badByte(data); at >= 0 {
		f.report.Wrong(f.name, 1+bytes.Count(data[:at], []byte{'\n'}), "",
			"a control character or a byte that is not UTF-8 (write UTF-8, and control characters as escapes in double quotes)")
		return nil
	}
	if json.Valid(data) {
		data = joinSurrogates(data)
	}
	f.lines = 1 + bytes.Count(bytes.TrimRight(data, "\r\n"), []byte{'\n'})
	document, ok := f.document(data)
	if !ok || len(document.Content) == 0 {
		return nil
	}
	f.open = map[*yaml.Node]bool{}
	root, err := f.build(document.Content[0], "", 0)
	if err != nil {
		return nil
	}
	return root
}

// document reads the one YAML document of data.
func (f *file) document(data []byte) (*yaml.Node, bool) {
	// Our own walk counts what aliases unfold to, and the library need not.
	loader, err := yaml.NewLoader(bytes.NewReader(data),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth), loaderlimits.AliasNone())))
	if err != nil {
		f.report.Wrong(f.name, 1, "", err.Error())
		return nil, false
	}
	var first, second yaml.Node
	switch err := loader.Load(&first); {
	case errors.Is(err, io.EOF):
		return &first, true
	case err != nil:
		f.syntax(err)
		return nil, false
	}
	switch err := loader.Load(&second); {
	case errors.Is(err, io.EOF):
		return &first, true
	case err != nil:
		f.syntax(err)
	default:
		f.report.Wrong(f.name, second.Line, "", "a second YAML document (write one document a file)")
	}
	return nil, false
}

func (f *file) syntax(err error) {
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		f.report.Wrong(f.name, 1, "", "no YAML: "+err.Error())
		return
	}
	// What is missing at the end is found behind it, on a line that no editor shows.
	line := min(load.Mark.Line, f.lines)
	what := load.Message
	if load.ContextMsg != "" {
		what += " " + load.ContextMsg
		if load.ContextMark.Line > 0 {
			what += fmt.Sprintf(" that starts at line %d", load.ContextMark.Line)
		}
	}
	f.report.Wrong(f.name, line, "", "no YAML: "+what)
}

// build copies n without aliases. Its only error is errUnfit, already reported.
func (f *file) build(n *yaml.Node, path string, depth int) (*node, error) {
	if f.nodes++; f.nodes > maxNodes || depth > maxDepth {
		f.report.Wrong(f.name, n.Line, path, fmt.Sprintf("too large (at most %d values with aliases written out, %d levels)", maxNodes, maxDepth))
		return nil, errUnfit
	}
	tag := n.ShortTag()
	switch {
	case n.Kind == yaml.AliasNode:
		if n.Alias == nil || f.open[n.Alias] {
			f.report.Wrong(f.name, n.Line, path, fmt.Sprintf("alias *%s refers to itself", Clip(n.Value)))
			return nil, errUnfit
		}
		return f.build(n.Alias, path, depth+1)
	case n.Kind == yaml.ScalarNode:
		return &node{kind: kindOf(tag), line: n.Line, scalar: n.Value}, nil
	case n.Kind == yaml.SequenceNode && tag == "!!seq":
		f.open[n] = true
		defer delete(f.open, n)
		return f.list(n, path, depth)
	case n.Kind == yaml.MappingNode && tag == "!!map":
		f.open[n] = true
		defer delete(f.open, n)
		return f.mapping(n, path, depth)
	}
	return &node{kind: strange, line: n.Line}, nil
}

func (f *file) list(n *yaml.Node, path string, depth int) (*node, error) {
	out := &node{kind: list, line: n.Line}
	for i, item := range n.Content {
		value, err := f.build(item, fmt.Sprintf("%s[%d]", path, i), depth+1)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, value)
	}
	return out, nil
}

func (f *file) mapping(n *yaml.Node, path string, depth int) (*node, error) {
	out := &node{kind: mapping, line: n.Line}
	at := make(map[string]int, len(n.Content)/2) // key to index in out.members
	var merged []*node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			f.report.Wrong(f.name, key.Line, path, "a key that is no text")
			continue
		}
		below := join(path, key.Value)
		value, err := f.build(n.Content[i+1], below, depth+1)
		if err != nil {
			return nil, err
		}
		first, twice := at[key.Value]
		switch {
		case key.ShortTag() == "!!merge":
			merged = append(merged, value)
		case twice:
			f.report.Wrong(f.name, key.Line, below,
				fmt.Sprintf("duplicate key %q (first at line %d; keep one)", Clip(key.Value), out.members[first].line))
		default:
			at[key.Value] = len(out.members)
			out.members = append(out.members, member{key.Value, key.Line, value})
		}
	}
	for _, value := range merged {
		f.merge(out, at, value, path)
	}
	return out, nil
}

// merge adds the members of from that out lacks: YAML's "<<".
func (f *file) merge(out *node, at map[string]int, from *node, path string) {
	switch from.kind {
	case mapping:
		for _, m := range from.members {
			if _, there := at[m.key]; !there {
				at[m.key] = len(out.members)
				out.members = append(out.members, m)
			}
		}
	case list:
		for _, item := range from.items {
			if item.kind == list {
				item = &node{kind: null, line: item.line}
			}
			f.merge(out, at, item, path)
		}
	default:
		f.report.Wrong(f.name, from.line, join(path, "<<"), "nothing to merge (want a mapping or a list of mappings)")
	}
}

func kindOf(tag string) kind {
	switch tag {
	case "!!null":
		return null
	case "!!str", "!!timestamp": // a date is a text here
		return text
	case "!!int":
		return integer
	case "!!float":
		return float
	case "!!bool":
		return boolean
	}
	return strange
}

// equal compares values; the order of members does not count.
func equal(a, b *node) bool {
	if a.kind != b.kind || a.scalar != b.scalar || len(a.items) != len(b.items) || len(a.members) != len(b.members) {
		return false
	}
	for i := range a.items {
		if !equal(a.items[i], b.items[i]) {
			return false
		}
	}
	of := make(map[string]*node, len(b.members))
	for _, m := range b.members {
		of[m.key] = m.value
	}
	for _, m := range a.members {
		if other := of[m.key]; other == nil || !equal(m.value, other) {
			return false
		}
	}
	return true
}

// join appends key to path, quoted if it would not be recognised otherwise.
func join(path, key string) string {
	plain := key != "" && strings.IndexFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && r != '$' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
	switch {
	case !plain:
		return path + "[" + strconv.Quote(Clip(key)) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// Clip shortens a foreign text that a report shows.
func Clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// badByte returns where data stops being text, or -1.
func badByte(data []byte) int {
	for i := 0; i < len(data); {
		c := data[i]
		if c < 0x80 {
			if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
				return i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// joinSurrogates writes the surrogate pairs of a JSON document as the characters
// they stand for: the only escapes that YAML does not share with JSON.
func joinSurrogates(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\u`)) {
		return data
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		if data[i] != '\\' {
			out = append(out, data[i])
			i++
			continue
		}
		if r := utf16.DecodeRune(escaped(data[i:]), escaped(data[min(i+6, len(data)):])); r != utf8.RuneError {
			out = utf8.AppendRune(out, r)
			i += 12
			continue
		}
		out = append(out, data[i], data[i+1]) // valid JSON: a character follows
		i += 2
	}
	return out
}

// escaped returns the code unit of a \uXXXX at the start of b, else 0.
func escaped(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(unit)
}
