// Package jsonrpc reads, checks and edits raw JSON-RPC messages and server-sent events.
//
// Messages are never decoded: a scanner walks the bytes once, proves that they are
// well formed, and notes where the few members stand that matter. Everything else
// passes as it came, which keeps unknown members, member order and the digits of
// numbers.
package jsonrpc

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is how many objects and lists may stand in one another.
const MaxDepth = 10000

// Check reports whether b holds exactly one JSON value as RFC 8259 defines it, in
// valid UTF-8, with no raw control character inside a string and no more than
// MaxDepth levels. White space around the value is fine. An error is an *Error with
// CodeParse.
func Check(b []byte) error {
	s := scanner{b: b}
	end, err := s.value(skipSpace(b, 0))
	if err == nil && skipSpace(b, end) != len(b) {
		err = syntaxError("text after the value", skipSpace(b, end))
	}
	if err != nil {
		return err
	}
	return nil
}

// A scanner walks foreign bytes. Its methods return the index after what they read.
type scanner struct {
	b       []byte
	depth   int
	longest span // the longest string so far, with its quotes
	// one bit a level: whether an object is open there. A list of bits instead of
	// recursion, so that no message can exhaust a goroutine's stack.
	object [MaxDepth/64 + 1]uint64
}

type span struct{ start, end int }

// or returns the longer one.
func (s span) or(o span) span {
	if o.end-o.start > s.end-s.start {
		return o
	}
	return s
}

// value reads the value that starts at i, which is no white space.
func (s *scanner) value(i int) (int, *Error) {
	base := s.depth
	for {
		var opened bool
		var err *Error
		if i, opened, err = s.begin(i); err != nil {
			return 0, err
		}
		if opened { // i is where its first value starts
			continue
		}
		for { // a value has ended
			if s.depth == base {
				return i, nil
			}
			var more bool
			if i, more, err = s.next(skipSpace(s.b, i)); err != nil {
				return 0, err
			}
			if more {
				break
			}
		}
	}
}

// begin reads a scalar or an empty container whole, or enters a container.
func (s *scanner) begin(i int) (end int, opened bool, err *Error) {
	if i >= len(s.b) {
		return 0, false, syntaxError("the message ends early", i)
	}
	switch c := s.b[i]; {
	case c == '"':
		end, err = s.str(i)
	case c == '{' || c == '[':
		return s.open(i, c == '{')
	case c == '-' || c >= '0' && c <= '9':
		end, err = s.number(i)
	case c == 't':
		end, err = s.literal(i, "true")
	case c == 'f':
		end, err = s.literal(i, "false")
	case c == 'n':
		end, err = s.literal(i, "null")
	default:
		err = syntaxError("no value", i)
	}
	return end, false, err
}

func (s *scanner) open(i int, object bool) (int, bool, *Error) {
	closing := byte(']')
	if object {
		closing = '}'
	}
	if i = skipSpace(s.b, i+1); i < len(s.b) && s.b[i] == closing {
		return i + 1, false, nil
	}
	if s.depth++; s.depth > MaxDepth {
		return 0, false, syntaxError("too many levels", i)
	}
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	if !object {
		s.object[word] &^= bit
		return i, true, nil
	}
	s.object[word] |= bit
	i, err := s.key(i)
	return i, true, err
}

// next reads what follows a value inside a container: a comma (more is true and the
// next value starts at the index), or the container's end.
func (s *scanner) next(i int) (end int, more bool, err *Error) {
	object := s.object[s.depth/64]&(1<<(s.depth%64)) != 0
	if i >= len(s.b) {
		return 0, false, syntaxError("the message ends early", i)
	}
	switch c := s.b[i]; {
	case c == ',' && object:
		i, err = s.key(skipSpace(s.b, i+1))
		return i, true, err
	case c == ',':
		return skipSpace(s.b, i+1), true, nil
	case c == '}' && object, c == ']' && !object:
		s.depth--
		return i + 1, false, nil
	}
	return 0, false, syntaxError("neither a comma nor an end", i)
}

