package schema

import (
	"slices"
	"strings"
)

const (
	// maxTargets is how much the targets of references may come to in any case. What the
	// input itself is long is allowed on top, up to maxExtra: most schemas use most of
	// their definitions, so writing out each once makes nothing longer. maxAdded is for
	// what else is added. Together they stay below maxGrowth.
	maxTargets = 64 << 10
	maxExtra   = 384 << 10
	maxAdded   = 512 << 10
	// maxNesting is how many schemas may stand in one another.
	maxNesting = 32
)

// references are the keywords that are followed, in this order.
var references = [...]string{"$ref", "$dynamicRef", "$recursiveRef"}

// A flattener writes one schema out. Its recursion is bounded by what bounds the
// nesting of its input, and by its budget.
type flattener struct {
	document
	*warnings
	budget    int  // bytes of targets that may still be written out
	added     int  // bytes of types of cut schemas and of items
	forced    bool // the root has to become an object schema
	converted bool // something of an older draft was rewritten
	within    int  // how many conditions the place being written stands in
	lossy     bool // something in the current condition could not be kept exactly
	illegal   bool // a property has to be renamed
	merging   memo
}

// demand is a boolean required, as draft 3 has it, which speaks of the property that
// the schema describes.
type demand uint8

const (
	undemanded demand = iota
	optional
	required
)

func newFlattener(root *node, w *warnings, size int) *flattener {
	return &flattener{document: document{root: root}, warnings: w, budget: maxTargets + min(size, maxExtra)}
}

// schema flattens a schema of the source for a place with depth-1 schemas around it.
// It returns true, false or a built object.
func (f *flattener) schema(n *node, depth int) *node {
	switch {
	case n.isBool():
		return n
	case n.kind != object:
		f.subschema()
		return build(object)
	case depth > maxNesting:
		return f.cut(n)
	}
	n.open++
	out := f.own(n, depth)
	for _, key := range references {
		f.reference(out, n.get(key), key, depth)
	}
	if all := f.combinator(n, "allOf"); all != nil {
		for _, branch := range all.members {
			f.merge(out, f.schema(branch.value, depth))
		}
	}
	f.alternatives(out, f.combinator(n, "anyOf"), depth)
	f.alternatives(out, f.combinator(n, "oneOf"), depth)
	n.open--
	return out
}

// cut keeps only the type of a schema.
func (f *flattener) cut(n *node) *node {
	f.add("schema_cut", "the schema is too deep or too long when written out: of some parts only the type is left")
	f.lossy = true
	out := f.only(n, "type")
	if f.added += out.length(); f.added > maxAdded {
		return build(object)
	}
	return out
}

// only keeps the named keywords of a schema, in its order.
func (f *flattener) only(n *node, keys ...string) *node {
	out := build(object)
	if n.kind != object {
		return out
	}
	var at []int
	for _, key := range keys {
		if i := n.find(key); i >= 0 {
			at = append(at, i)
		}
	}
	slices.Sort(at)
	p := place{flattener: f, src: n, out: out}
	for _, i := range at {
		p.keyword(n.members[i])
	}
	return out
}

// reference merges what a reference leads to into out.
func (f *flattener) reference(out, ref *node, key string, depth int) {
	if ref == nil {
		return
	}
	target := f.resolve(ref)
	if target != nil {
		f.merge(out, f.target(target, key, depth))
		return
	}
	f.lossy = true
	code := "unresolved_ref"
	if ref.isString() && !strings.HasPrefix(ref.raw, `"#`) {
		code = "remote_ref"
	}
	f.add(code, key+" "+shown(string(ref.write(nil)))+" leads to no schema of this document: left out")
}

func (f *flattener) target(target *node, key string, depth int) *node {
	if target.open > 0 {
		f.lossy = true
		f.add("recursive_ref", key+" leads to a schema in which it stands: only type, title and description are kept")
		stub := f.only(target, "type", "title", "description")
		if f.spend(stub.length()) {
			return stub
		}
		return f.cut(target)
	}
	if !f.spend(sizeOf(target)) {
		return f.cut(target)
	}
	return f.schema(target, depth)
}

func (f *flattener) spend(size int) bool {
	if size > f.budget {
		return false
	}
	f.budget -= size
	return true
}

// combinator returns the list of a combinator that has to be flattened, if there is one.
func (f *flattener) combinator(n *node, key string) *node {
	branches := n.get(key)
	if branches == nil {
		return nil
	}
	if !lookup(key).fits(branches) {
		f.invalid(key)
		return nil
	}
	if f.within > 0 { // taking one branch would turn the meaning of a condition round
		f.lossy = true
		return nil
	}
	return branches
}

