package jsonrpc

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
	"unicode/utf8"
)

// A Member is one member of an object.
type Member struct {
	Key   []byte          // what stands between the quotes, still escaped
	Value json.RawMessage // aliases the object
	KeyAt int             // where in the object the name's opening quote stands
	At    int             // where in the object the value starts
}

// End is where in the object the value ends.
func (m Member) End() int { return m.At + len(m.Value) }

// Is reports whether the member is called name; an escaped spelling counts.
func (m Member) Is(name string) bool {
	if string(m.Key) == name {
		return true
	}
	return bytes.IndexByte(m.Key, '\\') >= 0 && m.Name() == name
}

// Name is the member's name without escapes.
func (m Member) Name() string {
	if bytes.IndexByte(m.Key, '\\') < 0 {
		return string(m.Key)
	}
	return string(appendUnescaped(nil, m.Key))
}

// Members yields the members of an object in order, and nothing for any other value.
// Its bytes must have passed Check.
func Members(obj []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		i := skipSpace(obj, 0)
		if i >= len(obj) || obj[i] != '{' {
			return
		}
		for i = skipSpace(obj, i+1); i < len(obj) && obj[i] != '}'; {
			key := i
			i = skipString(obj, i)
			name := obj[key+1 : i-1]
			i = skipSpace(obj, skipSpace(obj, i)+1)
			at := i
			i = Skip(obj, i)
			if !yield(Member{Key: name, Value: obj[at:i:i], KeyAt: key, At: at}) {
				return
			}
			if i = skipSpace(obj, i); i < len(obj) && obj[i] == ',' {
				i = skipSpace(obj, i+1)
			}
		}
	}
}

// Elements yields the values of a list in order, and nothing for any other value. Its
// bytes must have passed Check.
func Elements(list []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		i := skipSpace(list, 0)
		if i >= len(list) || list[i] != '[' {
			return
		}
		for i = skipSpace(list, i+1); i < len(list) && list[i] != ']'; {
			at := i
			i = Skip(list, i)
			if !yield(json.RawMessage(list[at:i:i])) {
				return
			}
			if i = skipSpace(list, i); i < len(list) && list[i] == ',' {
				i = skipSpace(list, i+1)
			}
		}
	}
}

// Get returns the value of the first member of that name, nil if there is none.
func Get(obj []byte, name string) json.RawMessage {
	for m := range Members(obj) {
		if m.Is(name) {
			return m.Value
		}
	}
	return nil
}

// Pick finds the named members of obj: out[i] is the member names[i], with a nil Value
// if there is none. A second member of one of the names, or one that differs from it
// only in case, is an *Error with CodeInvalidParams: another decoder might take that
// one, and whatever was decided by the first would be passed by.
func Pick(obj []byte, names []string, out []Member) error {
	clear(out[:len(names)])
	for m := range Members(obj) {
		for i, name := range names {
			if string(m.Key) != name {
				if !looksLike(m.Key, name) {
					continue
				}
				if spelled := m.Name(); spelled != name {
					return &Error{Code: CodeInvalidParams, Message: "member " + string(AppendQuote(nil, spelled)) + " is spelled unlike \"" + name + "\""}
				}
			}
			if out[i].Value != nil {
				return &Error{Code: CodeInvalidParams, Message: "member \"" + name + "\" occurs twice"}
			}
			out[i] = m
		}
	}
	return nil
}

// looksLike reports whether key, unescaped, equals name, which is ASCII, under case
// folding.
func looksLike(key []byte, name string) bool {
	if bytes.IndexByte(key, '\\') >= 0 {
		key = appendUnescaped(nil, key)
	}
	for i, c := range key {
		switch {
		case c >= utf8.RuneSelf: // some letters beyond ASCII fold to one in it
			return strings.EqualFold(string(key), name)
		case i >= len(name) || c|lower(c) != name[i]|lower(name[i]):
			return false
		}
	}
	return len(key) == len(name)
}

// lower is the bit that makes an upper-case letter a lower-case one, 0 for what is no
// letter.
func lower(c byte) byte {
	if c|0x20 >= 'a' && c|0x20 <= 'z' {
		return 0x20
	}
	return 0
}

// Skip returns the index after the value that starts at b[i]. The bytes must have
// passed Check.
func Skip(b []byte, i int) int {
	switch {
	case i >= len(b):
		return i
	case b[i] == '"':
		return skipString(b, i)
	case b[i] != '{' && b[i] != '[':
		for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
			i++
		}
		return i
	}
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = skipString(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return i
}

func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return i
}

// IsObject reports whether a value is an object.
func IsObject(value []byte) bool { return first(value) == '{' }

// IsArray reports whether a value is a list.
func IsArray(value []byte) bool { return first(value) == '[' }

// IsString reports whether a value is a string.
func IsString(value []byte) bool { return first(value) == '"' }

// IsNull reports whether a value is null.
func IsNull(value []byte) bool { return first(value) == 'n' }

func first(value []byte) byte {
	if i := skipSpace(value, 0); i < len(value) {
		return value[i]
	}
	return 0
}

// Unline makes a message one line, in place: line ends between members become spaces.
// b must have passed Check, so that none stands inside a string. Wherever a line is a
// frame this keeps one message from becoming two.
func Unline(b []byte) {
	for _, end := range []byte{'\n', '\r'} {
		for i := 0; ; i++ {
			n := bytes.IndexByte(b[i:], end)
			if n < 0 {
				break
			}
			i += n
			b[i] = ' '
		}
	}
}
