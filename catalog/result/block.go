package result

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// A kind is what a block is to us.
type kind uint8

const (
	nothing kind = iota // null, {}, or a text that is null: skipped
	plain               // a text without anything else: may be joined with its neighbours
	special             // a text with annotations or the like: stays apart
	known               // an image, audio, resource or link that has what clients demand
	foreign             // anything else: its JSON counts as a plain text
)

// A block is one element of a result's content.
type block struct {
	kind kind
	raw  json.RawMessage
	text json.RawMessage // the JSON string of a plain or special text
}

// isBare reports whether the block is a plain text that stands for itself, in no object.
func (b block) isBare() bool { return b.kind == plain && b.raw[0] == '"' }

// isBlank reports whether the block is a text of white space.
func (b block) isBlank() bool {
	return (b.kind == plain || b.kind == special) && blank(b.text)
}

// blocks yields the elements of a content; one that is no list counts as a list of one.
func blocks(value json.RawMessage) iter.Seq[block] {
	return func(yield func(block) bool) {
		if value == nil {
			return
		}
		if !jsonrpc.IsArray(value) {
			yield(readBlock(value))
			return
		}
		for element := range jsonrpc.Elements(value) {
			if !yield(readBlock(element)) {
				return
			}
		}
	}
}

// The members that clients demand of blocks.
const (
	partType = iota
	partText
	partData
	partMimeType
	partURI
	partName
	partResource
	partBlob
	parts
)

func partOf(key []byte) int {
	switch string(key) {
	case "type":
		return partType
	case "text":
		return partText
	case "data":
		return partData
	case "mimeType":
		return partMimeType
	case "uri":
		return partURI
	case "name":
		return partName
	case "resource":
		return partResource
	case "blob":
		return partBlob
	}
	return -1
}

// readParts finds the parts of an object; n is the number of all its members.
func readParts(object json.RawMessage) (part [parts]json.RawMessage, n int) {
	for m := range jsonrpc.Members(object) {
		n++
		key := m.Key
		if bytes.IndexByte(key, '\\') >= 0 {
			key = []byte(m.Name())
		}
		if i := partOf(key); i >= 0 {
			part[i] = m.Value
		}
	}
	return part, n
}

func readBlock(value json.RawMessage) block {
	b := block{kind: foreign, raw: value}
	switch {
	case jsonrpc.IsNull(value):
		b.kind = nothing
		return b
	case jsonrpc.IsString(value):
		b.kind, b.text = plain, value
		return b
	case !jsonrpc.IsObject(value):
		return b
	}
	part, members := readParts(value)
	switch {
	case members == 0:
		b.kind = nothing
	case spells(part[partType], "text"):
		b.kind = textKind(part[partText], members)
		b.text = part[partText]
	case spells(part[partType], "image"), spells(part[partType], "audio"):
		b.keepIf(jsonrpc.IsString(part[partData]) && jsonrpc.IsString(part[partMimeType]))
	case spells(part[partType], "resource_link"):
		b.keepIf(jsonrpc.IsString(part[partURI]) && jsonrpc.IsString(part[partName]))
	case spells(part[partType], "resource"):
		inner, _ := readParts(part[partResource])
		b.keepIf(jsonrpc.IsString(inner[partURI]) && (jsonrpc.IsString(inner[partText]) || jsonrpc.IsString(inner[partBlob])))
	}
	return b
}

func (b *block) keepIf(complete bool) {
	if complete {
		b.kind = known
	}
}

func textKind(value json.RawMessage, members int) kind {
	switch {
	case value == nil:
		return foreign
	case jsonrpc.IsNull(value):
		return nothing
	case !jsonrpc.IsString(value):
		return foreign
	case members == 2:
		return plain
	}
	return special
}

// spells reports whether value is a JSON string of that text.
func spells(value json.RawMessage, word string) bool {
	if len(value) < len(word)+2 || value[0] != '"' {
		return false
	}
	if string(value[1:len(value)-1]) == word {
		return true
	}
	// Escapes may spell it in at most six bytes a letter.
	if len(value) > 6*len(word)+2 || bytes.IndexByte(value, '\\') < 0 {
		return false
	}
	unquoted, _ := jsonrpc.Unquote(value)
	return unquoted == word
}

// blank reports whether a JSON string is empty or of white space only. It reads no
// further than it must, and makes nothing of it.
func blank(quoted json.RawMessage) bool {
	for inner := quoted[1 : len(quoted)-1]; len(inner) > 0; {
		r, size := utf8.DecodeRune(inner)
		if r == '\\' {
			r, size = unescape(inner)
		}
		if !unicode.IsSpace(r) {
			return false
		}
		inner = inner[size:]
	}
	return true
}

// unescape returns the character of the escape that s starts with, and its length. The
// halves of a surrogate pair come singly: neither is white space.
func unescape(s []byte) (rune, int) {
	switch s[1] {
	case 'n', 'r', 't', 'f':
		return ' ', 2
	case 'u':
		code, _ := strconv.ParseUint(string(s[2:6]), 16, 32)
		return rune(code), 6
	}
	return rune(s[1]), 2
}
