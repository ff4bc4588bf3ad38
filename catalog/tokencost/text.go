package tokencost

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// appendTool appends the text that is counted: compact JSON of what a model sees of a
// tool, with no escapes but those that JSON demands.
func appendTool(dst []byte, name, description string, inputSchema json.RawMessage) []byte {
	dst = slices.Grow(dst, len(name)+len(description)+len(inputSchema)+64)
	dst = append(dst, `{"name":`...)
	dst = appendQuote(dst, name)
	dst = append(dst, `,"description":`...)
	dst = appendQuote(dst, description)
	dst = append(dst, `,"inputSchema":`...)
	dst = appendCompact(dst, inputSchema)
	return append(dst, '}')
}

// appendCompact appends a JSON value without white space between its parts.
func appendCompact(dst, value []byte) []byte {
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case ' ', '\n', '\r', '\t':
		case '"':
			start := i
			escaped := false
			for i++; i < len(value) && value[i] != '"'; i++ {
				if value[i] == '\\' {
					escaped = true
					i++
				}
			}
			dst = appendString(dst, value[start:min(i+1, len(value))], escaped)
		default:
			dst = append(dst, value[i])
		}
	}
	return dst
}

// appendString appends a JSON string and undoes the escapes that nobody needs.
func appendString(dst, quoted []byte, escaped bool) []byte {
	if !escaped {
		return append(dst, quoted...)
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return append(dst, quoted...)
	}
	return appendQuote(dst, s)
}

// appendQuote appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendQuote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ':
			dst = appendControl(dst, byte(r))
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// appendControl appends the shortest escape of a control character.
func appendControl(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '\n':
		return append(dst, '\\', 'n')
	case '\t':
		return append(dst, '\\', 't')
	case '\r':
		return append(dst, '\\', 'r')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}
