//go:build unix

package process

import (
	"os"
	"slices"
	"strings"
	"sync"
)

const (
	maxLine = 4 << 10 // a line of standard error; the rest of it is dropped
	maxTail = 8 << 10 // what is kept of all lines
)

// stderr reads what a child writes to its standard error, always, so that the child never has to wait for us.
type stderr struct {
	// set by newStderr, never changed
	file  *os.File
	each  func(line string)
	ended chan struct{} // closed when everybody has closed the other end

	mu   sync.Mutex // guards what follows
	tail []string
	size int // bytes in tail
}

func newStderr(file *os.File, each func(line string)) *stderr {
	return &stderr{file: file, each: each, ended: make(chan struct{})}
}

// run reads until the end.
func (s *stderr) run() {
	defer close(s.ended)
	defer s.file.Close()
	lines := lineCutter{emit: s.add}
	buf := make([]byte, 8<<10)
	for {
		n, err := s.file.Read(buf)
		lines.write(buf[:n])
		if err != nil {
			lines.end()
			return
		}
	}
}

// close makes run end even if somebody still holds the other end of the pipe.
func (s *stderr) close() {
	s.file.Close()
	<-s.ended
}

// add takes one line.
func (s *stderr) add(line string) {
	s.mu.Lock()
	s.tail, s.size = append(s.tail, line), s.size+len(line)+1
	drop := 0
	for s.size > maxTail {
		s.size -= len(s.tail[drop]) + 1
		drop++
	}
	s.tail = slices.Delete(s.tail, 0, drop)
	s.mu.Unlock()
	if s.each != nil {
		s.each(line)
	}
}

func (s *stderr) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.tail, "\n")
}

// A lineCutter makes lines of pieces: at most maxLine bytes each, valid UTF-8, empty ones left out. What a line has beyond
// that is dropped; its head does not wait for the end, which may never come.
type lineCutter struct {
	emit func(line string)
	line []byte
	skip bool // the head of this line has been emitted
}

func (c *lineCutter) write(p []byte) {
	for len(p) > 0 {
		piece, rest, ended := p, []byte(nil), false
		if i := slices.Index(p, '\n'); i >= 0 {
			piece, rest, ended = p[:i], p[i+1:], true
		}
		if !c.skip {
			c.line = append(c.line, piece[:min(len(piece), maxLine-len(c.line))]...)
			if len(c.line) == maxLine {
				c.flush()
				c.skip = true
			}
		}
		if ended {
			c.end()
		}
		p = rest
	}
}

// end is the end of a line.
func (c *lineCutter) end() {
	if !c.skip {
		c.flush()
	}
	c.skip = false
}

func (c *lineCutter) flush() {
	if line := strings.TrimRight(strings.ToValidUTF8(string(c.line), "\uFFFD"), " \t\r"); line != "" {
		c.emit(line)
	}
	c.line = c.line[:0]
}
