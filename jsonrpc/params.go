package jsonrpc

import (
	"encoding/json"
	"slices"
)

// Params are the params of a request or notification: the bytes as they came, and the
// edits that layers noted on the way. Only the transport renders them, once. The zero
// value is a message without params. Params are used by one goroutine at a time; a
// copy shares nothing that later edits could change.
type Params struct {
	raw   json.RawMessage
	edits []edit
	added []byte     // members to add, each with a comma in front
	meta  []metaEdit // members of _meta to set or remove
}

type edit struct {
	start, end int
	with       []byte
}

type metaEdit struct {
	key   string
	value json.RawMessage // nil: removed
}

// NewParams returns params without edits. raw must have passed Check; it is kept, not
// copied. It may be nil.
func NewParams(raw json.RawMessage) Params { return Params{raw: raw} }

// Raw returns the original bytes.
func (p *Params) Raw() json.RawMessage { return p.raw }

// Replace notes that the bytes [start, end) of the original are to be written as with.
// Edits must not overlap, nor stand in _meta, for which there is SetMeta.
func (p *Params) Replace(start, end int, with []byte) {
	at, _ := slices.BinarySearchFunc(p.edits, start, func(e edit, start int) int { return e.start - start })
	p.edits = slices.Insert(slices.Clip(p.edits), at, edit{start, end, with})
}

// Add notes a member that is to be added at the end of the params.
func (p *Params) Add(name string, value []byte) {
	added := append(slices.Clip(p.added), ',')
	p.added = append(append(AppendQuote(added, name), ':'), value...)
}

// SetMeta notes that a member of _meta is to have this value; nil removes it.
func (p *Params) SetMeta(key string, value json.RawMessage) {
	p.meta = append(slices.Clip(p.meta), metaEdit{key, value})
}

// Meta returns a member of _meta as it will be written, nil if there is none.
func (p *Params) Meta(key string) json.RawMessage {
	if i := p.lastMeta(key); i >= 0 {
		return p.meta[i].value
	}
	return Get(Get(p.raw, metaName), key)
}

const metaName = "_meta"

func (p *Params) lastMeta(key string) int {
	for i := len(p.meta) - 1; i >= 0; i-- {
		if p.meta[i].key == key {
			return i
		}
	}
	return -1
}

// Append renders the params. It appends nothing if there are none.
func (p *Params) Append(dst []byte) []byte {
	if len(p.edits) == 0 && len(p.added) == 0 && len(p.meta) == 0 {
		return append(dst, p.raw...)
	}
	raw := p.raw
	if !IsObject(raw) {
		raw = json.RawMessage("{}")
	}
	edits, added := p.edits, p.added
	if len(p.meta) > 0 {
		edits, added = p.withMeta(raw)
	}
	last := len(raw) - 1
	for raw[last] != '}' {
		last--
	}
	from := 0
	for _, e := range edits {
		dst = append(append(dst, raw[from:e.start]...), e.with...)
		from = e.end
	}
	dst = append(dst, raw[from:last]...)
	if len(added) > 0 && isEmpty(raw) {
		added = added[1:]
	}
	return append(append(dst, added...), '}')
}

// withMeta turns the edits of _meta into one more edit, or one more added member.
func (p *Params) withMeta(raw []byte) ([]edit, []byte) {
	for m := range Members(raw) {
		if !m.Is(metaName) {
			continue
		}
		whole := edit{m.At, m.End(), p.appendMeta(nil, m.Value)}
		at, _ := slices.BinarySearchFunc(p.edits, whole.start, func(e edit, start int) int { return e.start - start })
		return slices.Insert(slices.Clone(p.edits), at, whole), p.added
	}
	added := append(slices.Clip(p.added), `,"_meta":`...)
	return p.edits, p.appendMeta(added, nil)
}

func (p *Params) appendMeta(dst, old []byte) []byte {
	dst = append(dst, '{')
	start := len(dst)
	for m := range Members(old) {
		if p.lastMeta(m.Name()) >= 0 {
			continue
		}
		dst = comma(dst, start)
		dst = append(dst, old[m.KeyAt:m.End()]...)
	}
	for i, e := range p.meta {
		if e.value == nil || p.lastMeta(e.key) != i {
			continue
		}
		dst = AppendQuote(comma(dst, start), e.key)
		dst = append(append(dst, ':'), e.value...)
	}
	return append(dst, '}')
}

func comma(dst []byte, start int) []byte {
	if len(dst) > start {
		return append(dst, ',')
	}
	return dst
}

func isEmpty(obj []byte) bool {
	return obj[skipSpace(obj, skipSpace(obj, 0)+1)] == '}'
}
