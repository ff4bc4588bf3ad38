// Package streamable speaks Streamable HTTP with clients, with sessions up to
// 2025-11-25 and without in 2026-07-28, on the same URL.
package streamable

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/access"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// A Server answers the messages that a Handler has checked.
type Server interface {
	Serve(ctx context.Context, r proxy.Request, s proxy.Stream)
	Endpoint(server string) bool
}

// Options of a Handler.
type Options struct {
	MaxRequestBytes int64 // of a body; 0: 4 MiB
}

// A Handler serves the MCP endpoints. Its methods may be called from any goroutine.
type Handler struct {
	// set by New, never changed
	server     Server
	table      *session.Table
	maxRequest int64
	all        http.Handler // /mcp

	once     sync.Once
	draining chan struct{} // closed by Drain
}

// New returns a Handler whose sessions are in table.
func New(server Server, table *session.Table, o Options) *Handler {
	if o.MaxRequestBytes <= 0 {
		o.MaxRequestBytes = 4 << 20
	}
	h := &Handler{server: server, table: table, maxRequest: o.MaxRequestBytes, draining: make(chan struct{})}
	h.all = endpoint{h, ""}
	return h
}

// Endpoint returns what serves /mcp, if server is "", or /servers/{server}/mcp; false
// if there is no such endpoint.
func (h *Handler) Endpoint(server string) (http.Handler, bool) {
	if server == "" {
		return h.all, true
	}
	if !h.server.Endpoint(server) {
		return nil, false
	}
	return endpoint{h, server}, true
}

// Drain ends the streams that belong to no call, and lets no new one begin. Calls go
// on.
func (h *Handler) Drain() { h.once.Do(func() { close(h.draining) }) }

// Close ends all sessions, and with them calls that still run.
func (h *Handler) Close() {
	h.Drain()
	h.table.Close()
}

// An endpoint is one URL.
type endpoint struct {
	*Handler
	name string
}

// caller is who sent a request. Without client keys there is one anonymous caller.
func caller(*http.Request) access.Caller { return access.Caller{} }

const (
	allMethods    = "GET, POST, DELETE"
	modernMethods = "POST"
)

func (e endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		e.post(w, r)
	case http.MethodGet:
		e.get(w, r)
	case http.MethodDelete:
		e.delete(w, r)
	default:
		notAllowed(w, allMethods)
	}
}

// get opens a stream for what belongs to no call, or goes on with one that broke
// (2025-11-25, basic/transports).
func (e endpoint) get(w http.ResponseWriter, r *http.Request) {
	if !sessionMethod(w, r) {
		return
	}
	if !accepted(r.Header["Accept"]).stream {
		refuse(w, http.StatusNotAcceptable, nil, invalid("the answer to GET is text/event-stream, which Accept does not name"))
		return
	}
	sess, ok := e.session(w, r, nil)
	if !ok {
		return
	}
	defer sess.Release()
	reader, err := listen(sess, r.Header.Get("Last-Event-Id"))
	switch {
	case errors.Is(err, session.ErrHeard):
		// Some clients come back for every stream that had event ids. This answer, unlike
		// an empty stream, keeps them from trying again.
		notAllowed(w, "POST, DELETE")
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, nil, invalid("Last-Event-ID names no event of this session that is still kept"))
		return
	}
	defer reader.Close()
	stop := e.draining
	if !reader.Listening() {
		stop = nil
	}
	copyEvents(w, r, reader, stop)
}

func listen(sess *session.Session, lastEventID string) (*session.Reader, error) {
	if lastEventID == "" {
		return sess.Listen(), nil
	}
	return sess.Resume(lastEventID)
}

// delete ends a session (2025-11-25, basic/transports, session management).
func (e endpoint) delete(w http.ResponseWriter, r *http.Request) {
	if !sessionMethod(w, r) {
		return
	}
	sess, ok := e.session(w, r, nil)
	if !ok {
		return
	}
	sess.Release()
	e.table.Delete(sess.ID())
	w.WriteHeader(http.StatusNoContent)
}

// sessionMethod answers a GET or DELETE of a version that has none, or that we do not
// know; it reports whether to go on.
func sessionMethod(w http.ResponseWriter, r *http.Request) bool {
	version := r.Header.Get(protocol.HeaderVersion)
	era, known := protocol.EraOf(version)
	switch {
	case era == protocol.Modern:
		notAllowed(w, modernMethods)
	case version != "" && !known:
		refuse(w, http.StatusBadRequest, nil, invalid("unsupported protocol version in "+protocol.HeaderVersion))
	default:
		return true
	}
	return false
}

// session finds and holds the session that a request names, or answers that there is
// none: 400 without an id, 404 for one that is unknown here.
func (e endpoint) session(w http.ResponseWriter, r *http.Request, id []byte) (*session.Session, bool) {
	name := r.Header[protocol.HeaderSession]
	if len(name) == 0 || name[0] == "" {
		refuse(w, http.StatusBadRequest, id, invalid("no "+protocol.HeaderSession+" header, and neither initialize nor a request of 2026-07-28"))
		return nil, false
	}
	sess, ok := e.table.Find(name[0], caller(r), e.name)
	if !ok {
		refuse(w, http.StatusNotFound, id, invalid("unknown session; it may have ended"))
	}
	return sess, ok
}
