package result

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
)

// The members of a result that we look at. Everything else passes.
const (
	content = iota
	structured
	isError
	meta
	resultType
	fields
)

// A plan says what becomes of the members that we look at.
type plan struct {
	field    [fields]field
	repeated bool            // a member occurs twice
	work     *jsonrpc.Buffer // holds what is made anew
}

// A field is one such member.
type field struct {
	at   int             // where in the result its name stands
	got  json.RawMessage // its value; nil if there is none
	want json.RawMessage // what the client gets; nil if it gets none
}

// fieldOf returns which field a member is, -1 if none.
func fieldOf(name []byte) int {
	switch string(name) {
	case "content":
		return content
	case "structuredContent":
		return structured
	case "isError":
		return isError
	case "_meta":
		return meta
	case "resultType":
		return resultType
	}
	return -1
}

// quotedNames are written where a field is new.
var quotedNames = [fields]string{`"content":`, `"structuredContent":`, `"isError":`, `"_meta":`, `"resultType":`}

// Values that we write; nobody writes to them.
var (
	isTrue     = json.RawMessage("true")
	isComplete = json.RawMessage(`"complete"`)
)

// find is fieldOf for a member, whose name may hold escapes.
func find(m jsonrpc.Member) int {
	if bytes.IndexByte(m.Key, '\\') >= 0 {
		return fieldOf([]byte(m.Name()))
	}
	return fieldOf(m.Key)
}

// read notes where the fields are. Of a member that occurs twice the last counts, as
// with most decoders; the others are not handed on, so that nobody can disagree.
func (p *plan) read(result json.RawMessage) {
	for m := range jsonrpc.Members(result) {
		if i := find(m); i >= 0 {
			p.repeated = p.repeated || p.field[i].got != nil
			p.field[i] = field{at: m.KeyAt, got: m.Value, want: m.Value}
		}
	}
}

func (p *plan) want(i int) json.RawMessage       { return p.field[i].want }
func (p *plan) set(i int, value json.RawMessage) { p.field[i].want = value }
func (p *plan) since(start int) json.RawMessage  { return p.work.B[start:len(p.work.B):len(p.work.B)] }

// complete reports whether the result is a whole one. The other kind that we know asks
// for input and is left alone.
func (p *plan) complete() (bool, error) {
	kind := p.field[resultType].got
	switch {
	case kind == nil, spells(kind, "complete"):
		return true, nil
	case spells(kind, "input_required"):
		return false, nil
	}
	return false, fmt.Errorf("unknown resultType %.64s", kind)
}

// repairMembers mends what is malformed beside the content.
func (p *plan) repairMembers() {
	if value := p.want(isError); value != nil && value[0] != 't' && value[0] != 'f' {
		p.set(isError, nil)
		if spells(value, "true") {
			p.set(isError, isTrue)
		}
	}
	if !jsonrpc.IsObject(p.want(meta)) {
		p.set(meta, nil)
	}
	if jsonrpc.IsNull(p.want(structured)) {
		p.set(structured, nil)
	}
}

// modernize adds what every result of 2026-07-28 carries.
func (p *plan) modernize(serverInfo json.RawMessage) {
	if p.want(resultType) == nil {
		p.set(resultType, isComplete)
	}
	if serverInfo == nil {
		return
	}
	start := len(p.work.B)
	out := append(p.work.B, '{')
	for m := range jsonrpc.Members(p.want(meta)) {
		// The server's own goes: to the client, we are the server.
		if !m.Is(protocol.MetaServerInfo) {
			out = append(out, '"')
			out = append(out, m.Key...)
			out = append(out, '"', ':')
			out = append(out, m.Value...)
			out = append(out, ',')
		}
	}
	out = append(out, `"`+protocol.MetaServerInfo+`":`...)
	out = append(out, serverInfo...)
	p.work.B = append(out, '}')
	p.set(meta, p.since(start))
}

// changes reports whether the plan differs from what the server sent.
func (p *plan) changes() bool {
	if p.repeated {
		return true
	}
	for _, f := range p.field {
		if len(f.got) != len(f.want) || len(f.got) > 0 && &f.got[0] != &f.want[0] {
			return true
		}
	}
	return false
}

// render carries the plan out.
func (p *plan) render(dst []byte, result json.RawMessage) []byte {
	dst = append(dst, '{')
	if f := p.field[content]; f.got == nil && f.want != nil {
		dst = appendMember(dst, quotedNames[content], f.want) // in front, where clients expect it
	}
	for m := range jsonrpc.Members(result) {
		value := m.Value
		if i := find(m); i >= 0 {
			if value = p.field[i].want; value == nil || m.KeyAt != p.field[i].at {
				continue
			}
		}
		dst = append(dst, '"')
		dst = append(dst, m.Key...)
		dst = append(dst, '"', ':')
		dst = append(dst, value...)
		dst = append(dst, ',')
	}
	for i, f := range p.field {
		if i != content && f.got == nil && f.want != nil {
			dst = appendMember(dst, quotedNames[i], f.want)
		}
	}
	return append(bytes.TrimSuffix(dst, []byte(",")), '}')
}

// appendMember appends a member and a comma.
func appendMember(dst []byte, name string, value json.RawMessage) []byte {
	dst = append(dst, name...)
	dst = append(dst, value...)
	return append(dst, ',')
}
