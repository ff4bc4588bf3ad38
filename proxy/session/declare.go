package session

import (
	"encoding/json"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy/access"
)

// A Declaration is what a request says about itself in _meta: all that there is of a
// session in 2026-07-28. Its values alias the request.
type Declaration struct {
	Version      json.RawMessage // nil: the request declares none, so it is of an older version
	Capabilities json.RawMessage
	ClientInfo   json.RawMessage
	LogLevel     json.RawMessage
}

var declared = []string{
	protocol.MetaVersion, protocol.MetaClientCapabilities, protocol.MetaClientInfo, protocol.MetaLogLevel, protocol.MetaProgressToken,
}

// Declare reads a request's _meta. A member that stands there twice, or in a spelling
// that another decoder could take for it, is an *jsonrpc.Error.
func Declare(params json.RawMessage) (Declaration, error) {
	var meta [1]jsonrpc.Member
	if err := jsonrpc.Pick(params, metaName, meta[:]); err != nil {
		return Declaration{}, err
	}
	if meta[0].Value == nil {
		return Declaration{}, nil
	}
	var m [5]jsonrpc.Member
	if err := jsonrpc.Pick(meta[0].Value, declared, m[:]); err != nil {
		return Declaration{}, err
	}
	return Declaration{Version: m[0].Value, Capabilities: m[1].Value, ClientInfo: m[2].Value, LogLevel: m[3].Value}, nil
}

var metaName = []string{"_meta"}

// Check reports what keeps a request of 2026-07-28 from being served: a version that
// we do not speak, or a member that every request must have (2026-07-28, basic/index,
// _meta). The error is an *jsonrpc.Error.
func (d Declaration) Check() error {
	version, ok := jsonrpc.Unquote(d.Version)
	if !ok {
		return missing(protocol.MetaVersion, "a string")
	}
	if era, known := protocol.EraOf(version); !known || era != protocol.Modern {
		return Unsupported(version)
	}
	if !jsonrpc.IsObject(d.Capabilities) {
		return missing(protocol.MetaClientCapabilities, "an object")
	}
	return nil
}

func missing(member, want string) error {
	return &jsonrpc.Error{Code: protocol.CodeInvalidParams, Message: "_meta must have " + member + ", " + want}
}

// Unsupported is the answer to a request in a version that we do not speak.
func Unsupported(version string) error {
	data := []byte(`{"supported":[`)
	for i, v := range protocol.Supported() {
		if i > 0 {
			data = append(data, ',')
		}
		data = jsonrpc.AppendQuote(data, v)
	}
	data = append(jsonrpc.AppendQuote(append(data, `],"requested":`...), version), '}')
	return &jsonrpc.Error{Code: protocol.CodeUnsupportedVersion, Message: "unsupported protocol version", Data: data}
}

// Session returns the session of the one request that declared this and was checked.
func (d Declaration) Session(caller access.Caller, endpoint string) *Session {
	version, _ := jsonrpc.Unquote(d.Version)
	s := NewThrowaway(caller, endpoint, version, d.Capabilities, d.ClientInfo)
	s.level, _ = jsonrpc.Unquote(d.LogLevel)
	return s
}
