package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

type kind uint8

const (
	scalar kind = iota
	object
	list
)

// A node is one JSON value. A node of the source is never changed; what flattening
// makes is built from new objects and lists over the values of the source.
type node struct {
	raw     string   // compact text of a source value; "" for one that was built
	members []member // of an object; of a list with empty keys
	at      map[string]int
	size    int32 // see sizeOf
	open    int32 // how often the place being written stands in this schema
	kind    kind
	repeats bool // the source names a member twice
	verdict verdict
	demand  demand
}

// A member has its key as it stands between the quotes of compact JSON: spelled in one
// way only, so that equal names are equal bytes.
type member struct {
	key   string
	value *node
}

// few is up to how many members a search looks at one after another.
const few = 16

// find returns the place of a member of an object, or of a scalar in a list by its
// text; -1 if it is not there.
func (n *node) find(key string) int {
	if len(n.members) > few {
		if n.at == nil {
			n.index()
		}
		if i, ok := n.at[key]; ok {
			return i
		}
		return -1
	}
	for i := range n.members {
		if n.label(i) == key {
			return i
		}
	}
	return -1
}

func (n *node) index() {
	n.at = make(map[string]int, 2*len(n.members))
	for i := range n.members {
		if _, ok := n.at[n.label(i)]; !ok {
			n.at[n.label(i)] = i
		}
	}
}

func (n *node) label(i int) string {
	if n.kind == list {
		return n.members[i].value.raw
	}
	return n.members[i].key
}

// get returns the value of a member of an object, nil if there is none.
func (n *node) get(key string) *node {
	if n.kind == object {
		if i := n.find(key); i >= 0 {
			return n.members[i].value
		}
	}
	return nil
}

// add appends to a built object or list.
func (n *node) add(key string, value *node) {
	n.members = append(n.members, member{key, value})
	if n.at != nil {
		n.at[n.label(len(n.members)-1)] = len(n.members) - 1
	}
}

// insert puts a member in front.
func (n *node) insert(key string, value *node) {
	n.members, n.at = slices.Insert(n.members, 0, member{key, value}), nil
}

func (n *node) remove(i int) {
	n.members, n.at = slices.Delete(n.members, i, i+1), nil
}

func text(raw string) *node      { return &node{raw: raw} }
func build(k kind) *node         { return &node{kind: k} }
func (n *node) is(s string) bool { return n != nil && n.kind == scalar && n.raw == s }
func (n *node) isBool() bool     { return n.is("true") || n.is("false") }
func (n *node) isString() bool   { return n.raw != "" && n.raw[0] == '"' }
func (n *node) isNumber() bool {
	return n.raw != "" && (n.raw[0] == '-' || n.raw[0] >= '0' && n.raw[0] <= '9')
}

// string returns the text of a string, "" for anything else.
func (n *node) string() string {
	if !n.isString() {
		return ""
	}
	return unquoted(n.raw[1 : len(n.raw)-1])
}

// write appends the compact text.
func (n *node) write(dst []byte) []byte {
	if n.raw != "" {
		return append(dst, n.raw...)
	}
	opening, closing := byte('{'), byte('}')
	if n.kind == list {
		opening, closing = '[', ']'
	}
	dst = append(dst, opening)
	for i, m := range n.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		if n.kind == object {
			dst = append(append(append(dst, '"'), m.key...), '"', ':')
		}
		dst = m.value.write(dst)
	}
	return append(dst, closing)
}

// length returns how much write appends.
func (n *node) length() int {
	if n.raw != "" {
		return len(n.raw)
	}
	size := len("{}") + max(len(n.members)-1, 0)
	for _, m := range n.members {
		if size += m.value.length(); n.kind == object {
			size += len(m.key) + len(`"":`)
		}
	}
	return size
}

