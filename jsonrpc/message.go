package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Codes that JSON-RPC 2.0 defines (section 5.1) and that this package itself reports.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeInvalidParams  = -32602
)

// An Error is a JSON-RPC error: what is answered when a message cannot be used.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage // nil: none
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

func syntaxError(what string, at int) *Error {
	return &Error{Code: CodeParse, Message: fmt.Sprintf("parse error: %s at byte %d", what, at)}
}

func invalid(what string) *Error {
	return &Error{Code: CodeInvalidRequest, Message: "invalid request: " + what}
}

// A Message is one JSON-RPC message, split but not decoded. Its members alias the
// bytes it was parsed from.
type Message struct {
	ID     json.RawMessage // nil: none
	Method string
	Params json.RawMessage // nil: none
	Result json.RawMessage
	Error  json.RawMessage

	longest json.RawMessage
}

// IsRequest reports whether the message wants an answer.
func (m Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether the message says something and wants no answer.
func (m Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsReply reports whether the message answers a request.
func (m Message) IsReply() bool { return m.Result != nil || m.Error != nil }

var utf8BOM = []byte("\xef\xbb\xbf")

// IsBatch reports whether b holds a list of messages, which only 2025-03-26 knows.
func IsBatch(b []byte) bool { return first(bytes.TrimPrefix(b, utf8BOM)) == '[' }

// Parse checks b as Check does and splits it. An error is an *Error with CodeParse, or
// with CodeInvalidRequest when b is JSON but no message: then the returned Message
// still has the id if that could be read. A byte-order mark in front is passed over
// (RFC 8259, section 8.1).
func Parse(b []byte) (Message, error) {
	b = bytes.TrimPrefix(b, utf8BOM)
	start := skipSpace(b, 0)
	if start >= len(b) || b[start] != '{' {
		if err := Check(b); err != nil {
			return Message{}, err
		}
		return Message{}, invalid("a message is an object")
	}
	var e envelope
	longest, err := e.read(b, start)
	if err != nil {
		return Message{}, err
	}
	m := Message{Params: e[params], Result: e[result], Error: e[errorObject], longest: longest}
	if IsString(e[id]) || len(e[id]) > 0 && (e[id][0] == '-' || e[id][0] >= '0' && e[id][0] <= '9') {
		m.ID = e[id]
	}
	wrong := e.judge(&m)
	return m, wrong
}

// Where the members of a message stand in an envelope. The twin is any member that is
// spelled like one of the others, or stands there a second time.
const (
	version = iota
	id
	method
	params
	result
	errorObject
	twin
	envelopeSize
)

var envelopeNames = [twin]string{"jsonrpc", "id", "method", "params", "result", "error"}

type envelope [envelopeSize]json.RawMessage

// read proves the whole of b and notes the members of the object that starts there. It
// returns the longest string on the way.
func (e *envelope) read(b []byte, start int) (json.RawMessage, *Error) {
	s := scanner{b: b}
	i, opened, err := s.open(start, true)
	key := skipSpace(b, start+1)
	for opened && err == nil {
		at := i
		if i, err = s.value(at); err != nil {
			return nil, err
		}
		e.note(b[key+1:skipString(b, key)-1], b[at:i:i])
		var more bool
		key = skipSpace(b, i)
		if i, more, err = s.next(key); err != nil || !more {
			break
		}
		key = skipSpace(b, key+1)
	}
	if err == nil && skipSpace(b, i) != len(b) {
		err = syntaxError("text after the message", skipSpace(b, i))
	}
	return b[s.longest.start:s.longest.end], err
}

func (e *envelope) note(key, value []byte) {
	i := envelopeIndex(key)
	if i < 0 {
		for _, name := range envelopeNames {
			if looksLike(key, name) {
				i = envelopeIndex([]byte(Member{Key: key}.Name())) // an escaped spelling
				if i < 0 {
					i = twin
				}
				break
			}
		}
	}
	switch {
	case i < 0:
	case e[i] != nil:
		e[twin] = value
	default:
		e[i] = value
	}
}

func envelopeIndex(key []byte) int {
	switch string(key) {
	case "jsonrpc":
		return version
	case "id":
		return id
	case "method":
		return method
	case "params":
		return params
	case "result":
		return result
	case "error":
		return errorObject
	}
	return -1
}

// judge decides whether what was read is a message, and sets its method.
func (e *envelope) judge(m *Message) error {
	switch {
	case e[twin] != nil:
		return invalid("a member stands there twice, or differs from another only in case")
	case string(e[version]) != `"2.0"`:
		return invalid(`jsonrpc must be "2.0"`)
	case e[method] == nil:
		if (e[result] == nil) == (e[errorObject] == nil) {
			return invalid("neither a method nor one of result and error")
		}
		if m.ID == nil && (e[result] != nil || e[id] != nil && !IsNull(e[id])) {
			return invalid("an answer without an id")
		}
		return nil
	case e[result] != nil || e[errorObject] != nil:
		return invalid("both a method and an answer")
	case e[id] != nil && m.ID == nil:
		return invalid("an id is a string or a number")
	}
	name, ok := Unquote(e[method])
	if !ok || name == "" {
		return invalid("method must be a string")
	}
	m.Method = name
	return nil
}

// AppendReply appends the message that answers a request. id is raw; nil is written as
// null, for a request whose id could not be read.
func AppendReply(dst []byte, id json.RawMessage, r Reply) []byte {
	dst = slices.Grow(dst, len(`{"jsonrpc":"2.0","id":null,"result":}`)+len(id)+len(r.Result)+len(r.Error))
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		id = json.RawMessage("null")
	}
	dst = append(dst, id...)
	if r.Error != nil {
		dst = append(append(dst, `,"error":`...), r.Error...)
	} else {
		dst = append(append(dst, `,"result":`...), r.Result...)
	}
	return append(dst, '}')
}

// AppendNotification appends a notification; params may be nil.
func AppendNotification(dst []byte, method string, params json.RawMessage) []byte {
	dst = AppendQuote(append(dst, `{"jsonrpc":"2.0","method":`...), method)
	if params != nil {
		dst = append(append(dst, `,"params":`...), params...)
	}
	return append(dst, '}')
}
