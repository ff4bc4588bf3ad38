package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// annotation is the keyword by which a server asks for an argument in a header.
const annotation = "x-mcp-header"

// A Header binds an argument to an HTTP header.
type Header struct {
	Path []string // the property names that lead to it
	Name string   // without the prefix Mcp-Param-
	Type string   // string, integer or boolean; "" if it may be several of them
}

// rawHeaders returns the bindings in the schema of a server. An annotation that the
// protocol forbids is an error: with it the whole tool has to go.
func rawHeaders(compact []byte) ([]Header, error) {
	if !annotated(compact) {
		return nil, nil
	}
	root := parse(compact)
	c := headerScan{reached: map[*node]bool{}, names: map[string]bool{}}
	if err := c.properties(root, nil); err != nil {
		return nil, err
	}
	reachable := walk(root, func(n *node) bool {
		return n.get(annotation) == nil || c.reached[n]
	}, true)
	if !reachable {
		return nil, fmt.Errorf("%s where no chain of properties leads to", annotation)
	}
	return c.found, nil
}

// shownHeaders returns the bindings in a schema of ours.
func shownHeaders(compact json.RawMessage) []Header {
	if !annotated(compact) {
		return nil
	}
	c := headerScan{reached: map[*node]bool{}, names: map[string]bool{}, lenient: true}
	c.properties(parse(compact), nil) // lenient: no error
	return c.found
}

// annotated tells cheaply whether a closer look is needed.
func annotated(compact []byte) bool {
	return bytes.Contains(compact, []byte(annotation)) && jsonrpc.IsObject(compact)
}

type headerScan struct {
	found   []Header
	reached map[*node]bool
	names   map[string]bool // in lower case
	lenient bool            // skip what is invalid
}

// maxPath bounds how deep an argument may stand that is wanted in a header.
const maxPath = 2 * maxNesting

// properties looks at the properties of a schema, and at theirs.
func (c *headerScan) properties(n *node, path []string) error {
	properties := n.get("properties")
	if properties == nil || properties.kind != object || len(path) == maxPath {
		return nil
	}
	for _, m := range properties.members {
		if m.value.kind != object {
			continue
		}
		here := append(path, strings.Clone(unquoted(m.key)))
		if name := m.value.get(annotation); name != nil {
			c.reached[m.value] = true
			if err := c.bind(name, m.value, here); err != nil && !c.lenient {
				return fmt.Errorf("%s of property %s: %w", annotation, shown(m.key), err)
			}
		}
		if err := c.properties(m.value, here); err != nil {
			return err
		}
	}
	return nil
}

func (c *headerScan) bind(name, property *node, path []string) error {
	if !name.isString() {
		return fmt.Errorf("the header name is no string")
	}
	header := name.string()
	if header == "" || strings.ContainsFunc(header, notToken) {
		return fmt.Errorf("%s is no header name", shown(name.raw))
	}
	kind, ok := primitive(property.get("type"))
	if !ok {
		return fmt.Errorf("the type is none of string, integer and boolean")
	}
	lower := strings.ToLower(header)
	if c.names[lower] {
		return fmt.Errorf("header %s is bound twice", shown(name.raw))
	}
	c.names[lower] = true
	c.found = append(c.found, Header{Path: slices.Clone(path), Name: header, Type: kind})
	return nil
}

// primitive returns the type of a value that fits into a header.
func primitive(t *node) (string, bool) {
	if t == nil {
		return "", false
	}
	values := t.members
	if t.kind != list {
		values = []member{{value: t}}
	}
	for _, m := range values {
		if !m.value.is(`"string"`) && !m.value.is(`"integer"`) && !m.value.is(`"boolean"`) {
			return "", false
		}
	}
	switch len(values) {
	case 0:
		return "", false
	case 1:
		return values[0].value.string(), true
	}
	return "", true
}

// notToken reports whether a character cannot stand in a header name (RFC 9110, tchar).
func notToken(r rune) bool {
	return r >= 0x80 || !legalByte(byte(r)) && !strings.ContainsRune("!#$%&'*+^`|~", r)
}
