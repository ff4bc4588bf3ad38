// Package result knows what a client gets of a tool's result: it is repaired so that no
// client refuses it, and nothing of it is re-encoded without need.
package result

import (
	"encoding/json"
	"fmt"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
)

// A Mode says how much of a result's form stays.
type Mode uint8

const (
	// Mixed joins neighbouring plain texts and keeps every other known block.
	Mixed Mode = iota
	// Text makes one text block of everything.
	Text
	// Passthrough keeps the server's bytes.
	Passthrough
)

// ModeOf returns the mode that the configuration calls name; Mixed is the default.
func ModeOf(name string) Mode {
	switch name {
	case "text":
		return Text
	case "passthrough":
		return Passthrough
	}
	return Mixed
}

// A Rule says how the results of one tool are normalized.
type Rule struct {
	Server      string
	Mode        Mode
	ShowsOutput bool // the tool is listed with an outputSchema
}

// Normalize returns a reply's result as a client of the given protocol version gets it: the
// result itself if nothing has to change, else a new one in the memory of dst, which
// must not overlap it. A client of 2026-07-28 is told our serverInfo too. failed
// reports whether the client reads that the tool failed.
//
// The result must have passed jsonrpc.Check. The error, which names the server, means that
// the server broke the protocol: its result is no object, or of an unknown type.
func (r Rule) Normalize(dst []byte, reply jsonrpc.Reply, version string, serverInfo json.RawMessage) (normal []byte, failed bool, err error) {
	result := reply.Result
	era, _ := protocol.EraOf(version)
	if era == protocol.Legacy && !r.ShowsOutput && r.Mode != Passthrough && usual(reply) {
		return result, false, nil
	}
	if !jsonrpc.IsObject(result) {
		return nil, false, fmt.Errorf("%s: tools/call: the result is no object", r.Server)
	}
	p := plan{work: jsonrpc.NewBuffer()}
	defer p.work.Release()
	p.read(result)
	complete, err := p.complete()
	if err != nil {
		return nil, false, fmt.Errorf("%s: tools/call: %w", r.Server, err)
	}
	if complete && r.Mode != Passthrough {
		r.repair(&p, result, era)
	}
	if era == protocol.Modern {
		p.modernize(serverInfo)
	}
	failed = string(p.want(isError)) == "true"
	if !p.changes() {
		return result, failed, nil
	}
	return p.render(dst[:0], result), failed, nil
}

// usual reports whether a result is one plain text and nothing else, as most servers
// write it. Then nothing has to change, and one look at the text is enough.
func usual(reply jsonrpc.Reply) bool {
	const opening = `{"content":[` + textOpening
	result := reply.Result
	if len(result) <= len(opening) || string(result[:len(opening)]) != opening {
		return false
	}
	text := reply.StringAt(len(opening) - 1)
	switch string(result[len(opening)-1+len(text):]) {
	case `}]}`, `}],"isError":false}`:
		return !blank(text)
	}
	return false
}

// repair plans what Mixed and Text ask for.
func (r Rule) repair(p *plan, result json.RawMessage, era protocol.Era) {
	p.repairMembers()
	if r.Mode == Text {
		p.joinAll(result)
		p.set(structured, nil)
		return
	}
	p.joinTexts()
	// Older clients refuse a whole result over data that is no object.
	if era != protocol.Modern && !jsonrpc.IsObject(p.want(structured)) {
		p.set(structured, nil)
	}
	if r.ShowsOutput && p.want(structured) == nil && string(p.want(isError)) != "true" {
		p.demandStructured(r.Server)
	}
}

// Failure returns the result of a call that failed on its way.
func Failure(text string) json.RawMessage {
	return append(appendTextBlock([]byte(`{"content":[`), text), `],"isError":true}`...)
}
