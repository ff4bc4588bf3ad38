package schema

import "slices"

// alternatives merges one alternative into out, or what all of them have in common.
func (f *flattener) alternatives(out, branches *node, depth int) {
	if branches == nil {
		return
	}
	if values := f.values(branches); values != nil {
		f.merge(out, values)
		return
	}
	if onlyDemand(branches) {
		f.add("constraint_alternatives_dropped", "alternatives that only demand something: none is taken")
		return
	}
	f.merge(out, f.schema(f.first(branches), depth))
}

// first returns the alternative to take: the first that accepts anything but null.
func (f *flattener) first(branches *node) *node {
	for _, m := range branches.members {
		if f.verdict(m.value) == open {
			return m.value
		}
	}
	return branches.members[0].value
}

// A verdict says whether a schema is worth taking among others.
type verdict uint8

const (
	unjudged verdict = iota
	open
	onlyNull
	never
)

// verdict judges a schema by its own type, const or enum, or else by what it refers to.
// Each schema is judged once, so that chains of references cost what they are long.
func (f *flattener) verdict(n *node) verdict {
	var chain []*node
	result := open // what leads nowhere, or round in a circle
	for n != nil {
		if n.verdict != unjudged {
			result = n.verdict
			break
		}
		n.verdict = open
		chain = append(chain, n)
		if v := ownVerdict(n); v != unjudged {
			result = v
			break
		}
		n = f.leads(n)
	}
	for _, c := range chain {
		c.verdict = result
	}
	return result
}

// leads returns the target of a schema's first reference.
func (f *flattener) leads(n *node) *node {
	for _, key := range references {
		if ref := n.get(key); ref != nil {
			return f.resolve(ref)
		}
	}
	return nil
}

func ownVerdict(n *node) verdict {
	if n.is("false") {
		return never
	}
	if n.kind != object {
		return open
	}
	if v := n.get("const"); v != nil {
		return nullIf(v.is("null"))
	}
	if names := types(n.get("type")); names != nil {
		return nullIf(len(names) == 1 && names[0] == "null")
	}
	if v := n.get("enum"); v != nil && v.kind == list && len(v.members) > 0 {
		for _, m := range v.members {
			if !m.value.is("null") {
				return open
			}
		}
		return onlyNull
	}
	return unjudged
}

func nullIf(null bool) verdict {
	if null {
		return onlyNull
	}
	return open
}

// values returns the schema of alternatives that are nothing but single values: one
// enum of them all, in the order in which the first alternative is written; nil if they
// are not, or only one is left besides null.
func (f *flattener) values(branches *node) *node {
	enum, seen := build(list), map[string]bool{}
	var names []string
	var first *node
	count, typed := 0, true
	for _, m := range branches.members {
		if v := f.verdict(m.value); v == onlyNull || v == never {
			continue
		}
		if !onlyValues(m.value) {
			return nil
		}
		if count++; first == nil {
			first = m.value
		}
		for _, value := range valuesOf(m.value) {
			if key := string(value.canonical(nil)); !seen[key] {
				seen[key] = true
				enum.add("", value)
			}
		}
		own := types(m.value.get("type"))
		typed = typed && own != nil
		names = union(names, own)
	}
	if count < 2 {
		return nil
	}
	out := build(object)
	for _, m := range first.members {
		switch {
		case m.key == "type" && typed:
			out.add("type", typeNode(names, false))
		case (m.key == "const" || m.key == "enum") && out.find("enum") < 0:
			out.add("enum", enum)
		}
	}
	return out
}

// onlyValues reports whether a schema says only which values it accepts.
func onlyValues(n *node) bool {
	found := false
	for _, m := range n.members {
		switch {
		case m.key == "const", m.key == "enum" && m.value.kind == list:
			found = true
		case m.key == "type", isText(m.key):
		default:
			return false
		}
	}
	return n.kind == object && found
}

func valuesOf(n *node) []*node {
	if v := n.get("const"); v != nil {
		return []*node{v}
	}
	var values []*node
	for _, m := range n.get("enum").members {
		values = append(values, m.value)
	}
	return values
}

func union(names, more []string) []string {
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// onlyDemand reports whether alternatives only say what has to be there: taking one of
// them would demand of everybody what the others do not.
func onlyDemand(branches *node) bool {
	found := false
	for _, b := range branches.members {
		if b.value.kind != object && !b.value.is("true") {
			return false
		}
		for _, m := range b.value.members {
			switch m.key {
			case "required", "dependentRequired", "minProperties", "maxProperties", "not":
				found = true
			default:
				if !isText(m.key) {
					return false
				}
			}
		}
	}
	return found
}

// isText reports whether a keyword says nothing about what a schema accepts.
func isText(key string) bool {
	k := lookup(key)
	return k.rule == ruleFirst && k.role != roleReference && k.role != roleCombinator
}
