package transport

import (
	"context"
	"net/http"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/dial"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/upstream/process"
)

// Options are what the ways to all configured servers share.
type Options struct {
	UserAgent string
	Policy    *dial.Policy    // which addresses may be reached
	Environ   func() []string // our own environment, from which children get a part
	Log       zerolog.Logger
}

// Reach sets up the way to a configured server over HTTP. Nothing is sent yet. A
// configured credential is a header like any other.
func Reach(s *config.Server, o Options) *HTTP {
	header := http.Header{}
	for _, h := range s.Headers {
		header.Set(h.Name, h.Value.Reveal())
	}
	if a := s.Auth; a.Type == config.AuthHeader && !a.Credential.IsZero() {
		header.Set(a.Header, a.Credential.Reveal())
	}
	return NewHTTP(HTTPOptions{
		URL: s.URL, Header: header, MaxMessage: s.MaxResponseBytes, Policy: o.Policy, UserAgent: o.UserAgent, Log: o.Log,
	})
}

// Start starts a configured server's process. What it writes on stderr goes to the
// log. The error is a *NotSent.
func Start(ctx context.Context, s *config.Server, o Options, h jsonrpc.Sink) (*StdioConn, error) {
	var declared []string
	for _, v := range s.Env {
		declared = append(declared, v.Name+"="+v.Value.Reveal())
	}
	secrets := childSecrets(s)
	conn, err := StartStdio(ctx, StdioOptions{
		Command: process.Command{
			Argv:   process.Argv(s.Command, s.Args, s.HasArgs),
			Env:    process.Environment(declared, s.InheritEnv, o.Environ()),
			Dir:    s.Cwd,
			Stderr: func(line string) { o.Log.Info().Str("line", without(secrets, line)).Msg("upstream stderr") },
		},
		Secrets:    secrets,
		MaxMessage: s.MaxResponseBytes,
		Log:        o.Log,
	}, h)
	if err != nil {
		return nil, &NotSent{Err: err}
	}
	return conn, nil
}
