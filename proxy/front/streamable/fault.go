package streamable

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
)

func invalid(what string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: protocol.CodeInvalidRequest, Message: "invalid request: " + what}
}

// refuse answers a message that is not served. id is nil if the message has none or it
// could not be read.
func refuse(w http.ResponseWriter, status int, id json.RawMessage, err error) {
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		e = &jsonrpc.Error{Code: protocol.CodeInternal, Message: "internal error"}
	}
	if id == nil {
		id = json.RawMessage("null")
	}
	buf := jsonrpc.NewBuffer()
	defer buf.Release()
	buf.B = appendReply(buf.B, id, jsonrpc.Reply{Error: protocol.ErrorObject(e.Code, e.Message, e.Data)})
	writeJSON(w, status, buf.B)
}

// appendReply appends the message that answers a request.
func appendReply(dst []byte, id json.RawMessage, r jsonrpc.Reply) []byte {
	dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), id...)
	if r.Error != nil {
		dst = append(append(dst, `,"error":`...), r.Error...)
	} else {
		dst = append(append(dst, `,"result":`...), r.Result...)
	}
	return append(dst, '}')
}

func notAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
}
