package observe

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A Snapshot is what others know and a scrape asks for.
type Snapshot struct {
	Upstreams []Upstream
	Sessions  int // of clients
}

// An Upstream is the state of one configured server.
type Upstream struct {
	Server, State string
	Tools         int // enabled ones
}

// Handler serves the metrics; now is asked once a scrape.
func (o *Observer) Handler(now func() Snapshot) http.Handler {
	asked := prometheus.NewRegistry()
	asked.MustRegister(&gauges{
		now:      now,
		state:    prometheus.NewDesc("mainstem_upstream_state", "1 for the state that a server is in.", []string{"server", "state"}, nil),
		tools:    prometheus.NewDesc("mainstem_upstream_tools", "Enabled tools of a server.", []string{"server"}, nil),
		sessions: prometheus.NewDesc("mainstem_sessions", "Open sessions of clients.", nil, nil),
	})
	return promhttp.HandlerFor(prometheus.Gatherers{o.registry, asked}, promhttp.HandlerOpts{})
}

// gauges is a collector that asks instead of being told.
type gauges struct {
	now                    func() Snapshot
	state, tools, sessions *prometheus.Desc
}

func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	to <- g.state
	to <- g.tools
	to <- g.sessions
}

func (g *gauges) Collect(to chan<- prometheus.Metric) {
	s := g.now()
	to <- prometheus.MustNewConstMetric(g.sessions, prometheus.GaugeValue, float64(s.Sessions))
	for _, u := range s.Upstreams {
		to <- prometheus.MustNewConstMetric(g.state, prometheus.GaugeValue, 1, u.Server, u.State)
		to <- prometheus.MustNewConstMetric(g.tools, prometheus.GaugeValue, float64(u.Tools), u.Server)
	}
}
