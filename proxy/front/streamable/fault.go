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
	buf := jsonrpc.NewBuffer()
	defer buf.Release()
	buf.B = jsonrpc.AppendReply(buf.B, id, jsonrpc.Reply{Error: protocol.ErrorObject(e.Code, e.Message, e.Data)})
	writeJSON(w, status, buf.B)
}

func notAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
}
