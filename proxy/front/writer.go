package front

import (
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// patient gives the client a time in which to take each piece that is written, so that
// one which stopped reading cannot hold us. The MCP endpoints do that themselves.
type patient struct{ http.ResponseWriter }

const writeTime = 30 * time.Second

func (w patient) Write(b []byte) (int, error) {
	// A writer without deadlines is one of a test.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTime))
	return w.ResponseWriter.Write(b)
}

func (w patient) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// logged writes a line for every request. It costs an allocation, so it is there only
// when somebody wants to read it.
func logged(log zerolog.Logger, serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		noting := &noting{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			log.Debug().Str("method", r.Method).Str("path", r.URL.Path).Int("status", noting.status).Dur("dur", time.Since(begun)).Msg("request")
		}()
		serve(noting, r)
	})
}

// noting notes the status of an answer.
type noting struct {
	http.ResponseWriter
	status int
}

func (w *noting) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *noting) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// guests are the requests that are being served. A http.Server that is closed does not
// wait for them.
type guests struct {
	mu   sync.Mutex // guards what follows
	n    int
	gone *sync.Cond
}

func newGuests() *guests {
	g := &guests{}
	g.gone = sync.NewCond(&g.mu)
	return g
}

func (g *guests) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.add(1)
		defer g.add(-1)
		h.ServeHTTP(w, r)
	})
}

func (g *guests) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n += n; g.n == 0 {
		g.gone.Broadcast()
	}
}

func (g *guests) wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.n > 0 {
		g.gone.Wait()
	}
}
