// Package naming knows which public name each tool of each server bears.
package naming

// The values of Options.Mode.
const (
	Always     = "always"      // every name begins with its server's prefix
	OnConflict = "on_conflict" // only names that two servers share do
	Never      = "never"       // no name does
)

// The values of Options.Charset.
const (
	Model   = "model"   // A-Z a-z 0-9 _ -: what the APIs of models take
	MCP     = "mcp"     // also the dot
	OpenKBS = "openkbs" // a-z 0-9 _, everything lower-cased
)

// The bounds of Options.MaxLength.
const (
	MinMaxLength = 24
	MaxMaxLength = 128
)

// Options say how names are made.
type Options struct {
	Mode      string   // Always, OnConflict or Never
	MaxLength int      // of a public name, in bytes
	Charset   string   // Model, MCP or OpenKBS
	Reserved  []string // names that no tool may bear
}

// Defaults returns the options of a configuration that sets none.
func Defaults() Options {
	return Options{Mode: Always, MaxLength: 48, Charset: Model}
}

// A Ref says where a call goes: a server and the name that this server lists.
type Ref struct {
	Server, Raw string
}
