// Package config knows what a configuration says: it reads files into one valid
// Config, or reports every problem with its line.
package config

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/mainstem-mcp/mainstem/config/document"
	"github.com/mainstem-mcp/mainstem/naming"
)

// A Config is all that the files say, defaults included. It is read-only.
type Config struct {
	Listen         string   // host:port
	AllowedOrigins []string // as browsers spell them
	PublicURL      string   // without a slash at its end; "" if not given
	StateDir       string   // absolute
	InsecureNoAuth bool
	Log            Log
	Servers        []*Server // in configuration order
	Naming         naming.Options
	Limits         Limits
	AllowPrivate   []netip.Prefix // network.allow_private
	Warnings       []Problem      // what does not keep us from running
}

// A Problem is one thing that is wrong with a file, or, if What starts with
// "warning: ", one thing that somebody should look at.
type Problem = document.Problem

// Problems are all that is wrong with a configuration, in the order of files and lines.
type Problems = document.Problems

// Log says what is logged and how.
type Log struct {
	Level  string // trace, debug, info, warn or error
	Format string // auto, console or json
}

// Limits bound what all callers together may use.
type Limits struct {
	MaxRequestBytes int64
	MaxSessions     int
	SessionIdle     time.Duration
	FirstListWait   time.Duration
	MaxCallDuration time.Duration
	MaxProcesses    int
}

// A Transport is the way to a server.
type Transport string

// Transports. Auto is Streamable HTTP with a fall-back to SSE.
const (
	Auto           Transport = "auto"
	Stdio          Transport = "stdio"
	StreamableHTTP Transport = "streamable_http"
	SSE            Transport = "sse"
)

// A Server is one entry of mcpServers.
type Server struct {
	Name        string
	Description string
	Enabled     bool
	Transport   Transport

	// Over HTTP.
	URL      string // exactly what is requested
	ShownURL string // without user info and query: safe to print
	Headers  []Header
	Auth     Auth

	// Over stdio.
	Command    string
	Args       []string
	HasArgs    bool // args was written, be it empty: no shell
	Env        []Var
	InheritEnv []string // beyond the usual ones
	Cwd        string   // absolute, or "" for our own

	ProtocolVersion  string // auto, legacy or 2026-07-28
	Timeout          time.Duration
	MaxResponseBytes int
	CacheTTL         time.Duration
	Session          string // auto, shared or per_client

	EnabledTools  []string // patterns; nil if not given
	DisabledTools []string // patterns; nil if not given
	Schema        string   // flatten or passthrough
	Output        string   // mixed, text or passthrough
	Tools         map[string]Override

	// Failed, if not "", says why this server cannot run although the file is
	// valid, for example "environment variable T is not set".
	Failed string
	// Place is FILE:LINE of the entry.
	Place string
	// Hash changes with what matters to the connection and the list. Of headers,
	// environment and credentials it covers what the file says, not the value of a
	// variable: a renewed token, or one that is missing today, keeps the cached list.
	Hash string
}

// A Var is a variable of a child's environment.
type Var struct {
	Name  string
	Value Secret
}

// A Header is sent with every request; its value is trimmed and printable ASCII.
type Header struct {
	Name  string
	Value Secret
}

// An Override replaces parts of one tool's definition; nil keeps them.
type Override struct {
	Name        *string
	Title       *string
	Description *string
	Meta        json.RawMessage // an object, merged into _meta
}

// Authentication types.
const (
	AuthNone              = "none"
	AuthHeader            = "header"
	AuthOAuth             = "oauth"
	AuthClientCredentials = "client_credentials"
)

// Auth says how a server gets to know us. bearer_token_env_var is AuthHeader too.
type Auth struct {
	Type           string
	Header         string // of AuthHeader
	Scheme         string // of AuthHeader; "" sends the bare value
	Credential     Secret // of AuthHeader: the whole header value, scheme included
	CredentialEnv  string // the variable it came from
	CredentialFile string // or the file
	OAuth          *OAuth // of AuthOAuth and AuthClientCredentials
}

// OAuth holds the settings of both OAuth types.
type OAuth struct {
	Registration            string // auto, client_metadata, dynamic or manual
	ClientID                string
	ClientSecret            Secret // from the variable; a file is read when it is needed
	ClientSecretEnv         string
	ClientSecretFile        string
	ClientMetadataURL       string
	PrivateKeyFile          string // of AuthClientCredentials
	TokenEndpointAuthMethod string // "" for what the server's metadata says
	Scopes                  []string
	AuthorizationParams     []Param
	TokenParams             []Param
	RequireRefreshToken     bool
}

// A Param is an extra parameter of an OAuth request.
type Param struct{ Name, Value string }

func defaults() *Config {
	return &Config{
		Listen: "127.0.0.1:8390",
		Log:    Log{Level: "info", Format: "auto"},
		Naming: naming.Defaults(),
		Limits: Limits{
			MaxRequestBytes: 4 << 20,
			MaxSessions:     10_000,
			SessionIdle:     30 * time.Minute,
			FirstListWait:   3 * time.Second,
			MaxCallDuration: 15 * time.Minute,
			MaxProcesses:    64,
		},
	}
}

func serverDefaults(name string) *Server {
	return &Server{
		Name:             name,
		Enabled:          true,
		Transport:        Auto,
		Auth:             Auth{Type: AuthNone},
		ProtocolVersion:  "auto",
		Timeout:          30 * time.Second,
		MaxResponseBytes: 5 << 20,
		CacheTTL:         time.Hour,
		Session:          "auto",
		Schema:           "flatten",
		Output:           "mixed",
	}
}
