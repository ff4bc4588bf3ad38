package admin

import (
	"bytes"
	"encoding/json"
	"time"
)

// A Server is one configured server, as the API and --json show it.
type Server struct {
	Name            string    `json:"name"`
	Description     string    `json:"description"`
	Status          string    `json:"status"`
	Error           string    `json:"error,omitempty"`
	Transport       string    `json:"transport"`
	Era             string    `json:"era,omitempty"`
	ProtocolVersion string    `json:"protocol_version,omitempty"`
	Tools           int       `json:"tools"`  // enabled ones
	Tokens          int       `json:"tokens"` // of the enabled ones
	RefreshedAt     time.Time `json:"refreshed_at,omitzero"`
	NextTry         time.Time `json:"next_try,omitzero"`
	Warnings        []Warning `json:"warnings"`
}

// A Warning is something about a server that a person should look at.
type Warning struct {
	Tool    string `json:"tool,omitempty"`
	Message string `json:"message"`
}

// Servers are all configured servers, in configuration order.
type Servers struct {
	Servers []Server `json:"servers"`
}

// A Tool is one tool of a server. A filtered one has no public name and costs nothing.
type Tool struct {
	Name         string          `json:"name"` // raw
	PublicName   string          `json:"public_name,omitempty"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"` // what clients get
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	Tokens       int             `json:"tokens"`
	Enabled      bool            `json:"enabled"`
}

// Tools are the tools of one server, by raw name.
type Tools struct {
	Tools []Tool `json:"tools"`
}

// Detail is a server with its tools, which stand in the place of their number.
type Detail struct {
	Server
	Tools []Tool `json:"tools"`
}

// A Check is the outcome of one live connection.
type Check struct {
	Server          string          `json:"server"`
	OK              bool            `json:"ok"`
	ProtocolVersion string          `json:"protocol_version"`
	ServerInfo      json.RawMessage `json:"server_info"`
	ToolCount       int             `json:"tool_count"`
	ToolNames       []string        `json:"tool_names"` // raw
	DurationMS      int64           `json:"duration_ms"`
	Error           string          `json:"error,omitempty"`
	ErrorKind       Kind            `json:"error_kind,omitempty"`
}

// Checks are the outcomes of several.
type Checks struct {
	Checks []Check `json:"checks"`
}

// A Listed is one tool of the catalog in the form json: what a model has to know to
// call it, and where the call goes.
type Listed struct {
	Name        string          `json:"name"` // public
	Server      string          `json:"server"`
	RawName     string          `json:"raw_name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// Catalog is the catalog in the form json.
type Catalog struct {
	Tools []Listed `json:"tools"`
}

// A Kind tells failures apart.
type Kind string

// The kinds of failure.
const (
	Usage       Kind = "usage"
	Config      Kind = "config"
	Unknown     Kind = "unknown" // no such server or tool
	Unreachable Kind = "unreachable"
	Timeout     Kind = "timeout"
	Auth        Kind = "auth"
	ToolFailed  Kind = "tool"
	Other       Kind = "other"
)

// An Error is why something could not be done, as the API and --json show it.
type Error struct {
	Kind    Kind            `json:"kind"`
	Message string          `json:"message"`
	Server  string          `json:"server,omitempty"`
	Tool    string          `json:"tool,omitempty"`   // of Unknown: missing if it is the server that is unknown
	Code    *int            `json:"code,omitempty"`   // of the server's JSON-RPC error
	Data    json.RawMessage `json:"data,omitempty"`   // likewise
	Result  json.RawMessage `json:"result,omitempty"` // of a tool that failed

	Cause error `json:"-"` // for the log; nil if the message says it all
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Failure is the document that holds an Error.
type Failure struct {
	Error *Error `json:"error"`
}

// Encode returns a shape as JSON, indented, with nothing escaped that JSON does not
// demand. What is raw in it keeps its digits and its order.
func Encode(shape any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(shape); err != nil {
		// Raw members passed jsonrpc.Check, and nothing else in a shape can fail.
		return Encode(Failure{&Error{Kind: Other, Message: err.Error()}})
	}
	return out.Bytes()
}
