// Package client speaks raw MCP, over Streamable HTTP in every version and over stdio, and shows all that comes back.
package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// Modern is the version of the protocol that has no sessions.
const Modern = "2026-07-28"

// Latest is the newest version with a handshake.
const Latest = "2025-11-25"

// Versions lists all versions, oldest first.
func Versions() []string {
	return []string{"2024-11-05", "2025-03-26", "2025-06-18", Latest, Modern}
}

// A Message is one JSON-RPC message as it came.
type Message struct {
	Raw    json.RawMessage `json:"-"`
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// Parse reads a message; it fails the test if it is none.
func Parse(t testing.TB, raw []byte) Message {
	t.Helper()
	m := Message{Raw: bytes.TrimSpace(raw)}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatalf("no JSON-RPC message: %v: %.300s", err, raw)
	}
	return m
}

// IsReply says whether the message answers a request.
func (m Message) IsReply() bool { return m.Method == "" }

// Code returns the code of an error, 0 if there is none.
func (m Message) Code() int {
	var e struct{ Code int }
	_ = json.Unmarshal(m.Error, &e)
	return e.Code
}

// ErrorText returns the message of an error.
func (m Message) ErrorText() string {
	var e struct{ Message string }
	_ = json.Unmarshal(m.Error, &e)
	return e.Message
}

// IsError says whether the result of a tool says that it failed.
func (m Message) IsError() bool {
	var r struct{ IsError bool }
	_ = json.Unmarshal(m.Result, &r)
	return r.IsError
}

// Text returns the texts of a tool's result, one a line.
func (m Message) Text() string {
	var r struct {
		Content []struct{ Type, Text string }
	}
	_ = json.Unmarshal(m.Result, &r)
	var texts []string
	for _, c := range r.Content {
		if c.Type == "text" {
			texts = append(texts, c.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Member returns a member of a raw object, found by a path of names; nil if there is none.
func Member(object json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(object, &members) != nil {
			return nil
		}
		object = members[name]
	}
	return object
}

// Compact returns a value without white space and with no more escapes than JSON demands. Order and digits stay.
func Compact(raw []byte) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out strings.Builder
	if err := compact(&out, d); err != nil {
		return fmt.Sprintf("(no JSON: %v) %s", err, raw)
	}
	return out.String()
}

// compact copies one value.
func compact(out *strings.Builder, d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		out.WriteString(scalar(token))
		return nil
	}
	out.WriteString(delim.String())
	for first := true; d.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		if delim == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			out.WriteString(scalar(name) + ":")
		}
		if err := compact(out, d); err != nil {
			return err
		}
	}
	end, err := d.Token()
	if err == nil {
		out.WriteString(end.(json.Delim).String())
	}
	return err
}

func scalar(token json.Token) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(token)
	text := strings.TrimSuffix(out.String(), "\n")
	return strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(text)
}

// CallParams returns the parameters of tools/call; arguments are raw JSON, none if empty.
func CallParams(tool, arguments string) string {
	var quoted bytes.Buffer
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	_ = e.Encode(tool)
	name := strings.TrimSpace(quoted.String())
	if arguments == "" {
		return `{"name":` + name + `}`
	}
	return `{"name":` + name + `,"arguments":` + arguments + `}`
}

// withMeta adds members to _meta of raw parameters.
func withMeta(params, meta string) string {
	if params == "" {
		params = "{}"
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(params), &members) != nil {
		return params
	}
	if own := bytes.TrimSpace(members["_meta"]); len(own) > 2 {
		meta = meta[:len(meta)-1] + "," + string(own[1:])
	}
	delete(members, "_meta")
	var out strings.Builder
	out.WriteString(`{"_meta":` + meta)
	for _, name := range names(params) {
		if name != "_meta" {
			fmt.Fprintf(&out, `,%q:%s`, name, members[name])
		}
	}
	return out.String() + "}"
}

// names returns the names of an object's members in their order.
func names(object string) []string {
	d := json.NewDecoder(strings.NewReader(object))
	var out []string
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		name, _ := d.Token()
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return out
		}
		out = append(out, fmt.Sprint(name))
	}
	return out
}
