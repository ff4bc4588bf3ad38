package run

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// A log collects output and wakes those who wait for a line.
type log struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newLog() *log { return &log{changed: make(chan struct{})} }

// Write takes what a process wrote.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	close(l.changed)
	l.changed = make(chan struct{})
	return len(b), nil
}

// String returns all that was written.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *log) wait(texts []string, d time.Duration) (string, bool) {
	deadline := time.After(d)
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		for line := range strings.Lines(l.String()) {
			if holds(line, texts) {
				return line, true
			}
		}
		select {
		case <-changed:
		case <-deadline:
			return "", false
		}
	}
}

func holds(line string, texts []string) bool {
	for _, text := range texts {
		if !strings.Contains(line, text) {
			return false
		}
	}
	return true
}
