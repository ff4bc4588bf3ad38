package schema

import (
	"iter"
	"net/url"
	"strconv"
	"strings"
)

// A document finds what references in it lead to.
type document struct {
	root    *node
	targets map[string]*node // by the text of a reference; nil: nowhere
	ids     map[string]*node // by $id, and by "#" and anchor; nil until needed
}

// resolve returns the schema to which a reference leads, nil if it leads nowhere.
func (d *document) resolve(ref *node) *node {
	if !ref.isString() {
		return nil
	}
	target, known := d.targets[ref.raw]
	if !known {
		if d.targets == nil {
			d.targets = map[string]*node{}
		}
		target = d.find(ref.string())
		d.targets[ref.raw] = target
	}
	return target
}

func (d *document) find(ref string) *node {
	fragment, local := strings.CutPrefix(ref, "#")
	if local {
		decoded, err := url.PathUnescape(fragment)
		if err != nil {
			return nil
		}
		fragment = decoded
	}
	if fragment == "" {
		return d.root
	}
	if local && fragment[0] == '/' {
		return d.pointer(fragment[1:])
	}
	if d.ids == nil {
		d.index()
	}
	if target, ok := d.ids[ref]; ok {
		return target
	}
	if local {
		return d.ids["#"+fragment]
	}
	return nil
}

func (d *document) index() {
	d.ids = map[string]*node{}
	note := func(name string, n *node) {
		if _, taken := d.ids[name]; !taken {
			d.ids[name] = n
		}
	}
	walk(d.root, func(n *node) bool {
		for _, m := range n.members {
			switch m.key {
			case "$id":
				note(m.value.string(), n)
			case "$anchor", "$dynamicAnchor":
				note("#"+m.value.string(), n)
			}
		}
		return true
	}, true)
}

// A position is what a value is by where it stands.
type position uint8

const (
	asSchema  position = iota
	asSchemas          // an object or a list of schemas, and no schema itself
	asOther            // a place of which nothing is known: an object may be meant as a schema
)

// pointer follows a JSON pointer (RFC 6901) without its first slash. It may lead
// anywhere in the document, but has to end at what can be meant as a schema.
func (d *document) pointer(path string) *node {
	n, at := d.root, asSchema
	for token := range strings.SplitSeq(path, "/") {
		key, ok := unescape(token)
		if !ok {
			return nil
		}
		switch {
		case n.kind == list:
			n = n.element(key)
		default:
			n = n.get(quoted(key))
		}
		if n == nil {
			return nil
		}
		at = next(at, key, n)
	}
	if n.kind == object && at != asSchemas || n.isBool() && at == asSchema {
		return n
	}
	return nil
}

func next(at position, key string, n *node) position {
	switch at {
	case asSchemas:
		return asSchema
	case asOther:
		return asOther
	}
	switch k := lookup(key); {
	case key == "$defs" || key == "definitions":
		return asSchemas
	case k.role == roleSchemas || k.role == roleEither || k.role == roleTuple || k.role == roleCombinator:
		return asSchemas
	case k.role == roleItems && n.kind == list:
		return asSchemas
	case k.role == roleSchema || k.role == roleItems || k.role == roleAdditional || k.role == roleNot || k.role == roleBranch:
		return asSchema
	}
	return asOther
}

// unescape undoes ~1 and ~0; any other use of ~ is an error.
func unescape(token string) (string, bool) {
	if strings.IndexByte(token, '~') < 0 {
		return token, true
	}
	for i := 0; i < len(token); i++ {
		if token[i] == '~' && (i+1 == len(token) || token[i+1] != '0' && token[i+1] != '1') {
			return "", false
		}
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token), true
}

// element returns the element of a list with a number as a pointer spells it.
func (n *node) element(token string) *node {
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i >= len(n.members) || strconv.Itoa(i) != token {
		return nil
	}
	return n.members[i].value
}

// walk visits the objects that are schemas in a source tree, wherever a schema can
// stand, definitions included, until visit returns false. With vendor also those that
// unknown keywords hold, since references may lead there.
func walk(n *node, visit func(*node) bool, vendor bool) bool {
	switch n.kind {
	case object:
		if !visit(n) {
			return false
		}
		for _, m := range n.members {
			for child := range schemasOf(m, vendor) {
				if !walk(child, visit, vendor) {
					return false
				}
			}
		}
	case list:
		for _, m := range n.members {
			if !walk(m.value, visit, vendor) {
				return false
			}
		}
	}
	return true
}

// schemasOf yields the values in one member of a schema that are schemas, or lists of
// them.
func schemasOf(m member, vendor bool) iter.Seq[*node] {
	k := lookup(m.key)
	return func(yield func(*node) bool) {
		switch {
		case k.role == roleSchemas, k.role == roleEither, m.key == "$defs", m.key == "definitions":
			for _, child := range m.value.members {
				if child.value.kind == object && !yield(child.value) {
					return
				}
			}
		case k.role >= roleCombinator && k.role <= roleBranch, k.role == roleTuple, k.role == roleVendor && vendor:
			yield(m.value)
		}
	}
}

// sizeOf is what writing out a schema of the source costs: its text without its own
// definitions.
func sizeOf(n *node) int {
	if n.size == 0 {
		n.size = int32(len(n.raw))
		for _, m := range n.members {
			if n.kind == object && (m.key == "$defs" || m.key == "definitions") {
				n.size -= int32(len(m.key) + len(`"":`) + len(m.value.raw))
			}
		}
	}
	return int(n.size)
}