// key reads a member's name and colon, up to its value.
func (s *scanner) key(i int) (int, *Error) {
	if i >= len(s.b) || s.b[i] != '"' {
		return 0, syntaxError("no member name", i)
	}
	i, err := s.str(i)
	if err != nil {
		return 0, err
	}
	if i = skipSpace(s.b, i); i >= len(s.b) || s.b[i] != ':' {
		return 0, syntaxError("no colon", i)
	}
	return skipSpace(s.b, i+1), nil
}

func (s *scanner) literal(i int, word string) (int, *Error) {
	if len(s.b)-i < len(word) || string(s.b[i:i+len(word)]) != word {
		return 0, syntaxError("no value", i)
	}
	return i + len(word), nil
}

func (s *scanner) number(i int) (int, *Error) {
	if s.b[i] == '-' {
		i++
	}
	whole := i
	if i = digits(s.b, i); i == whole || i > whole+1 && s.b[whole] == '0' {
		return 0, syntaxError("malformed number", whole)
	}
	if i < len(s.b) && s.b[i] == '.' {
		fraction := i + 1
		if i = digits(s.b, fraction); i == fraction {
			return 0, syntaxError("malformed number", i)
		}
	}
	if i < len(s.b) && (s.b[i] == 'e' || s.b[i] == 'E') {
		if i++; i < len(s.b) && (s.b[i] == '+' || s.b[i] == '-') {
			i++
		}
		exponent := i
		if i = digits(s.b, exponent); i == exponent {
			return 0, syntaxError("malformed number", i)
		}
	}
	return i, nil
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// str reads a string. Eight bytes at a time: most text needs no closer look. What does
// need one is mostly an escape. Its length is a constant in each branch, so that the
// processor can guess where the next look is due instead of waiting for a table.
func (s *scanner) str(start int) (int, *Error) {
	b := s.b
	for i := start + 1; i < len(b); {
		if len(b)-i >= 8+6 {
			special := specials(binary.LittleEndian.Uint64(b[i:]))
			if special == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(special) / 8
			e := b[i : i+6]
			if e[0] == '\\' {
				if e[1] == 'u' && (hexValues[e[2]]|hexValues[e[3]]|hexValues[e[4]]|hexValues[e[5]]) < 16 {
					i += 6
					continue
				}
				if escapes[e[1]] {
					i += 2
					continue
				}
			} else if n := runeLength(e); n > 0 {
				i += n
				continue
			}
		}
		n, err := s.char(i)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			s.longest = s.longest.or(span{start, i + 1})
			return i + 1, nil
		}
		i += n
	}
	return 0, syntaxError("a string does not end", start)
}

// specials sets the high bit of the first byte of w, in memory order, that is < 0x20,
// '"', '\\' or beyond ASCII. Bits above it may be carries.
func specials(w uint64) uint64 {
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return ((w - ones*0x20) | (quote - ones) | (slash - ones) | w) & highs
}

// char returns the length of the character or escape at i, 0 for the quote that ends
// the string.
func (s *scanner) char(i int) (int, *Error) {
	b := s.b[i:]
	switch c := b[0]; {
	case c == '"':
		return 0, nil
	case c == '\\' && len(b) >= 2 && escapes[b[1]]:
		return 2, nil
	case c == '\\' && len(b) >= 6 && b[1] == 'u' && hex4(b[2:]) >= 0:
		return 6, nil
	case c == '\\':
		return 0, syntaxError("malformed escape", i)
	case c < 0x20:
		return 0, syntaxError("raw control character in a string", i)
	case c < utf8.RuneSelf:
		return 1, nil
	}
	if n := runeLength(b); n > 0 {
		return n, nil
	}
	return 0, syntaxError("invalid UTF-8", i)
}

// runeLength returns the length of the character beyond ASCII that b starts with, 0 if
// it is malformed.
func runeLength(b []byte) int {
	if b[0] < 0xc2 {
		return 0
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n == 1 {
		return 0
	}
	return n
}

// escapes holds the characters that make an escape of two.
var escapes = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// hexValues holds the value of each hexadecimal digit, 0xff for what is none.
var hexValues = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i := range byte(10) {
		t['0'+i] = i
	}
	for i := range byte(6) {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}()

// hex4 returns the value of four hexadecimal digits, -1 if they are none.
func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		v := hexValues[c]
		if v > 15 {
			return -1
		}
		r = r<<4 | rune(v)
	}
	return r
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}
