package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

// A verdict is what the answer to the probe says about a server.
type verdict struct {
	modern  bool
	dual    bool   // modern, and legacy too
	again   bool   // modern, but it refused this very question
	version string // what to ask of a legacy server
	why     string // why it is not modern
}

// judge reads the answer to server/discover (2026-07-28, basic/transports, backward
// compatibility). Anything that a modern server would not say means the legacy era:
// old servers answer an unknown method in every way there is. An error means that
// falling back would hide the cause.
func judge(reply jsonrpc.Reply, err error) (verdict, error) {
	legacy := verdict{version: protocol.LatestLegacy}
	var unsent *transport.NotSent
	var login *transport.LoginError
	switch {
	case errors.As(err, &login), errors.As(err, &unsent):
		return verdict{}, err
	case err != nil:
		legacy.why = err.Error()
		return legacy, nil
	case reply.Error != nil:
		return judgeError(reply.Error)
	}
	versions, ok := texts(jsonrpc.Get(reply.Result, "supportedVersions"))
	if !ok { // lenient old servers answer {} to everything
		legacy.why = "its answer to server/discover names no supportedVersions"
		return legacy, nil
	}
	return judgeVersions(versions)
}

func judgeError(object json.RawMessage) (verdict, error) {
	switch string(jsonrpc.Get(object, "code")) {
	case fmt.Sprint(protocol.CodeUnsupportedVersion):
		versions, _ := texts(jsonrpc.Get(jsonrpc.Get(object, "data"), "supported"))
		v, err := judgeVersions(versions)
		v.again = v.modern
		return v, err
	case fmt.Sprint(protocol.CodeHeaderMismatch), fmt.Sprint(protocol.CodeMissingCapability):
		return verdict{}, &transport.NotSent{Err: fmt.Errorf("it refused server/discover: %s", errorText(object))}
	}
	return verdict{version: protocol.LatestLegacy, why: "it answered server/discover with " + errorText(object)}, nil
}

// judgeVersions picks the newest version that both sides speak.
func judgeVersions(theirs []string) (verdict, error) {
	for _, ours := range protocol.Supported() {
		if slices.Contains(theirs, ours) {
			era, _ := protocol.EraOf(ours)
			v := verdict{modern: era == protocol.Modern, version: ours, why: "it speaks " + strings.Join(theirs, ", ")}
			v.dual = v.modern && slices.ContainsFunc(theirs, isLegacy)
			return v, nil
		}
	}
	return verdict{}, &transport.NotSent{Err: fmt.Errorf("no common version: it speaks %s, we speak %s",
		strings.Join(theirs, ", "), strings.Join(protocol.Supported(), ", "))}
}

func isLegacy(version string) bool {
	era, ok := protocol.EraOf(version)
	return ok && era == protocol.Legacy
}

// maxVersions bounds what a server may make us show and compare.
const maxVersions = 32

func texts(list json.RawMessage) ([]string, bool) {
	if !jsonrpc.IsArray(list) {
		return nil, false
	}
	var out []string
	for e := range jsonrpc.Elements(list) {
		if text, ok := jsonrpc.Unquote(e); ok && len(text) <= 32 && len(out) < maxVersions {
			out = append(out, text)
		}
	}
	return out, true
}
