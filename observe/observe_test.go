package observe_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/observe"
)

func scrape(t *testing.T, o *observe.Observer, now observe.Snapshot) string {
	t.Helper()
	w := httptest.NewRecorder()
	o.Handler(func() observe.Snapshot { return now }).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestCallIsOneAuditLine(t *testing.T) {
	var out bytes.Buffer
	o := observe.New(zerolog.New(&out), observe.Build{})
	o.Call(observe.Call{
		Caller: "ci", Server: "github", Tool: "search", Era: "modern", Outcome: observe.ToolFailed,
		Duration: 1500 * time.Millisecond, BytesIn: 12, BytesOut: 3400,
	})
	want := `{"level":"info","caller":"ci","upstream":"github","tool":"search","era":"modern","outcome":"tool_failed","dur":1500,"in":12,"out":3400,"message":"call"}` + "\n"
	if out.String() != want {
		t.Errorf("\n got %s\nwant %s", out.String(), want)
	}
}

// What a client asks for goes into the line even when no such tool exists.
func TestStrangeToolName(t *testing.T) {
	var out bytes.Buffer
	o := observe.New(zerolog.New(&out), observe.Build{})
	o.Call(observe.Call{Tool: strings.Repeat("x\n\"\xff", 10_000), Outcome: observe.UnknownTool})
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || bytes.Count(out.Bytes(), []byte("\n")) != 1 || out.Len() > 4096 {
		t.Errorf("%d bytes: %v: %.300s", out.Len(), err, out.Bytes())
	}
}

func TestMetrics(t *testing.T) {
	o := observe.New(zerolog.Nop(), observe.Build{Version: "1.2.3", Commit: "abc", Go: "go1"})
	for range 3 {
		o.Call(observe.Call{Server: "a", Era: "legacy", Outcome: observe.OK, Duration: time.Second, BytesIn: 2, BytesOut: 5})
	}
	o.Call(observe.Call{Server: "a", Era: "legacy", Outcome: "made up"})
	o.List("a", nil)
	o.List("a", errors.New("down"))
	text := scrape(t, o, observe.Snapshot{Sessions: 4, Upstreams: []observe.Upstream{{Server: "a", State: "healthy", Tools: 7}}})
	for _, want := range []string{
		`mainstem_build_info{commit="abc",go="go1",version="1.2.3"} 1`,
		`mainstem_calls_total{era="legacy",outcome="ok",server="a"} 3`,
		`mainstem_calls_total{era="legacy",outcome="other",server="a"} 1`,
		`mainstem_call_duration_seconds_sum{server="a"} 3`,
		`mainstem_call_bytes_total{direction="in",server="a"} 6`,
		`mainstem_call_bytes_total{direction="out",server="a"} 15`,
		`mainstem_list_refreshes_total{outcome="failed",server="a"} 1`,
		`mainstem_list_refreshes_total{outcome="ok",server="a"} 1`,
		`mainstem_sessions 4`,
		`mainstem_upstream_state{server="a",state="healthy"} 1`,
		`mainstem_upstream_tools{server="a"} 7`,
		`go_goroutines`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	o := observe.New(zerolog.Nop(), observe.Build{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				o.Call(observe.Call{Server: string(rune('a' + i%20)), Outcome: observe.OK})
			}
		})
	}
	wg.Wait()
	if text := scrape(t, o, observe.Snapshot{}); strings.Count(text, `outcome="ok"`) != 20 || !strings.Contains(text, `server="t"} 80`) {
		t.Errorf("%s", text)
	}
}

func TestCallAllocatesNothing(t *testing.T) {
	o := observe.New(zerolog.New(io.Discard).With().Timestamp().Logger(), observe.Build{})
	c := observe.Call{Server: "a", Tool: "t", Era: "legacy", Outcome: observe.OK, Duration: time.Millisecond}
	o.Call(c)
	if n := testing.AllocsPerRun(100, func() { o.Call(c) }); n > 0 {
		t.Errorf("%v allocations a call", n)
	}
}

func BenchmarkCall(b *testing.B) {
	o := observe.New(zerolog.New(io.Discard).With().Timestamp().Logger(), observe.Build{})
	c := observe.Call{Server: "a", Tool: "t", Era: "legacy", Outcome: observe.OK, Duration: time.Millisecond, BytesIn: 100, BytesOut: 256}
	b.ReportAllocs()
	for b.Loop() {
		o.Call(c)
	}
}
