package schema

import "slices"

// settled reports whether flattening surely changes nothing. It knows the common
// schema; of whatever is rare it says no, and the flattener decides.
func settled(root *node) bool {
	properties := root.get("properties")
	return root.get("type").is(`"object"`) && properties != nil && properties.kind == object && settledSchema(root, 1)
}

func settledSchema(n *node, depth int) bool {
	if n.kind != object {
		return n.isBool()
	}
	if n.repeats || depth > maxNesting {
		return false
	}
	array, items := false, false
	for _, m := range n.members {
		if !settledKeyword(m, depth) {
			return false
		}
		switch m.key {
		case "type":
			array = hasArray(m.value)
		case "items":
			items = true
		}
	}
	return !array || items
}

func settledKeyword(m member, depth int) bool {
	k := lookup(m.key)
	switch k.role {
	case roleData, roleVendor:
		return true
	case roleGone, roleReference, roleCombinator, roleEither, roleNames, roleAdditional:
		return false
	case roleDialect:
		return depth == 1 && k.fits(m.value)
	case roleSchema, roleNot, roleBranch:
		return settledSchema(m.value, depth+1)
	case roleItems:
		return !m.value.is("true") && settledSchema(m.value, depth+1)
	case roleSchemas:
		return k.fits(m.value) && !m.value.repeats && settledChildren(m, depth)
	case roleTuple:
		return k.fits(m.value) && settledChildren(m, depth)
	case roleRequired:
		return k.fits(m.value) && uniqueStrings(m.value)
	case roleType:
		return settledType(m.value)
	}
	return k.fits(m.value)
}

func settledChildren(m member, depth int) bool {
	asObjects := m.key == "properties" || m.key == "prefixItems"
	for _, child := range m.value.members {
		if asObjects && child.value.kind != object || m.key == "properties" && !legal(child.key) {
			return false
		}
		if !settledSchema(child.value, depth+1) {
			return false
		}
	}
	return true
}

func uniqueStrings(v *node) bool {
	for i, m := range v.members {
		if !m.value.isString() || v.find(m.value.raw) != i {
			return false
		}
	}
	return true
}

func settledType(v *node) bool {
	if v.kind == list {
		names := types(v)
		return names != nil && tidy(v, names)
	}
	switch v.raw {
	case `"string"`, `"number"`, `"integer"`, `"boolean"`, `"object"`, `"array"`, `"null"`:
		return true
	}
	return false
}

// hasArray reports whether a value of type allows arrays.
func hasArray(v *node) bool {
	if v.kind == list {
		return slices.Contains(types(v), "array")
	}
	return v.raw == `"array"`
}
