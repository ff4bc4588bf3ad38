package schema

import "slices"

// memo keeps what comparisons found out, because the same value is often compared with
// many others.
type memo struct {
	texts map[*node]string         // canonical texts
	enums map[*node]map[string]int // canonical texts of the values, with their place
}

// merge makes out hold what the flattened schema src demands as well. Both sides hold
// afterwards, as far as one schema can say so.
func (f *flattener) merge(out, src *node) {
	switch {
	case src.is("true"):
		return
	case src.is("false"):
		src = boolean(src)
	}
	out.demand = max(out.demand, src.demand)
	hasBranch := out.find("if") >= 0 || out.find("then") >= 0 || out.find("else") >= 0
	for _, m := range src.members {
		k := lookup(m.key)
		if k.rule == ruleBranches && hasBranch {
			f.sameBranches(out, src)
			continue
		}
		i := out.find(m.key)
		if i < 0 {
			out.add(m.key, m.value)
			continue
		}
		out.members[i].value = f.both(m.key, k.rule, out.members[i].value, m.value)
	}
}

// both returns the value of a keyword that two schemas have.
func (f *flattener) both(key string, r rule, a, b *node) *node {
	switch r {
	case ruleFirst:
		return a
	case ruleSchema:
		return f.mergeSchemas(a, b)
	case ruleUnite:
		return f.unite(a, b)
	case ruleTuple:
		return f.placeByPlace(a, b)
	case ruleRequired:
		return uniteNames(a, b)
	case ruleNames:
		for _, m := range b.members {
			if names := a.get(m.key); names != nil {
				uniteNames(names, m.value)
			} else {
				a.add(m.key, m.value)
			}
		}
		return a
	case ruleEither:
		if b.is("true") {
			return b
		}
		return a
	case ruleLower, ruleUpper:
		return tighter(r, a, b)
	}
	if chosen := f.common(r, a, b); chosen != nil {
		return chosen
	}
	f.lossy = true
	f.add("merge_conflict:"+shown(key), "two values of "+shown(key)+" cannot both be kept: the first one stays")
	return a
}

// unite adds the schemas of b that a lacks, and merges those that both have.
func (f *flattener) unite(a, b *node) *node {
	for _, m := range b.members {
		if i := a.find(m.key); i >= 0 {
			a.members[i].value = f.mergeSchemas(a.members[i].value, m.value)
		} else {
			a.add(m.key, m.value)
		}
	}
	return a
}

func (f *flattener) placeByPlace(a, b *node) *node {
	for i, m := range b.members {
		if i < len(a.members) {
			a.members[i].value = f.mergeSchemas(a.members[i].value, m.value)
		} else {
			a.add("", m.value)
		}
	}
	return a
}

// common returns what two values have in common, nil if that is nothing.
func (f *flattener) common(r rule, a, b *node) *node {
	switch r {
	case ruleType:
		return commonType(a, b)
	case ruleEnum:
		return f.commonEnum(a, b)
	case ruleMultiple:
		if parseDecimal(a.raw).compare(parseDecimal(b.raw)) == 0 {
			return a
		}
		if multiple, ok := commonMultiple(a.raw, b.raw); ok {
			return text(multiple)
		}
		return nil
	}
	if f.equal(a, b) {
		return a
	}
	return nil
}

// mergeSchemas merges two flattened schemas that hold at one place.
func (f *flattener) mergeSchemas(a, b *node) *node {
	switch {
	case a.is("false") || b.is("true"):
		return a
	case b.is("false") || a.is("true"):
		return b
	}
	f.merge(a, b)
	return a
}

// sameBranches warns if the if, then and else of two schemas differ. They are of no use
// apart, so those that are there stay.
func (f *flattener) sameBranches(a, b *node) {
	for _, key := range [...]string{"if", "then", "else"} {
		x, y := a.get(key), b.get(key)
		if (x == nil) != (y == nil) || x != nil && !f.equal(x, y) {
			f.lossy = true
			f.add("merge_conflict:if", "two conditions cannot both be kept: the first one stays")
			return
		}
	}
}

// uniteNames adds the names of b that a lacks.
func uniteNames(a, b *node) *node {
	for _, m := range b.members {
		if a.find(m.value.raw) < 0 {
			a.add("", m.value)
		}
	}
	return a
}

func tighter(r rule, a, b *node) *node {
	order := parseDecimal(b.raw).compare(parseDecimal(a.raw))
	if r == ruleLower && order > 0 || r == ruleUpper && order < 0 {
		return b
	}
	return a
}

// commonType returns the types of a that b allows; an integer is a number.
func commonType(a, b *node) *node {
	names, allowed := types(a), types(b)
	var common []string
	for _, name := range names {
		switch {
		case slices.Contains(allowed, name):
		case name == "number" && slices.Contains(allowed, "integer"):
			name = "integer"
		case name == "integer" && slices.Contains(allowed, "number"):
		default:
			continue
		}
		if !slices.Contains(common, name) {
			common = append(common, name)
		}
	}
	switch {
	case len(common) == 0:
		return nil
	case tidy(a, common):
		return a
	}
	return typeNode(common, false)
}

// commonEnum returns the values of a that b has too, in a's order.
func (f *flattener) commonEnum(a, b *node) *node {
	places, ok := f.merging.enums[a]
	if !ok {
		places = make(map[string]int, len(a.members))
		for i, m := range a.members {
			if key := f.text(m.value); !hasKey(places, key) {
				places[key] = i
			}
		}
		if f.merging.enums == nil {
			f.merging.enums = map[*node]map[string]int{}
		}
		f.merging.enums[a] = places
	}
	keep := make(map[int]bool, len(b.members))
	for _, m := range b.members {
		if i, found := places[f.text(m.value)]; found {
			keep[i] = true
		}
	}
	switch len(keep) {
	case 0:
		return nil
	case len(a.members):
		return a
	}
	out := build(list)
	for i, m := range a.members {
		if keep[i] {
			out.add("", m.value)
		}
	}
	return out
}

func hasKey(places map[string]int, key string) bool {
	_, ok := places[key]
	return ok
}

// equal reports whether two values are the same JSON value.
func (f *flattener) equal(a, b *node) bool {
	return a.raw != "" && a.raw == b.raw || f.text(a) == f.text(b)
}

// text returns the canonical text of a value that will not change any more.
func (f *flattener) text(n *node) string {
	if n.kind == scalar && !n.isNumber() {
		return n.raw
	}
	if s, ok := f.merging.texts[n]; ok {
		return s
	}
	s := string(n.canonical(nil))
	if f.merging.texts == nil {
		f.merging.texts = map[*node]string{}
	}
	f.merging.texts[n] = s
	return s
}
