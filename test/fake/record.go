package fake

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen.
const patience = 15 * time.Second

// Received is one message, or one HTTP request without a message, that reached the server.
type Received struct {
	At      time.Time
	HTTP    string // method of the HTTP request, empty over stdio
	URI     string // as it stood in the request line
	Header  http.Header
	Host    string
	Body    []byte
	Session string
	Process *Process // who got it over stdio

	ID     json.RawMessage
	Method string // of the message; "GET", "DELETE", "EOF" if there is none, "reply" for an answer to a question
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
}

// parse fills in what the body says; a body that is no message leaves Method empty.
func (r *Received) parse() {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(r.Body, &m) != nil {
		return
	}
	r.ID, r.Method, r.Params, r.Result, r.Error = m.ID, m.Method, m.Params, m.Result, m.Error
	if m.Method == "" && (m.Result != nil || m.Error != nil) {
		r.Method = "reply"
	}
}

// Param returns a member of the parameters, found by a path of names; nil if there is none.
func (r Received) Param(path ...string) json.RawMessage {
	value := r.Params
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil {
			return nil
		}
		value = members[name]
	}
	return value
}

// record keeps what was received and wakes those who wait for more.
type record struct {
	mu      sync.Mutex
	all     []Received
	changed chan struct{}
}

func newRecord() *record { return &record{changed: make(chan struct{})} }

func (r *record) add(m Received) {
	m.At = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, m)
	close(r.changed)
	r.changed = make(chan struct{})
}

// Seen returns all that was received, or only the messages with one of these methods.
func (r *record) Seen(methods ...string) []Received {
	seen, _ := r.seen(methods)
	return seen
}

func (r *record) seen(methods []string) ([]Received, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Received
	for _, m := range r.all {
		if len(methods) == 0 || slices.Contains(methods, m.Method) {
			out = append(out, m)
		}
	}
	return out, r.changed
}

// Calls returns the tools/call messages for a raw tool name.
func (r *record) Calls(tool string) []Received {
	return slices.DeleteFunc(r.Seen("tools/call"), func(m Received) bool {
		var name string
		return json.Unmarshal(m.Param("name"), &name) != nil || name != tool
	})
}

// Wait returns the messages with a method as soon as there are at least n; it fails the test if they do not come.
func (r *record) Wait(t testing.TB, method string, n int) []Received {
	t.Helper()
	deadline := time.After(patience)
	for {
		seen, changed := r.seen([]string{method})
		if len(seen) >= n {
			return seen
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("the server received %d × %s, want %d; it received: %s", len(seen), method, n, r.methods())
		}
	}
}

func (r *record) methods() string {
	var names []string
	for _, m := range r.Seen() {
		names = append(names, m.HTTP+" "+m.Method)
	}
	return strings.Join(names, ", ")
}
