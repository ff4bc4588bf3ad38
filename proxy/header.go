package proxy

import (
	"encoding/json"
	"math/big"
	"slices"

	"github.com/mainstem-mcp/mainstem/catalog"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/upstream"
)

// checkHeaders proves that the Mcp-Param-* headers of a modern client say what its
// arguments say, for the headers that we told it to send (2026-07-28,
// basic/transports/streamable-http, custom headers).
func (c *call) checkHeaders() error {
	if c.r.Param == nil || c.r.era() != protocol.Modern {
		return nil
	}
	for _, h := range c.entry.Shown {
		text, present := c.r.Param(h.Name)
		value := at(c.members[callArguments].Value, h.Path)
		if value == nil || jsonrpc.IsNull(value) {
			if present {
				return mismatch(h.Name, "there is no such argument")
			}
			continue
		}
		if !present {
			return mismatch(h.Name, "it is missing")
		}
		if !agree(text, value) {
			return mismatch(h.Name, "the argument has another value")
		}
	}
	return nil
}

func mismatch(name, why string) error {
	return &jsonrpc.Error{Code: protocol.CodeHeaderMismatch, Message: "header " + protocol.HeaderParamPrefix + name + ": " + why}
}

// at follows a path of member names.
func at(value json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		value = jsonrpc.Get(value, name)
	}
	return value
}

// agree compares a header with an argument; integers by value, however written.
func agree(text string, value json.RawMessage) bool {
	if want, ok := headerText(value); !ok || want == text {
		return ok
	}
	if !isNumber(value) || len(text) > maxInteger || len(value) > maxInteger {
		return false
	}
	a, ok := new(big.Rat).SetString(text)
	b, ok2 := new(big.Rat).SetString(string(value))
	return ok && ok2 && a.Cmp(b) == 0
}

// maxInteger is how long a number may be that is compared by value.
const maxInteger = 64

// headerText is how an argument is written in a header; false if it cannot be.
func headerText(value json.RawMessage) (string, bool) {
	if text, ok := jsonrpc.Unquote(value); ok {
		return text, true
	}
	return string(value), !jsonrpc.IsObject(value) && !jsonrpc.IsArray(value)
}

// paramHeaders makes the headers that the server wants: which ones, says its own
// schema; where the client put the arguments, says the one that we showed.
func (c *call) paramHeaders() []upstream.ParamHeader {
	var out []upstream.ParamHeader
	for _, h := range c.entry.Raw {
		path := h.Path
		for _, shown := range c.entry.Shown {
			if shown.Name == h.Name {
				path = shown.Path
			}
		}
		value := at(c.members[callArguments].Value, path)
		if value == nil || jsonrpc.IsNull(value) {
			continue
		}
		if text, ok := headerText(value); ok {
			out = append(out, upstream.ParamHeader{Name: h.Name, Value: text})
		}
	}
	return out
}

func sameHeader(a, b catalog.Header) bool {
	return a.Name == b.Name && slices.Equal(a.Path, b.Path)
}
