package fake

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"
)

// SSE starts a server of the older HTTP+SSE transport; its events are at /old/sse. The endpoint event holds the given address:
// an absolute path, a relative one or a whole URL; %s in it becomes the session.
func SSE(t testing.TB, endpoint string, o Options) *Server {
	t.Helper()
	s := newServer(o)
	streams := &sseStreams{byID: map[string]*sseStream{}}
	s.listenOn(t, Listen(t), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.sse(w, r, endpoint, streams)
	}))
	s.URL = "http://" + s.front.addr + "/old/sse"
	return s
}

type sseStreams struct {
	mu   sync.Mutex
	byID map[string]*sseStream
}

// An sseStream carries everything that the server says in one session.
type sseStream struct {
	ctx context.Context
	out *response
}

func (o *sseStream) message(m []byte) { o.out.message(m) }
func (o *sseStream) reply(m []byte)   { o.out.message(m) }
func (o *sseStream) raw(b []byte)     { o.out.raw(b) }
func (o *sseStream) drop()            { runtime.Goexit() }

func (s *Server) sse(w http.ResponseWriter, r *http.Request, endpoint string, streams *sseStreams) {
	got, err := s.receive(r)
	if err != nil {
		return
	}
	s.add(got)
	if s.intercepted(w, r, got.Body) {
		return
	}
	if r.URL.Path == "/old/sse" {
		if r.Method != http.MethodGet {
			http.Error(w, "use GET", http.StatusMethodNotAllowed)
			return
		}
		s.events(w, r, endpoint, streams)
		return
	}
	streams.mu.Lock()
	stream := streams.byID[r.URL.Query().Get("sid")]
	streams.mu.Unlock()
	if stream == nil || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	got.Session = r.URL.Query().Get("sid")
	s.take(stream.ctx, got, stream)
	w.WriteHeader(http.StatusAccepted)
}

func (s *Server) events(w http.ResponseWriter, r *http.Request, endpoint string, streams *sseStreams) {
	id := fmt.Sprintf("sse-%d", s.ids.Add(1))
	stream := &sseStream{ctx: r.Context(), out: &response{framing: s.opt.Framing, r: r, w: w}}
	defer stream.out.end()
	streams.mu.Lock()
	streams.byID[id] = stream
	streams.mu.Unlock()
	remove := s.addFeed(&feed{send: stream.message})
	defer remove()
	stream.raw(fmt.Appendf(nil, "event: endpoint\ndata: "+endpoint+"\n\n", id))
	<-r.Context().Done()
}

// take handles a message whose answer goes another way; it does not wait for it.
func (s *Server) take(ctx context.Context, got Received, out output) {
	switch {
	case got.Method == "reply":
		s.answered(got)
	case got.ID == nil:
		s.noted(got)
	default:
		c := s.newCall(ctx, got, out)
		c.Modern = s.opt.Modern && c.Param("_meta", "io.modelcontextprotocol/protocolVersion") != nil
		go func() {
			defer c.cancel()
			s.serve(c)
		}()
	}
}
