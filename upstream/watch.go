package upstream

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// A watch ends a call when the server says nothing for too long, or when the call as a
// whole takes too long. It stands between the transport and the call's sink, since
// each word of the server starts the wait anew.
type watch struct {
	ctx    context.Context // of the call: ends with what it was made from, or with a limit
	cancel context.CancelCauseFunc
	sink   jsonrpc.Sink
	quiet  time.Duration

	mu    sync.Mutex // guards what follows
	timer *time.Timer
	end   time.Time // when the call has to be over
	over  bool
}

func newWatch(ctx context.Context, sink jsonrpc.Sink, quiet, whole time.Duration) *watch {
	w := &watch{sink: sink, quiet: quiet, end: time.Now().Add(whole)}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(min(quiet, whole), w.expire)
	return w
}

func (w *watch) expire() {
	w.mu.Lock()
	late := time.Now().After(w.end.Add(-time.Millisecond))
	w.mu.Unlock()
	if late {
		w.cancel(errMaxCall)
		return
	}
	w.cancel(errTimeout)
}

// restart begins the wait anew.
func (w *watch) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.timer.Reset(min(w.quiet, time.Until(w.end)))
	}
}

func (w *watch) stop() {
	w.mu.Lock()
	w.over = true
	w.timer.Stop()
	w.mu.Unlock()
	w.cancel(nil)
}

// Notify passes a notification on.
func (w *watch) Notify(method string, params json.RawMessage) {
	w.restart()
	w.sink.Notify(method, params)
}

// Ask passes a question on. While a person thinks, the server is not to blame.
func (w *watch) Ask(ctx context.Context, method string, params json.RawMessage) (jsonrpc.Reply, error) {
	w.mu.Lock()
	w.timer.Stop()
	w.mu.Unlock()
	defer w.restart()
	return w.sink.Ask(ctx, method, params)
}
