// Package protocol knows what the Model Context Protocol fixes: its versions and their
// eras, one row per method, the error codes and their HTTP statuses, the names of
// headers and of reserved _meta members.
package protocol

import (
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// The versions that we speak, both to clients and to servers.
const (
	V20241105 = "2024-11-05"
	V20250326 = "2025-03-26"
	V20250618 = "2025-06-18"
	V20251125 = "2025-11-25"
	V20260728 = "2026-07-28"

	// LatestLegacy is what we ask of a server in initialize, and answer to a client
	// that asks for a version we do not know.
	LatestLegacy = V20251125
	// LatestModern is what we ask of a server in server/discover.
	LatestModern = V20260728
)

// Supported returns the versions that we speak, newest first.
func Supported() []string {
	return []string{V20260728, V20251125, V20250618, V20250326, V20241105}
}

// An Era is one of the two ways of speaking: they differ in sessions, in where a
// server's questions go, and in what every request has to carry.
type Era uint8

const (
	// Legacy is up to 2025-11-25: initialize, then a session.
	Legacy Era = iota + 1
	// Modern is 2026-07-28: every request stands alone.
	Modern
)

func (e Era) String() string {
	switch e {
	case Legacy:
		return "legacy"
	case Modern:
		return "modern"
	}
	return ""
}

// EraOf returns the era of a version; false for one that we do not speak.
func EraOf(version string) (Era, bool) {
	switch version {
	case V20260728:
		return Modern, true
	case V20251125, V20250618, V20250326, V20241105:
		return Legacy, true
	}
	return 0, false
}

// Negotiate returns the version to answer to an initialize that asks for one
// (2025-11-25, basic/lifecycle, version negotiation).
func Negotiate(requested string) string {
	if era, ok := EraOf(requested); ok && era == Legacy {
		return requested
	}
	return LatestLegacy
}

// Error codes of JSON-RPC and of the protocol.
const (
	CodeParse              = jsonrpc.CodeParse
	CodeInvalidRequest     = jsonrpc.CodeInvalidRequest
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = jsonrpc.CodeInvalidParams
	CodeInternal           = -32603
	CodeResourceNotFound   = -32002 // up to 2025-11-25; modern clients get CodeInvalidParams
	CodeHeaderMismatch     = mcp.HEADER_MISMATCH
	CodeMissingCapability  = mcp.MISSING_REQUIRED_CLIENT_CAPABILITY
	CodeUnsupportedVersion = mcp.UNSUPPORTED_PROTOCOL_VERSION
)

// Status returns the HTTP status that goes with an error answered to a modern client
// (2026-07-28, basic/transports/streamable-http).
func Status(code int) int {
	switch code {
	case CodeParse, CodeInvalidRequest, CodeHeaderMismatch, CodeMissingCapability, CodeUnsupportedVersion:
		return 400
	case CodeMethodNotFound:
		return 404
	}
	return 200
}

// ErrorObject returns the error member of an answer. data may be nil.
func ErrorObject(code int, message string, data json.RawMessage) json.RawMessage {
	out := fmt.Appendf(nil, `{"code":%d,"message":`, code)
	out = jsonrpc.AppendQuote(out, message)
	if data != nil {
		out = append(append(out, `,"data":`...), data...)
	}
	return append(out, '}')
}

// Headers of Streamable HTTP, in the form that net/http keeps them.
const (
	HeaderSession     = "Mcp-Session-Id"
	HeaderVersion     = "Mcp-Protocol-Version"
	HeaderMethod      = "Mcp-Method"
	HeaderName        = "Mcp-Name"
	HeaderParamPrefix = "Mcp-Param-"
)

// Reserved members of _meta.
const (
	MetaProgressToken      = "progressToken"
	MetaVersion            = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaSubscription       = "io.modelcontextprotocol/subscriptionId"
)

// Name is what we are called in serverInfo and clientInfo. It has to stay short: some
// hosts build tool names from it.
const Name = "Mainstem"

// Info is our serverInfo and clientInfo.
func Info(version string) json.RawMessage {
	return append(jsonrpc.AppendQuote([]byte(`{"name":"`+Name+`","version":`), version), '}')
}