// canonical appends a text that two values share exactly if they are equal: members
// sorted, numbers by value.
func (n *node) canonical(dst []byte) []byte {
	switch {
	case n.kind == object:
		values := make(map[string]*node, len(n.members))
		for _, m := range n.members {
			values[m.key] = m.value
		}
		dst = append(dst, '{')
		for _, key := range slices.Sorted(maps.Keys(values)) {
			dst = append(append(append(dst, '"'), key...), '"', ':')
			dst = append(values[key].canonical(dst), ',')
		}
		return append(dst, '}')
	case n.kind == list:
		dst = append(dst, '[')
		for _, m := range n.members {
			dst = append(m.value.canonical(dst), ',')
		}
		return append(dst, ']')
	case n.isNumber():
		return parseDecimal(n.raw).canonical(dst, n.raw)
	}
	return append(dst, n.raw...)
}

// parse reads compact JSON that has passed jsonrpc.Check. Of a member that is named
// twice the last one counts, at the place of the first, as in most decoders.
func parse(compact []byte) *node {
	p := parser{b: compact, s: string(compact)}
	n, _ := p.value(0)
	return n
}

type parser struct {
	b     []byte
	s     string   // the same, for keys and values to share
	nodes []node   // to be used next
	room  []member // the same
	stack []member // what is read of the objects and lists that are open
}

func (p *parser) value(i int) (*node, int) {
	n, start := p.node(), i
	switch p.b[i] {
	case '{':
		n.kind = object
	case '[':
		n.kind = list
	default:
		i = jsonrpc.Skip(p.b, i)
		n.raw = p.s[start:i]
		return n, i
	}
	base := len(p.stack)
	for i++; p.b[i] != '}' && p.b[i] != ']'; {
		if p.b[i] == ',' {
			i++
		}
		var m member
		if n.kind == object {
			end := jsonrpc.Skip(p.b, i)
			m.key, i = p.s[i+1:end-1], end+1
		}
		m.value, i = p.value(i)
		p.stack = append(p.stack, m)
	}
	n.members = p.close(n, base)
	n.raw = p.s[start : i+1]
	return n, i + 1
}

// close takes the members from base on off the stack.
func (p *parser) close(n *node, base int) []member {
	count := len(p.stack) - base
	if count > len(p.room) {
		p.room = make([]member, max(count, p.batch()))
	}
	members := p.room[:count:count]
	p.room = p.room[count:]
	copy(members, p.stack[base:])
	p.stack = p.stack[:base]
	if n.kind == object && repeats(members) {
		n.repeats = true
		members = lastOfEach(members)
	}
	return members
}

func repeats(members []member) bool {
	if len(members) > few {
		seen := make(map[string]bool, len(members))
		for _, m := range members {
			seen[m.key] = true
		}
		return len(seen) < len(members)
	}
	for i := range members {
		for j := range i {
			if members[i].key == members[j].key {
				return true
			}
		}
	}
	return false
}

func lastOfEach(members []member) []member {
	at, kept := make(map[string]int), members[:0]
	for _, m := range members {
		if i, ok := at[m.key]; ok {
			kept[i].value = m.value
			continue
		}
		at[m.key] = len(kept)
		kept = append(kept, m)
	}
	return kept
}

func (p *parser) node() *node {
	if len(p.nodes) == 0 {
		p.nodes = make([]node, p.batch())
	}
	n := &p.nodes[0]
	p.nodes = p.nodes[1:]
	return n
}

// batch is for how many values room is made at once: a schema has some dozens, which
// live and die together.
func (p *parser) batch() int { return min(max(16, len(p.b)/20), 1024) }

// unquoted returns a key without its escapes.
func unquoted(key string) string {
	if strings.IndexByte(key, '\\') < 0 {
		return key
	}
	s, _ := jsonrpc.Unquote([]byte(`"` + key + `"`))
	return s
}

// quoted returns a text as a key or as what stands between the quotes of a string.
func quoted(s string) string {
	q := jsonrpc.AppendQuote(nil, s)
	return string(q[1 : len(q)-1])
}
