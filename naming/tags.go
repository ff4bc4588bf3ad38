package naming

import "strings"

// tagLength is the length of a tag's tool part at most.
const tagLength = 128

// A Tag is what a tool is called in the OpenKBS catalog: mcp_ServerPart_ToolPart.
// The server part has no underscore, because readers end it at the first one.
type Tag struct {
	Ref
	ServerPart, ToolPart string
}

// Tags gives every tool its tag, in list order.
func Tags(servers []Server) []Tag {
	o := Options{Mode: Never, MaxLength: tagLength, Charset: OpenKBS}
	parts := serverParts(servers)
	var tags []Tag
	for i, s := range servers {
		for _, n := range Names(o, []Server{s}) {
			tags = append(tags, Tag{Ref: n.Ref, ServerPart: parts[i], ToolPart: n.Public})
		}
	}
	return tags
}

// serverParts returns the server part of each server. As with names, a number never
// takes the part that another server has by itself.
func serverParts(servers []Server) []string {
	parts := make([]string, len(servers))
	r := newRegister('-', 0, len(servers))
	var late []int
	for i, s := range servers {
		parts[i] = hyphenate(s.Name)
		if !r.claim(parts[i]) {
			late = append(late, i)
		}
	}
	for _, i := range late {
		parts[i] = r.number(parts[i])
	}
	return parts
}

// hyphenate lower-cases a server name and makes every run of other characters than
// a-z 0-9 one hyphen, with none at the ends.
func hyphenate(server string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(server) {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			b.WriteByte(byte(r))
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.TrimSuffix(b.String(), "-")
}
