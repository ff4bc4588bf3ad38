package schema

// What older drafts and careless authors write, on its way into the result.

// convert notes that a keyword was rewritten from an older draft: the dialect that the
// schema names may then be wrong.
func (f *flattener) convert(key string) {
	f.converted = true
	f.add("converted:"+key, key+" of an older draft was rewritten")
}

// typed writes type with the names that JSON Schema has.
func (p *place) typed(m member) {
	names := types(m.value)
	switch {
	case names != nil && !tidy(m.value, names):
		p.out.add(m.key, typeNode(names, m.value.kind == list))
	case names != nil:
		p.out.add(m.key, m.value)
	default:
		p.add("unknown_type", "type "+shown(string(m.value.write(nil)))+" is unknown: left out")
		if p.forced && p.src == p.root {
			p.out.add(m.key, text(`"object"`))
		}
	}
}

// tidy reports whether a value of type is already spelled as its names are.
func tidy(v *node, names []string) bool {
	if v.kind != list {
		return v.raw[1:len(v.raw)-1] == names[0]
	}
	if len(v.members) != len(names) {
		return false
	}
	for i, m := range v.members {
		if m.value.raw[1:len(m.value.raw)-1] != names[i] {
			return false
		}
	}
	return true
}

// names writes required.
func (p *place) names(m member) {
	switch {
	case m.value.is("true"):
		p.out.demand = required
	case m.value.is("false"):
		p.out.demand = optional
	case m.value.kind != list:
		p.invalid(m.key)
	default:
		p.out.add(m.key, p.nameList(m.value, m.key))
	}
}

// nameList keeps the strings of a list, each once.
func (p *place) nameList(v *node, key string) *node {
	out := build(list)
	out.members = make([]member, 0, len(v.members))
	for _, m := range v.members {
		switch {
		case !m.value.isString():
			p.invalid(key)
		case out.find(m.value.raw) < 0:
			out.add("", m.value)
		}
	}
	return out
}

func (p *place) nameLists(m member) *node {
	out := build(object)
	for _, child := range m.value.members {
		if child.value.kind != list {
			p.invalid(m.key)
			continue
		}
		out.add(child.key, p.nameList(child.value, m.key))
	}
	return out
}

// require adds properties to the end of required.
func (p *place) require(properties []member) {
	if len(properties) == 0 {
		return
	}
	names := p.out.get("required")
	if names == nil {
		names = build(list)
		p.out.add("required", names)
	}
	for _, property := range properties {
		if name := text(`"` + property.key + `"`); names.find(name.raw) < 0 {
			names.add("", name)
		}
	}
}

// items writes a list of items as prefixItems.
func (p *place) items(m member) {
	if !p.tuple {
		p.out.add(m.key, p.place(m.value, p.depth+1))
		return
	}
	p.convert(m.key)
	const key = "prefixItems"
	prefix := p.src.get(key)
	if len(m.value.members) > 0 && (prefix == nil || !lookup(key).fits(prefix)) {
		p.out.add(key, p.elements(m.value))
	}
}

// additional writes additionalItems, which goes on where a list of items ends.
func (p *place) additional(m member) {
	key := m.key
	if p.tuple {
		p.convert("items")
		key = "items"
	}
	p.out.add(key, p.place(m.value, p.depth+1))
}

// bound writes minimum or maximum, unless draft 4 makes it an exclusive one.
func (p *place) bound(m member, k keyword) {
	if !k.fits(m.value) {
		p.invalid(m.key)
		return
	}
	exclusive := "exclusiveMinimum"
	if m.key == "maximum" {
		exclusive = "exclusiveMaximum"
	}
	if !p.src.get(exclusive).is("true") {
		p.out.add(m.key, m.value)
	}
}

// exclusive writes exclusiveMinimum or exclusiveMaximum, in draft 4 a boolean beside
// the bound.
func (p *place) exclusive(m member, k keyword) {
	switch {
	case k.fits(m.value):
		p.out.add(m.key, m.value)
	case !m.value.isBool():
		p.invalid(m.key)
	default:
		p.convert(m.key)
		limit := "minimum"
		if m.key == "exclusiveMaximum" {
			limit = "maximum"
		}
		if bound := p.src.get(limit); bound != nil && m.value.is("true") && bound.isNumber() {
			p.out.add(m.key, bound)
		}
	}
}

// copyOf returns a list of the same values that may be changed.
func copyOf(v *node) *node {
	out := build(v.kind)
	out.members = append(out.members, v.members...)
	return out
}

// finish turns, in a flattened tree, booleans into objects where clients refuse them,
// gives items to arrays without, and notes whether a property has to be renamed.
func (f *flattener) finish(n *node) {
	for i := range n.members {
		m := &n.members[i]
		switch k := lookup(m.key); k.role {
		case roleSchemas, roleEither, roleTuple:
			property := m.key == "properties"
			for j := range m.value.members {
				f.illegal = f.illegal || property && !legal(m.value.members[j].key)
				f.finishChild(&m.value.members[j], property || k.role == roleTuple)
			}
		case roleSchema, roleItems, roleAdditional, roleNot, roleBranch:
			f.finishChild(m, k.role == roleItems && m.value.is("true"))
		}
	}
	if t := n.get("type"); t != nil && n.find("items") < 0 && hasArray(t) {
		if f.added += len(`,"items":{}`); f.added <= maxAdded {
			n.add("items", build(object))
		}
	}
}

func (f *flattener) finishChild(m *member, asObject bool) {
	if asObject && m.value.isBool() {
		m.value = boolean(m.value)
	}
	if m.value.kind == object {
		f.finish(m.value)
	}
}

// finishRoot makes the flattened root what clients demand of every tool.
func (f *flattener) finishRoot(root *node) {
	if f.converted {
		if i := root.find("$schema"); i >= 0 {
			root.remove(i)
		}
	}
	forceObject(root, f.warnings)
	if root.find("properties") < 0 {
		root.add("properties", build(object))
	}
}
