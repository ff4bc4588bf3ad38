// Package observe knows what is written down of what happens: one audit line a call,
// and metrics.
package observe

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"
)

// An Observer writes things down. Its methods may be called from any goroutine.
type Observer struct {
	// set by New, never changed
	log      zerolog.Logger
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	bytes    *prometheus.CounterVec
	lists    *prometheus.CounterVec

	bound atomic.Pointer[map[labels]*series] // replaced whole by bind, never edited
	mu    sync.Mutex                         // one bind at a time
}

// Build says what is running.
type Build struct{ Version, Commit, Go string }

// New returns an Observer with metrics of its own that writes audit lines to log.
func New(log zerolog.Logger, b Build) *Observer {
	o := &Observer{
		log:      log,
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mainstem_calls_total", Help: "Tool calls of clients by how they ended.",
		}, []string{"server", "era", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mainstem_call_duration_seconds", Help: "From the arrival of a call to its answer.",
			Buckets: []float64{.002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"server"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mainstem_call_bytes_total", Help: "Bytes of arguments (in) and results (out).",
		}, []string{"server", "direction"}),
		lists: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mainstem_list_refreshes_total", Help: "Reads of a server's whole list.",
		}, []string{"server", "outcome"}),
	}
	o.bound.Store(&map[labels]*series{})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mainstem_build_info", Help: "Always 1.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "go": b.Go},
	})
	build.Set(1)
	o.registry.MustRegister(o.calls, o.seconds, o.bytes, o.lists, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return o
}

// An Outcome says how a call ended. It is a label, so there are these and no others.
type Outcome string

// Outcomes of a call.
const (
	OK             Outcome = "ok"
	ToolFailed     Outcome = "tool_failed"     // a result with isError from the server
	ProtocolError  Outcome = "protocol_error"  // a JSON-RPC error from the server
	UnknownTool    Outcome = "unknown_tool"    // nothing was sent
	Refused        Outcome = "refused"         // not permitted, or a limit; nothing was sent
	Unreachable    Outcome = "unreachable"     //
	Timeout        Outcome = "timeout"         //
	Auth           Outcome = "auth"            // a sign-in is needed
	TooLarge       Outcome = "too_large"       //
	BadMessage     Outcome = "bad_message"     // the server's answer is none
	UnknownOutcome Outcome = "unknown_outcome" // it may have run
	Cancelled      Outcome = "cancelled"       // by the client
	Other          Outcome = "other"           //
)

func (o Outcome) known() bool {
	switch o {
	case OK, ToolFailed, ProtocolError, UnknownTool, Refused, Unreachable, Timeout,
		Auth, TooLarge, BadMessage, UnknownOutcome, Cancelled, Other:
		return true
	}
	return false
}

// A Call is what is kept of one tools/call. It has no room for arguments and results.
type Call struct {
	Caller   string // "" is anonymous
	Server   string // as configured; "" if the tool is unknown
	Tool     string // raw name, or what was asked for if the tool is unknown
	Era      string // the client's: legacy or modern; "" for the API
	Outcome  Outcome
	Duration time.Duration
	BytesIn  int // of the arguments
	BytesOut int // of the result
}

// maxText bounds what a client can have us write of its own words.
const maxText = 256

// Call writes one audit line and counts. It allocates nothing for labels it has seen.
func (o *Observer) Call(c Call) {
	if !c.Outcome.known() {
		c.Outcome = Other
	}
	s := o.series(labels{c.Server, c.Era, c.Outcome})
	s.calls.Inc()
	s.seconds.Observe(c.Duration.Seconds())
	s.in.Add(float64(c.BytesIn))
	s.out.Add(float64(c.BytesOut))

	if len(c.Tool) > maxText {
		c.Tool = c.Tool[:maxText]
	}
	o.log.Info().
		Str("caller", c.Caller).Str("upstream", c.Server).Str("tool", c.Tool).
		Str("era", c.Era).Str("outcome", string(c.Outcome)).
		Dur("dur", c.Duration).Int("in", c.BytesIn).Int("out", c.BytesOut).
		Msg("call")
}

// List counts one read of a server's list.
func (o *Observer) List(server string, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	o.lists.WithLabelValues(server, outcome).Inc()
}

// labels are what calls are told apart by. Server names come from the configuration,
// so there are few.
type labels struct {
	server, era string
	outcome     Outcome
}

// series are the metrics of calls with the same labels, looked up once: by label
// values that costs more than everything else here.
type series struct {
	calls, in, out prometheus.Counter
	seconds        prometheus.Observer
}

func (o *Observer) series(l labels) *series {
	if s := (*o.bound.Load())[l]; s != nil {
		return s
	}
	return o.bind(l)
}

func (o *Observer) bind(l labels) *series {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := (*o.bound.Load())[l]; s != nil {
		return s
	}
	s := &series{
		calls:   o.calls.WithLabelValues(l.server, l.era, string(l.outcome)),
		in:      o.bytes.WithLabelValues(l.server, "in"),
		out:     o.bytes.WithLabelValues(l.server, "out"),
		seconds: o.seconds.WithLabelValues(l.server),
	}
	next := maps.Clone(*o.bound.Load())
	next[l] = s
	o.bound.Store(&next)
	return s
}
