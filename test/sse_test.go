package test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

func TestC94EndpointIsResolved(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{"/messages?sid=%s": "/messages?sid=", "messages?sid=%s": "/old/messages?sid="} {
		s := fake.SSE(t, endpoint, fake.Options{Tools: fake.Tools("a")})
		m := run.Start(t, run.Of(run.HTTP("up", s, fields{"transport": "sse"})))
		if got := legacy(t, m).Tool("up__a", `{"q":1}`).Text(); got != `{"q":1}` {
			t.Errorf("%s: got %q", endpoint, got)
		}
		for _, r := range s.Seen() {
			if r.HTTP == http.MethodPost && !strings.HasPrefix(r.URI, want) {
				t.Errorf("%s: POST %s", endpoint, r.URI)
			}
		}
	}
}

func TestC97FallbackToSSE(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest} {
		refuse := func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if r.Method != http.MethodPost || r.URL.Path != "/old/sse" {
				return false
			}
			http.Error(w, "no", status)
			return true
		}
		_, m := func() (*fake.Server, *run.Mainstem) {
			s := fake.SSE(t, "/messages?sid=%s", fake.Options{Tools: fake.Tools("a"), Intercept: refuse})
			return s, run.Start(t, run.Of(run.HTTP("up", s)))
		}()
		if got := legacy(t, m).Tool("up__a", `{"q":1}`).Text(); got != `{"q":1}` {
			t.Errorf("%d: got %q", status, got)
		}
		if got := m.Status("up").Transport; got != "sse" {
			t.Errorf("%d: transport = %q", status, got)
		}
	}
}

// TestForeignEndpoint has a server whose messages are to go to another origin.
func TestForeignEndpoint(t *testing.T) {
	t.Parallel()
	other := fake.HTTP(t, fake.Options{Tools: fake.Tools("a"), Stateless: true})
	s := fake.SSE(t, "http://"+other.Host()+"/mcp?sid=%s", fake.Options{})
	m := run.Start(t, run.Of(run.HTTP("up", s, fields{"transport": "sse", "headers": fields{"X-Key": "k"}})))
	m.WaitStatus("up", "failed")
	if seen := other.Seen(); len(seen) > 0 {
		t.Errorf("the other origin received %s %s", seen[0].HTTP, seen[0].Method)
	}
}

// TestSSEStreamBreaks has the stream of a session end; the next call opens another one.
func TestSSEStreamBreaks(t *testing.T) {
	t.Parallel()
	s := fake.SSE(t, "/messages?sid=%s", fake.Options{Tools: fake.Tools("a")})
	m := run.Start(t, run.Of(run.HTTP("up", s, fields{"transport": "sse"})))
	c := legacy(t, m)
	c.Tool("up__a", "{}")
	s.Shut()
	s.Reopen(t)
	run.Eventually(t, "the server to be used again", func() bool { return c.Tool("up__a", `{"q":1}`).Text() == `{"q":1}` })
}

// TestEventStreamVectors answers a call with each body, with the id of the call where the vector has its own.
func TestEventStreamVectors(t *testing.T) {
	t.Parallel()
	type stream struct {
		ID        string
		RequestID any `json:"request_id"`
		Stream    string
		Expected  *struct {
			Result fields
			Error  *struct {
				Code    int
				Message string
			}
		}
	}
	all := vectors[stream](t, "behaviour.json", "sse")
	calls := map[string]fake.Handler{}
	for _, v := range all {
		calls[v.ID] = func(c *fake.Call) { c.Write(withID(v.Stream, v.RequestID, string(c.ID))) }
	}
	s, m := behind(t, fake.Options{Tools: fake.Tools(numbered("E", len(all)+1)[1:]...), Calls: calls}, fields{"output": "passthrough"})
	c := legacy(t, m)
	for _, v := range all {
		a := c.Tool("up__"+v.ID, "{}")
		switch {
		case v.Expected == nil:
			failed(t, a.Message, "up")
		case v.Expected.Error != nil:
			if a.Code() != v.Expected.Error.Code || a.ErrorText() != v.Expected.Error.Message {
				t.Errorf("%s: got %s%s", v.ID, a.Result, a.Error)
			}
		default:
			same(t, v.ID, a.Result, `{"ok":1}`)
		}
	}
	if answers := s.Wait(t, "reply", 1); !slices.ContainsFunc(answers, func(r fake.Received) bool { return r.Error != nil }) {
		t.Errorf("the server's own request was answered %s", answers[0].Body)
	}
}

// withID puts the id of a call in place of that of a vector. The other kind of 1 stays what it is: another id.
func withID(stream string, requestID any, id string) string {
	if requestID == "1" {
		stream = strings.ReplaceAll(stream, `"id":1`, `"id":`+quote("no "+id))
		return strings.ReplaceAll(stream, `"id":"1"`, `"id":`+id)
	}
	return strings.ReplaceAll(stream, `"id":1,`, `"id":`+id+`,`)
}
