package jsonrpc

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote returns the text of a JSON string; false if value is none. A surrogate
// without its partner becomes U+FFFD.
func Unquote(value []byte) (string, bool) {
	i := skipSpace(value, 0)
	if i >= len(value) || value[i] != '"' {
		return "", false
	}
	inner := value[i+1 : skipString(value, i)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	return string(appendUnescaped(nil, inner)), true
}

// appendUnescaped appends the text of what stands between a string's quotes.
func appendUnescaped(dst, inner []byte) []byte {
	for len(inner) > 0 {
		n := bytes.IndexByte(inner, '\\')
		if n < 0 {
			return append(dst, inner...)
		}
		dst = append(dst, inner[:n]...)
		r, size := unescape(inner[n:])
		dst = utf8.AppendRune(dst, r) // a lone surrogate becomes U+FFFD here
		inner = inner[n+size:]
	}
	return dst
}

// unescape returns the character of the escape that b starts with and its length. A
// lone surrogate is returned as it is.
func unescape(b []byte) (rune, int) {
	switch b[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r := hex4(b[2:])
		if utf16.IsSurrogate(r) && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if pair := utf16.DecodeRune(r, hex4(b[8:])); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return r, 6
	}
	return rune(b[1]), 2
}

// AppendQuote appends s as a JSON string with no escapes but those that JSON demands.
// Invalid UTF-8 becomes U+FFFD.
func AppendQuote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		n := i
		for n < len(s) && s[n] >= 0x20 && s[n] < utf8.RuneSelf && s[n] != '"' && s[n] != '\\' {
			n++
		}
		dst = append(dst, s[i:n]...)
		if i = n; i == len(s) {
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		dst = appendChar(dst, r)
		i += size
	}
	return append(dst, '"')
}

const hexDigits = "0123456789abcdef"

// appendChar appends one character of a string, escaped if it has to be.
func appendChar(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r == '\n':
		return append(dst, '\\', 'n')
	case r == '\r':
		return append(dst, '\\', 'r')
	case r == '\t':
		return append(dst, '\\', 't')
	case r == '\b':
		return append(dst, '\\', 'b')
	case r == '\f':
		return append(dst, '\\', 'f')
	case r < 0x20 || utf16.IsSurrogate(r): // a lone surrogate has no other spelling
		return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
	}
	return utf8.AppendRune(dst, r)
}

// Compact appends value without white space and with no escapes but those that JSON
// demands. Order and the digits of numbers stay. value must have passed Check.
func Compact(dst, value []byte) []byte {
	for i := 0; i < len(value); {
		switch c := value[i]; c {
		case ' ', '\n', '\r', '\t':
			i++
		case '"':
			end := skipString(value, i)
			dst = appendString(dst, value[i:end])
			i = end
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst
}

// appendString appends a quoted string with its escapes reduced to the needed ones.
func appendString(dst, quoted []byte) []byte {
	for len(quoted) > 0 {
		n := bytes.IndexByte(quoted, '\\')
		if n < 0 {
			return append(dst, quoted...)
		}
		dst = append(dst, quoted[:n]...)
		r, size := unescape(quoted[n:])
		dst = appendChar(dst, r)
		quoted = quoted[n+size:]
	}
	return dst
}

// Pretty appends value with each member and element on a line of its own, indented by
// two spaces a level; empty objects and lists stay on one line. Order and the digits
// of numbers stay. value must have passed Check.
func Pretty(dst, value []byte) []byte {
	depth := 0
	for i := 0; i < len(value); {
		c := value[i]
		switch c {
		case ' ', '\n', '\r', '\t':
			i++
			continue
		case '"':
			end := skipString(value, i)
			dst = appendString(dst, value[i:end])
			i = end
			continue
		case '{', '[':
			dst = append(dst, c)
			if n := skipSpace(value, i+1); value[n] == '}' || value[n] == ']' {
				dst = append(dst, value[n])
				i = n + 1
				continue
			}
			depth++
			dst = appendIndent(dst, depth)
		case '}', ']':
			depth--
			dst = append(appendIndent(dst, depth), c)
		case ',':
			dst = appendIndent(append(dst, c), depth)
		case ':':
			dst = append(dst, ':', ' ')
		default:
			dst = append(dst, c)
		}
		i++
	}
	return dst
}

// maxIndent bounds what deep nesting can make of a small value: a line is indented for
// this many levels at most.
const maxIndent = 64

func appendIndent(dst []byte, depth int) []byte {
	dst = append(dst, '\n')
	for range min(depth, maxIndent) {
		dst = append(dst, ' ', ' ')
	}
	return dst
}
