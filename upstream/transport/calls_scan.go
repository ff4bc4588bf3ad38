package transport

import "bytes"

// repliedTo finds out which request a message answers that is no JSON, or of which
// only the beginning and the end are known. It looks for a member "id" of the message
// itself, first from the front, then at the very end, where some servers write it.
func repliedTo(head, tail []byte) (int64, bool) {
	depth := 0
	for i := 0; i < len(head); i++ {
		switch head[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			end := stringEnd(head, i)
			key := head[i:end]
			if i = end - 1; depth != 1 {
				continue
			}
			after := bytes.TrimLeft(head[end:], " \t\r\n")
			if len(after) == 0 || after[0] != ':' {
				continue
			}
			switch string(key) {
			case `"method"`:
				return 0, false
			case `"id"`:
				return leadingNumber(after[1:])
			}
		}
	}
	return lastID(tail)
}

// stringEnd returns the index after the string that starts at b[i], or the end of b.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// lastID reads the id of a message that ends in "id":N} or "id":N,"jsonrpc":"2.0"}.
func lastID(tail []byte) (int64, bool) {
	at := bytes.LastIndex(tail, []byte(`"id"`))
	if at < 0 {
		return 0, false
	}
	rest := bytes.TrimLeft(tail[at+len(`"id"`):], " \t\r\n")
	if len(rest) == 0 || rest[0] != ':' {
		return 0, false
	}
	number, end, ok := bytes.Cut(rest[1:], []byte{'}'})
	if !ok || len(bytes.TrimSpace(end)) > 0 {
		return 0, false
	}
	number, version, more := bytes.Cut(number, []byte{','})
	if more && !bytes.HasPrefix(bytes.TrimSpace(version), []byte(`"jsonrpc"`)) {
		return 0, false
	}
	return leadingNumber(number)
}

func leadingNumber(b []byte) (int64, bool) {
	b = bytes.TrimLeft(b, " \t\r\n")
	end := 0
	for end < len(b) && b[end] >= '0' && b[end] <= '9' {
		end++
	}
	return number(b[:end])
}
