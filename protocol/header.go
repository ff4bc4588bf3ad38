package protocol

import (
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
)

// EncodeHeader returns text as the value of an Mcp-Name or Mcp-Param-* header: as it
// is, or in the =?base64?…?= form if it holds anything that a header cannot carry
// (2026-07-28, basic/transports/streamable-http, value encoding).
func EncodeHeader(text string) string {
	value, _ := mcp.EncodeHeaderValue(text) // a string is always accepted
	return value
}

// DecodeHeader undoes EncodeHeader.
func DecodeHeader(value string) (string, error) {
	text, ok := mcp.DecodeHeaderValue(value)
	if !ok {
		return "", fmt.Errorf("malformed base64 in the header value %q", value)
	}
	return text, nil
}
