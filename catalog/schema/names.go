package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

const (
	// maxName is how long a property name may be.
	maxName = 64
	// headLength is what remains of a longer one before "_" and eight digits of its hash.
	headLength = maxName - 9
)

// legal reports whether every client accepts a property name.
func legal(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for i := 0; i < len(name); i++ {
		if !legalByte(name[i]) {
			return false
		}
	}
	return true
}

func legalByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}

// clean returns a legal name for any other.
func clean(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r < 0x80 && legalByte(byte(r)) {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	cleaned := b.String()
	switch {
	case cleaned == "":
		return "_"
	case len(cleaned) > maxName:
		sum := sha256.Sum256([]byte(name))
		return strings.TrimRight(cleaned[:headLength], "_-.") + "_" + hex.EncodeToString(sum[:4])
	}
	return cleaned
}

// A group is all schemas that speak of the same object: one of the tree, and what
// stands in its conditions and dependencies. They share their names.
type group struct {
	schemas    []*node
	properties []string           // illegal ones included, in order of first sight
	values     map[string][]*node // the schemas of a property
	taken      map[string]bool    // names that keep or have got their place
	elements   []*node            // of lists
	tuple      [][]*node
	rest       []*node // of properties without a schema of their own
	patterns   []member
	names      []*node // propertyNames
}

// rename gives the properties in a flattened tree legal names.
func (f *flattener) rename(root *node) Renames {
	if !f.illegal {
		return Renames{}
	}
	f.add("renamed_property", "property names that clients refuse are shown under other names")
	return Renames{renameGroup([]*node{root})}
}

func renameGroup(schemas []*node) *scope {
	if len(schemas) == 0 {
		return nil
	}
	g := group{values: map[string][]*node{}, taken: map[string]bool{}}
	for _, n := range schemas {
		g.collect(n)
	}
	s := scope{properties: map[string]*scope{}}
	names := g.assign()
	for _, n := range g.schemas {
		apply(n, names)
	}
	for _, name := range g.properties {
		public := strings.Clone(name) // the source need not stay in memory
		if to, renamed := names[name]; renamed {
			public = to
			if s.own == nil {
				s.own = map[string]string{}
			}
			s.own[to] = `"` + name + `"`
		}
		s.properties[public] = renameGroup(g.values[name])
		s.useful = s.useful || s.properties[public] != nil
	}
	s.elements = renameGroup(g.elements)
	for _, place := range g.tuple {
		s.tuple = append(s.tuple, renameGroup(place))
		s.useful = s.useful || s.tuple[len(s.tuple)-1] != nil
	}
	s.rest = renameGroup(g.rest)
	for _, m := range g.patterns {
		s.pattern(unquoted(m.key), renameGroup([]*node{m.value}))
	}
	renameGroup(g.names) // names of names: nothing to put back
	if s.own == nil && s.elements == nil && s.rest == nil && !s.useful {
		return nil
	}
	return &s
}

// collect takes a schema into the group.
func (g *group) collect(n *node) {
	if n.kind != object {
		return
	}
	g.schemas = append(g.schemas, n)
	for _, m := range n.members {
		v := m.value
		switch m.key {
		case "properties":
			for _, p := range v.members {
				g.property(p)
			}
		case "required":
			g.mention(v)
		case "dependentRequired", "dependentSchemas", "dependencies":
			for _, d := range v.members {
				g.taken[d.key] = true
				g.mention(d.value)
				g.collect(d.value)
			}
		case "not", "if", "then", "else":
			g.collect(v)
		case "items", "additionalItems", "unevaluatedItems", "contains":
			g.elements = append(g.elements, v)
		case "prefixItems":
			for i, e := range v.members {
				if i == len(g.tuple) {
					g.tuple = append(g.tuple, nil)
				}
				g.tuple[i] = append(g.tuple[i], e.value)
			}
		case "additionalProperties", "unevaluatedProperties":
			g.rest = append(g.rest, v)
		case "patternProperties":
			g.patterns = append(g.patterns, v.members...)
		case "propertyNames":
			g.names = append(g.names, v)
		}
	}
}

func (g *group) property(p member) {
	if _, known := g.values[p.key]; !known {
		g.properties = append(g.properties, p.key)
	}
	g.values[p.key] = append(g.values[p.key], p.value)
	g.taken[p.key] = true
}

// mention takes the names of a list, so that none of them is given to another property.
func (g *group) mention(names *node) {
	if names.kind != list {
		return
	}
	for _, m := range names.members {
		if m.value.isString() {
			g.taken[m.value.raw[1:len(m.value.raw)-1]] = true
		}
	}
}

// assign gives each illegal property a legal name, in the order of the schema.
func (g *group) assign() map[string]string {
	names, numbers := map[string]string{}, map[string]int{}
	for _, name := range g.properties {
		if legal(name) {
			continue
		}
		base := clean(unquoted(name))
		given := base
		for number := max(numbers[base], 2); g.taken[given]; number++ {
			suffix := "_" + strconv.Itoa(number)
			given = base[:min(len(base), maxName-len(suffix))] + suffix
			numbers[base] = number + 1
		}
		g.taken[given] = true
		names[name] = given
	}
	return names
}

// apply renames wherever a schema speaks of its own properties.
func apply(n *node, names map[string]string) {
	if len(names) == 0 {
		return
	}
	for _, m := range n.members {
		switch m.key {
		case "properties", "dependentSchemas":
			renameKeys(m.value, names)
		case "dependentRequired", "dependencies":
			renameKeys(m.value, names)
			for _, d := range m.value.members {
				renameStrings(d.value, names)
			}
		case "required":
			renameStrings(m.value, names)
		}
	}
}

func renameKeys(n *node, names map[string]string) {
	n.at = nil
	for i := range n.members {
		if to, ok := names[n.members[i].key]; ok {
			n.members[i].key = to
		}
	}
}

func renameStrings(n *node, names map[string]string) {
	if n.kind != list {
		return
	}
	n.at = nil
	for i, m := range n.members {
		if !m.value.isString() {
			continue
		}
		if to, ok := names[m.value.raw[1:len(m.value.raw)-1]]; ok {
			n.members[i].value = text(`"` + to + `"`)
		}
	}
}

// pattern adds what stands under a pattern of property names. One that Go cannot read
// is left out: names under it then pass as they are.
func (s *scope) pattern(pattern string, values *scope) {
	if values == nil {
		return
	}
	if r, err := regexp.Compile(pattern); err == nil {
		s.patterns = append(s.patterns, patternScope{r, values})
		s.useful = true
	}
}
