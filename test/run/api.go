package run

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Get reads one of the other routes.
func (m *Mainstem) Get(path string) (int, []byte) {
	m.t.Helper()
	return m.do(http.MethodGet, path, "")
}

// Post writes to one of the other routes.
func (m *Mainstem) Post(path, body string) (int, []byte) {
	m.t.Helper()
	return m.do(http.MethodPost, path, body)
}

func (m *Mainstem) do(method, path, body string) (int, []byte) {
	m.t.Helper()
	r, err := http.NewRequest(method, m.URL+path, strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		m.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer w.Body.Close()
	out, err := io.ReadAll(w.Body)
	if err != nil {
		m.t.Fatalf("%s %s: %v", method, path, err)
	}
	return w.StatusCode, out
}

// A Status is what the API says of a server.
type Status struct {
	Name            string
	Status          string
	Error           string
	Transport       string
	Era             string
	ProtocolVersion string `json:"protocol_version"`
	Tools           int
	Tokens          int
	NextTry         string `json:"next_try"`
	Warnings        []struct{ Tool, Message string }
}

// Status asks for the state of a server.
func (m *Mainstem) Status(server string) Status {
	m.t.Helper()
	code, body := m.Get("/api/v1/servers/" + server)
	var s Status
	if err := json.Unmarshal(body, &s); err != nil || code != http.StatusOK {
		m.t.Fatalf("status of %s: %d %v: %s", server, code, err, body)
	}
	return s
}

// WaitStatus waits until a server has one of the given states.
func (m *Mainstem) WaitStatus(server string, want ...string) Status {
	m.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		got := m.Status(server)
		if slices.Contains(want, got.Status) {
			return got
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("status of %s is %+v, want %v", server, got, want)
		}
	}
}
