package schema

import (
	"encoding/json"
	"regexp"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// Renames knows which property names were changed in a schema. The zero value knows of
// none. It is never changed, so that it may be used from any goroutine.
type Renames struct{ root *scope }

// A scope is what is known of one place in the arguments.
type scope struct {
	own        map[string]string // the quoted name of the server, by the one that is shown
	properties map[string]*scope // by the shown name; all that the schema has
	patterns   []patternScope
	rest       *scope // of other properties
	tuple      []*scope
	elements   *scope // of further elements of a list
	useful     bool   // something beneath properties, patterns or tuple was renamed
}

type patternScope struct {
	name   *regexp.Regexp
	values *scope
}

// An Edit replaces a part of the arguments.
type Edit struct {
	Start, End int
	With       []byte
}

// Empty reports whether nothing was renamed.
func (r Renames) Empty() bool { return r.root == nil }

// Restore returns the edits that give the arguments of a call the names that the server
// knows, in order. Names that were not renamed stay as they are. args must have passed
// jsonrpc.Check.
func (r Renames) Restore(args json.RawMessage) []Edit {
	return r.root.restore(args, 0, nil)
}

// restore appends the edits of a value that starts at base.
func (s *scope) restore(value []byte, base int, edits []Edit) []Edit {
	if s == nil {
		return edits
	}
	for m := range jsonrpc.Members(value) {
		name := m.Name()
		if own, ok := s.own[name]; ok {
			start := base + m.KeyAt
			edits = append(edits, Edit{start, start + len(m.Key) + len(`""`), []byte(own)})
		}
		edits = s.value(name).restore(m.Value, base+m.At, edits)
	}
	if (s.elements != nil || s.tuple != nil) && jsonrpc.IsArray(value) {
		edits = s.restoreElements(value, base, edits)
	}
	return edits
}

// value returns the scope of a property by its shown name.
func (s *scope) value(name string) *scope {
	if values, ok := s.properties[name]; ok {
		return values
	}
	for _, p := range s.patterns {
		if p.name.MatchString(name) {
			return p.values
		}
	}
	return s.rest
}

func (s *scope) restoreElements(value []byte, base int, edits []Edit) []Edit {
	at := 0
	for i := range len(value) {
		if value[i] == '[' {
			at = i + 1
			break
		}
	}
	for number := 0; at < len(value); {
		switch value[at] {
		case ' ', '\t', '\n', '\r', ',':
			at++
			continue
		case ']':
			return edits
		}
		end := jsonrpc.Skip(value, at)
		element := s.elements
		if number < len(s.tuple) {
			element = s.tuple[number]
		}
		edits = element.restore(value[at:end], base+at, edits)
		at, number = end, number+1
	}
	return edits
}
