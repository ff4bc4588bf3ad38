// Package front is the HTTP door of every route: it decides who may knock, and from
// where, and hands each request to the part of ours that serves it.
package front

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// MCP serves the MCP endpoints.
type MCP interface {
	// Endpoint returns what serves /mcp, if server is "", or /servers/{server}/mcp;
	// false if there is no such server.
	Endpoint(server string) (http.Handler, bool)
	// Drain ends what belongs to no call.
	Drain()
	// Close ends everything that still runs.
	Close()
}

// Routes are what stands behind the door. A nil handler is a route that is not there.
type Routes struct {
	MCP     MCP
	Ready   func() bool  // at least one list is served
	Metrics http.Handler // /metrics
	Console http.Handler // everything that is no other route
}

// Options of a Door.
type Options struct {
	AllowedOrigins []string      // beyond loopback
	PublicURL      string        // how clients reach us when we stand behind a proxy; may be ""
	Grace          time.Duration // for calls that run when we stop; 0: 10 s
	Log            zerolog.Logger
}

// A Door serves HTTP on one listener.
type Door struct {
	// set by New, never changed
	routes  Routes
	origins origins
	grace   time.Duration
	log     zerolog.Logger
}

// New returns a Door.
func New(r Routes, o Options) *Door {
	if o.Grace <= 0 {
		o.Grace = 10 * time.Second
	}
	return &Door{routes: r, origins: newOrigins(o.AllowedOrigins, o.PublicURL), grace: o.Grace, log: o.Log}
}

const (
	headerTime  = 10 * time.Second // to send the headers of a request
	requestTime = 2 * time.Minute  // to send a whole request
	idleTime    = 2 * time.Minute  // between requests of a connection
	headerBytes = 64 << 10
)

// Serve serves on ln until ctx ends. Then it stops accepting, lets calls finish for the
// time of grace, and ends what is left; nothing of it runs any more when it returns.
// It closes ln.
func (d *Door) Serve(ctx context.Context, ln net.Listener) error {
	guests := newGuests()
	server := &http.Server{
		Handler:           guests.count(d.Handler(isLoopback(ln.Addr()))),
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       requestTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          log.New(noise{d.log}, "", 0),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ln) }()
	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("serve %s: %w", ln.Addr(), err)
	case <-ctx.Done():
		d.stop(context.WithoutCancel(ctx), server)
		<-failed // http.ErrServerClosed
	}
	d.routes.MCP.Close()
	_ = server.Close() // of what is left nothing is worth reporting
	guests.wait()
	return err
}

// stop ends the server as gently as the grace allows.
func (d *Door) stop(ctx context.Context, server *http.Server) {
	d.routes.MCP.Drain()
	ctx, cancel := context.WithTimeout(ctx, d.grace)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		d.log.Warn().Dur("grace", d.grace).Msg("stopping with calls that have not finished")
	}
}

// Handler returns the door without its listener. loopback says that only this machine
// can reach it.
func (d *Door) Handler(loopback bool) http.Handler {
	serve := func(w http.ResponseWriter, r *http.Request) {
		defer d.recover(w, r)
		d.serve(w, r, loopback)
	}
	if d.log.GetLevel() > zerolog.DebugLevel || zerolog.GlobalLevel() > zerolog.DebugLevel {
		return http.HandlerFunc(serve)
	}
	return logged(d.log, serve)
}

// recover keeps a fault of ours in one request from ending all of them.
func (d *Door) recover(w http.ResponseWriter, r *http.Request) {
	fault := recover()
	if fault == nil {
		return
	}
	if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(fault) // the way to break a connection off
	}
	d.log.Error().Str("path", r.URL.Path).Interface("panic", fault).Bytes("stack", debug.Stack()).Msg("fault in a handler")
	http.Error(w, "internal error", http.StatusInternalServerError)
}

func (d *Door) serve(w http.ResponseWriter, r *http.Request, loopback bool) {
	if loopback && !d.origins.knowsHost(r.Host) {
		refuse(w, r, "this host name is not served here")
		return
	}
	if origin := r.Header["Origin"]; len(origin) > 0 {
		if len(origin) > 1 || !d.origins.allow(origin[0], r.Host) {
			refuse(w, r, "this origin is not allowed")
			return
		}
		if crossOrigin(w, r, origin[0]) {
			return
		}
	}
	if mcp, ok := d.mcp(r.URL.Path); ok {
		if mcp == nil {
			http.NotFound(w, r)
			return
		}
		mcp.ServeHTTP(w, r)
		return
	}
	d.other(patient{w}, r)
}

// refuse answers 403: on the REST routes in the form of their errors (RFC 9457).
func refuse(w http.ResponseWriter, r *http.Request, why string) {
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusForbidden)
	const form = `{"type":"about:blank","title":"Forbidden","status":403,"detail":%[1]q,"error":{"kind":"other","message":%[1]q}}` + "\n"
	_, _ = fmt.Fprintf(w, form, why) // whoever asked has gone
}

// mcp finds what serves an MCP endpoint: nil if there is no such view or server. ok is
// false for a path of another kind.
func (d *Door) mcp(path string) (handler http.Handler, ok bool) {
	if path == "/mcp" {
		handler, _ = d.routes.MCP.Endpoint("")
		return handler, true
	}
	if rest, ok := strings.CutPrefix(path, "/servers/"); ok {
		if server, ok := strings.CutSuffix(rest, "/mcp"); ok && server != "" {
			if handler, found := d.routes.MCP.Endpoint(server); found {
				return handler, true
			}
		}
		return nil, true
	}
	return nil, strings.HasPrefix(path, "/mcp/")
}

// other serves what is no MCP endpoint.
func (d *Door) other(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	var handler http.Handler
	switch r.URL.Path {
	case "/healthz":
		handler = state(true)
	case "/readyz":
		handler = state(d.routes.Ready == nil || d.routes.Ready())
	case "/metrics":
		handler = d.routes.Metrics
	default:
		handler = d.routes.Console
	}
	if handler == nil {
		http.NotFound(w, r)
		return
	}
	handler.ServeHTTP(w, r)
}

// state answers whoever watches over us.
type state bool

func (good state) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("no list is served yet\n")) // whoever asked has gone
		return
	}
	_, _ = w.Write([]byte("ok\n")) // whoever asked has gone
}

// noise takes what net/http has to say about connections.
type noise struct{ log zerolog.Logger }

func (n noise) Write(line []byte) (int, error) {
	n.log.Debug().Str("err", strings.TrimSpace(string(line))).Msg("connection")
	return len(line), nil
}
