package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

type negotiation struct {
	ID        string
	Transport string
	Pin       string `json:"protocol_version"`
	Reply     *struct {
		Status  int
		Body    *string
		Result  json.RawMessage
		Error   json.RawMessage
		Timeout bool
		Exit    int
	}
	Expected string
}

// TestNegotiationVectors has a server whose first reply to server/discover is as the vector says, and which is otherwise able to do
// what is expected next, and nothing else.
func TestNegotiationVectors(t *testing.T) {
	t.Parallel()
	for _, v := range vectors[negotiation](t, "behaviour.json", "negotiation") {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			options := fake.Options{
				Tools: fake.Tools("a"), Handlers: map[string]fake.Handler{},
				Modern: v.Expected == "use 2026-07-28", NoHandshake: v.Expected == "use 2026-07-28",
			}
			var s *fake.Server
			var entry run.Server
			if v.Transport == "stdio" {
				options.Handlers["server/discover"] = v.overStdio
				s = fake.Stdio(t, options)
				entry = run.Stdio("up", s, fields{"protocol_version": v.Pin})
			} else {
				s = fake.HTTP(t, options)
				entry = run.HTTP("up", s, fields{"protocol_version": v.Pin})
				s.SetIntercept(v.overHTTP(s))
			}
			m := run.Start(t, run.Of(entry))
			v.check(t, s, m)
		})
	}
}

// overHTTP answers server/discover, the first time only if a modern server may be asked again.
func (v negotiation) overHTTP(s *fake.Server) fake.Interceptor {
	return func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if v.Reply != nil && v.Reply.Status == http.StatusUnauthorized {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		var message struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(body, &message) != nil || message.Method != "server/discover" || v.Reply == nil {
			return false
		}
		if v.Expected == "use 2026-07-28" && len(s.Seen("server/discover")) > 1 {
			return false
		}
		v.write(w, message.ID)
		return true
	}
}

func (v negotiation) write(w http.ResponseWriter, id json.RawMessage) {
	if v.Reply.Body != nil {
		w.WriteHeader(v.Reply.Status)
		_, _ = io.WriteString(w, *v.Reply.Body)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(v.Reply.Status)
	if v.Reply.Error != nil {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":%s}`, id, v.Reply.Error)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, v.Reply.Result)
}

func (v negotiation) overStdio(c *fake.Call) {
	switch {
	case v.Reply.Timeout:
	case v.Reply.Exit != 0:
		c.Process.Exit(v.Reply.Exit)
	default:
		c.Write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`+"\n", c.ID, v.Reply.Error))
	}
}

func (v negotiation) check(t *testing.T, s *fake.Server, m *run.Mainstem) {
	t.Helper()
	switch v.Expected {
	case "fail":
		got := m.WaitStatus("up", "failed")
		if strings.Contains(string(v.Reply.Error), "1999-01-01") && (!strings.Contains(got.Error, "1999-01-01") || !strings.Contains(got.Error, fake.Modern)) {
			t.Errorf("the error names not the versions of both: %s", got.Error)
		}
		if n := len(s.Seen("initialize")); n > 0 {
			t.Errorf("initialize was sent %d times", n)
		}
	case "authorize":
		m.WaitStatus("up", "needs_login")
	case "initialize":
		start := time.Now()
		run.Eventually(t, "the tools", func() bool { return slices.Equal(legacy(t, m).Names(), []string{"up__a"}) })
		quick(t, "the fallback", start, 10*time.Second)
		if got := m.Status("up"); got.Era != "legacy" || got.ProtocolVersion != "2025-11-25" {
			t.Errorf("status = %+v", got)
		}
		v.checkFallback(t, s)
	default:
		m.WaitStatus("up", "healthy") // with no tools where the reply declares none
		if got := m.Status("up"); got.Era != "modern" || got.ProtocolVersion != fake.Modern {
			t.Errorf("status = %+v", got)
		}
		if n := len(s.Seen("initialize")); n > 0 {
			t.Errorf("initialize was sent %d times", n)
		}
	}
}

// checkFallback looks at how the handshake was reached.
func (v negotiation) checkFallback(t *testing.T, s *fake.Server) {
	t.Helper()
	probes, starts := len(s.Seen("server/discover")), 0
	for _, p := range s.Processes() {
		if p.Role == "" {
			starts++
		}
	}
	want := map[string][2]int{"G016": {0, 0}, "G013": {1, 1}, "G014": {1, 1}, "G018": {1, 2}}[v.ID]
	if v.Transport == "http" && v.Reply != nil {
		want = [2]int{1, 0}
	}
	if probes != want[0] || starts != want[1] {
		t.Errorf("%d probes and %d processes, want %v", probes, starts, want)
	}
	if got := string(s.Seen("initialize")[0].Param("protocolVersion")); got != `"2025-11-25"` {
		t.Errorf("initialize asked for %s", got)
	}
}

// TestC100ProbeUpsetsTheServer has what G013 and G018 leave out.
func TestC100ProbeUpsetsTheServer(t *testing.T) {
	t.Parallel()
	flood := func(c *fake.Call) { c.Process.Stderr(strings.Repeat("unknown method\n", 1<<16)) }
	s, m := behindStdio(t, fake.Options{Tools: fake.Tools("a"), Handlers: map[string]fake.Handler{"server/discover": flood}})
	run.Eventually(t, "the tools", func() bool { return slices.Equal(legacy(t, m).Names(), []string{"up__a"}) })
	if n := len(s.Processes()); n != 1 {
		t.Errorf("%d processes", n)
	}
	pinned, m := behindStdio(t, fake.Options{Tools: fake.Tools("a")}, fields{"protocol_version": "legacy"})
	legacy(t, m).Names()
	if n := len(pinned.Seen("server/discover")); n > 0 {
		t.Errorf("a pinned server was probed %d times", n)
	}
}

// TestUnknownVersionUpstream has a server that answers initialize with a version that nobody knows.
func TestUnknownVersionUpstream(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a"), Versions: []string{"2099-01-01"}})
	got := m.WaitStatus("up", "failed")
	if !strings.Contains(got.Error, "2099-01-01") || !strings.Contains(got.Error, "2025-11-25") {
		t.Errorf("status = %+v", got)
	}
}
