package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
)

// hashLength is the number of hex digits that keep shortened names apart.
const hashLength = 8

// Blank reports whether a raw name names nothing, so that its tool is left out.
func Blank(raw string) bool {
	return strings.TrimSpace(raw) == ""
}

// clean makes every character outside the charset one underscore.
func clean(charset, name string) string {
	if charset == OpenKBS {
		name = strings.ToLower(name)
	}
	for i, r := range name {
		if !legal(charset, r) {
			return replace(charset, name, i)
		}
	}
	return name
}

// replace is clean for a name whose first illegal character stands at byte i.
func replace(charset, name string, i int) string {
	var b strings.Builder
	b.Grow(len(name))
	b.WriteString(name[:i])
	for _, r := range name[i:] {
		if !legal(charset, r) {
			r = '_'
		}
		b.WriteByte(byte(r)) // every legal character is ASCII
	}
	return b.String()
}

// legal reports whether r is in the charset.
func legal(charset string, r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '_':
		return true
	case 'A' <= r && r <= 'Z', r == '-':
		return charset != OpenKBS
	case r == '.':
		return charset == MCP
	}
	return false
}

// prefix is the server's share of a name: in lower case, and without an underscore
// at its end, which would blur the seam.
func prefix(charset, server string) string {
	return strings.TrimRight(clean(charset, strings.ToLower(server)), "_")
}

// fold maps names that clients may take for one another to the same text.
func fold(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "-", "_")
}

// shorten cuts a cleaned name to size. The hash is of what the name stands for, so
// that the result does not depend on what else is configured.
func shorten(name string, size int, ref Ref) string {
	head := strings.TrimRight(name[:size-hashLength-1], "_-.")
	h := sha256.New()
	io.WriteString(h, ref.Server)
	h.Write([]byte{0})
	io.WriteString(h, ref.Raw)
	return head + "_" + hex.EncodeToString(h.Sum(nil)[:hashLength/2])
}
