package result

import (
	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// Deep nesting makes indentation outgrow what is indented. A value that would be both
// longer than prettyFloor and prettyGrowth times as long is written compactly instead,
// so that no server makes us hold a multiple of its limit.
const (
	prettyGrowth = 10
	prettyFloor  = 1 << 20
)

// appendPretty appends value as people read it.
func appendPretty(dst, value []byte) []byte {
	if size := indentation(value); size > prettyFloor && size > prettyGrowth*len(value) {
		return jsonrpc.Compact(dst, value)
	}
	return jsonrpc.Pretty(dst, value)
}

// indentation returns about how many bytes pretty-printing adds to value.
func indentation(value []byte) int {
	size, depth := 0, 0
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '"':
			i = jsonrpc.Skip(value, i) - 1
		case '{', '[':
			depth++
			size += 1 + 2*depth
		case '}', ']':
			depth--
			size += 1 + 2*depth
		case ',':
			size += 1 + 2*depth
		}
	}
	return size
}
