package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// An Event is one event of a stream, or a comment.
type Event struct {
	ID      string
	Name    string
	Data    string
	Comment string
}

// A Pending is an answer that has begun. One goroutine may use it.
type Pending struct {
	ID string // raw, of the request

	t      testing.TB
	cancel context.CancelFunc
	body   io.ReadCloser
	in     *bufio.Reader
	answer Answer
}

// Status returns the status of HTTP.
func (p *Pending) Status() int { return p.answer.Status }

// Header returns the headers of the answer.
func (p *Pending) Header() http.Header { return p.answer.Header }

// Leave breaks the connection.
func (p *Pending) Leave() { p.cancel() }

// Next returns the next message of a stream. The error is io.EOF at its end.
func (p *Pending) Next() (Message, error) {
	p.t.Helper()
	for {
		e, err := p.Event()
		if err != nil {
			return Message{}, err
		}
		if e.Data != "" {
			return Parse(p.t, []byte(e.Data)), nil
		}
	}
}

// Expect returns the next message with a method, skipping others; it fails the test if it does not come.
func (p *Pending) Expect(method string) Message {
	p.t.Helper()
	for {
		m, err := p.Next()
		if err != nil {
			p.t.Fatalf("waiting for %s on a stream: %v", method, err)
		}
		if m.Method == method {
			return m
		}
	}
}

// Event returns the next event or comment of a stream, within the patience of a test.
func (p *Pending) Event() (Event, error) {
	p.t.Helper()
	return p.EventWithin(patience)
}

// EventWithin is Event with another patience; the stream cannot be used after it has run out.
func (p *Pending) EventWithin(d time.Duration) (Event, error) {
	if p.in == nil {
		return Event{}, p.answer.Err
	}
	late := time.AfterFunc(d, p.cancel)
	defer late.Stop()
	e, err := readEvent(p.in)
	if err == nil {
		p.answer.Events = append(p.answer.Events, e)
	}
	return e, err
}

// readEvent reads up to a blank line. A comment is an event of its own.
func readEvent(in *bufio.Reader) (Event, error) {
	var e Event
	var data []string
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && data == nil && e == (Event{}):
			continue
		case line == "":
			e.Data = strings.Join(data, "\n")
			return e, nil
		case name == "":
			return Event{Comment: line}, nil
		case name == "id":
			e.ID = value
		case name == "event":
			e.Name = value
		case name == "data":
			data = append(data, value)
		}
	}
}

// Wait reads the rest of the answer.
func (p *Pending) Wait() Answer {
	p.t.Helper()
	if p.in == nil {
		return p.answer
	}
	defer p.cancel()
	defer p.body.Close()
	if p.answer.Stream() {
		p.drain()
		return p.answer
	}
	late := time.AfterFunc(patience, p.cancel)
	defer late.Stop()
	p.answer.Body, p.answer.Err = io.ReadAll(p.in)
	if json.Valid(p.answer.Body) {
		_ = json.Unmarshal(p.answer.Body, &p.answer.Message)
		p.answer.Raw = p.answer.Body
	}
	return p.answer
}

// drain reads events until the stream ends; the reply should be the last of them.
func (p *Pending) drain() {
	for {
		m, err := p.Next()
		switch {
		case err != nil:
			if !errors.Is(err, io.EOF) {
				p.answer.Err = err
			}
			return
		case m.IsReply() && p.answer.Raw == nil:
			p.answer.Message = m
		default:
			p.answer.Before = append(p.answer.Before, m)
		}
	}
}

// Listen opens the stream for what the server says on its own: GET, or subscriptions/listen in 2026-07-28.
func (c *HTTP) Listen() *Pending {
	c.t.Helper()
	if c.Version == Modern {
		p := c.Start("subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`)
		p.Expect("notifications/subscriptions/acknowledged")
		return p
	}
	p := c.Do(http.MethodGet, nil, c.headers("", ""))
	if p.Status() != http.StatusOK {
		c.t.Fatalf("GET: status %d: %s", p.Status(), p.Wait().Body)
	}
	return p
}

// Close ends the session.
func (c *HTTP) Close() int {
	c.t.Helper()
	return c.Do(http.MethodDelete, nil, c.headers("", "")).Wait().Status
}

func toolsOf(t testing.TB, m Message) []json.RawMessage {
	t.Helper()
	var r struct {
		Tools      []json.RawMessage `json:"tools"`
		NextCursor string            `json:"nextCursor"`
	}
	if err := json.Unmarshal(m.Result, &r); err != nil || r.Tools == nil {
		t.Fatalf("no list of tools: %.300s", m.Raw)
	}
	if r.NextCursor != "" {
		t.Errorf("the list has more than one page")
	}
	return r.Tools
}

func namesOf(tools []json.RawMessage) []string {
	out := []string{}
	for _, tool := range tools {
		var name string
		_ = json.Unmarshal(Member(tool, "name"), &name)
		out = append(out, name)
	}
	return out
}