// condition flattens a schema of which the meaning has to be kept exactly; nil if it
// cannot be.
func (f *flattener) condition(n *node, depth int) *node {
	lossy, converted := f.lossy, f.converted
	f.lossy = !isSchema(n)
	f.within++
	var out *node
	if !f.lossy {
		out = f.place(n, depth)
	}
	f.within--
	if f.lossy {
		f.add("condition_dropped", "a not or if cannot be kept exactly: left out")
		f.converted = converted
		f.lossy = lossy || f.within > 0 // losing one changes those around it
		return nil
	}
	f.lossy = lossy
	return out
}

// place flattens a schema that describes no property.
func (f *flattener) place(n *node, depth int) *node {
	out := f.schema(n, depth)
	if out.demand != undemanded {
		out.demand = undemanded
		f.invalid("required")
	}
	return out
}

// own writes the keywords of a schema that stand in it itself.
func (f *flattener) own(n *node, depth int) *node {
	p := place{flattener: f, src: n, out: build(object), depth: depth}
	p.out.members = make([]member, 0, len(n.members))
	if items := n.get("items"); items != nil {
		p.tuple = items.kind == list
	}
	for _, m := range n.members {
		p.keyword(m)
	}
	p.require(p.demanded)
	return p.out
}

// A place is one schema of the source on its way into the result.
type place struct {
	*flattener
	src, out *node
	depth    int
	tuple    bool     // items is a list
	demanded []member // properties that say of themselves that they are required
	branches *node    // what became of if; nil: not yet looked at, or left out
	judged   bool
}

// keyword writes one member of the source schema.
func (p *place) keyword(m member) {
	k := lookup(m.key)
	switch k.role {
	case roleGone, roleReference, roleCombinator:
	case roleDialect:
		if p.src == p.root && k.fits(m.value) {
			p.out.add(m.key, m.value)
		}
	case roleSchema:
		p.out.add(m.key, p.place(m.value, p.depth+1))
	case roleItems:
		p.items(m)
	case roleAdditional:
		p.additional(m)
	case roleNot:
		if not := p.condition(m.value, p.depth+1); not != nil {
			p.out.add(m.key, not)
		}
	case roleBranch:
		p.branch(m)
	case roleType:
		p.typed(m)
	case roleRequired:
		p.names(m)
	case roleBound:
		p.bound(m, k)
	case roleExclusive:
		p.exclusive(m, k)
	default:
		p.container(m, k)
	}
}

// container writes a keyword that has to be of one kind.
func (p *place) container(m member, k keyword) {
	if !k.fits(m.value) {
		p.invalid(m.key)
		if m.key == "properties" && p.forced && p.src == p.root {
			p.out.add(m.key, build(object))
		}
		return
	}
	switch k.role {
	case roleSchemas:
		p.out.add(m.key, p.schemas(m))
	case roleEither:
		p.out.add(m.key, p.dependencies(m.value))
	case roleNames:
		p.out.add(m.key, p.nameLists(m))
	case roleTuple:
		p.out.add(m.key, p.elements(m.value))
	default:
		p.out.add(m.key, m.value)
	}
}

func (p *place) schemas(m member) *node {
	out := build(object)
	out.members = make([]member, 0, len(m.value.members))
	for _, child := range m.value.members {
		if m.key != "properties" {
			out.add(child.key, p.place(child.value, p.depth+1))
			continue
		}
		flat := p.schema(child.value, p.depth+1)
		if flat.demand == required {
			p.demanded = append(p.demanded, child)
		}
		if flat.demand != undemanded {
			flat.demand = undemanded
			p.convert("required")
		}
		out.add(child.key, flat)
	}
	return out
}

func (p *place) dependencies(v *node) *node {
	out := build(object)
	for _, child := range v.members {
		if child.value.kind == list {
			out.add(child.key, copyOf(child.value))
			continue
		}
		out.add(child.key, p.place(child.value, p.depth+1))
	}
	return out
}

func (p *place) elements(v *node) *node {
	out := build(list)
	for _, child := range v.members {
		out.add("", p.place(child.value, p.depth+1))
	}
	return out
}

// branch writes if, then or else. They stand and fall with the if.
func (p *place) branch(m member) {
	test := p.src.get("if")
	if test == nil {
		p.out.add(m.key, p.place(m.value, p.depth+1))
		return
	}
	if !p.judged {
		p.judged = true
		p.branches = p.condition(test, p.depth+1)
	}
	switch {
	case p.branches == nil:
	case m.key == "if":
		p.out.add(m.key, p.branches)
	default:
		p.out.add(m.key, p.place(m.value, p.depth+1))
	}
}
