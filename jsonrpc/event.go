package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// An Event is one server-sent event (WHATWG HTML, section 9.2).
type Event struct {
	ID    string        // the last id field, only if HasID
	HasID bool          // the event itself had an id field
	Name  string        // the event field; "" means "message"
	Data  []byte        // valid until the next Next
	Retry time.Duration // -1: no retry field
}

// ErrEventTooLarge is returned for an event beyond the reader's limit. The reader is of
// no use afterwards.
var ErrEventTooLarge = errors.New("event exceeds the limit")

// An EventReader reads an event stream in any legal framing: LF, CRLF or CR line ends,
// a byte-order mark, comments, data over several lines, cut anywhere. It belongs to
// one goroutine.
type EventReader struct {
	r   io.Reader
	max int

	buf     []byte // what was read and not yet taken
	filled  []byte // the memory of buf
	line    []byte // a line's beginning, if it came in pieces
	began   bool   // the first line was seen
	comment bool   // line is a comment, of which nothing is kept
	afterCR bool   // a line feed now belongs to the last line end
	failed  error  // what the stream ended with

	data  []byte
	event Event
	some  bool // the event has any data line
}

// NewEventReader returns a reader of r. The data of an event, and any one line, may
// have max bytes.
func NewEventReader(r io.Reader, max int) *EventReader {
	return &EventReader{r: r, max: max, filled: make([]byte, 4<<10)}
}

// Next returns the next event that has data, an id or a retry time. At the stream's
// end it returns an event that lacks only its blank line, then io.EOF. Comments are
// passed over.
func (r *EventReader) Next() (Event, error) {
	r.data, r.event, r.some = r.data[:0], Event{Retry: -1}, false
	for {
		line, err := r.readLine()
		if err != nil {
			if errors.Is(err, io.EOF) && r.some {
				return r.take(), nil
			}
			return Event{}, err
		}
		if !r.began {
			r.began = true
			line = bytes.TrimPrefix(line, utf8BOM)
		}
		if len(line) > 0 {
			if err := r.field(line); err != nil {
				return Event{}, err
			}
			continue
		}
		if r.some || r.event.HasID || r.event.Retry >= 0 {
			return r.take(), nil
		}
		r.event = Event{Retry: -1}
	}
}

func (r *EventReader) take() Event {
	r.event.Data = r.data
	return r.event
}

func (r *EventReader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if r.some {
			r.data = append(r.data, '\n')
		}
		if len(r.data)+len(value) > r.max {
			return ErrEventTooLarge
		}
		r.data, r.some = append(r.data, value...), true
	case "event":
		r.event.Name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.event.ID, r.event.HasID = string(value), true
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			r.event.Retry = time.Duration(ms) * time.Millisecond
		}
	}
	return nil
}

// readLine returns the next line without its end. A comment comes back as a line that
// means nothing. A last line without an end counts.
func (r *EventReader) readLine() ([]byte, error) {
	r.line, r.comment = r.line[:0], false
	for {
		if len(r.buf) == 0 {
			if err := r.fill(); err != nil {
				if len(r.line) > 0 {
					return r.line, nil
				}
				return nil, err
			}
		}
		if r.afterCR {
			r.afterCR = false
			if r.buf = bytes.TrimPrefix(r.buf, []byte("\n")); len(r.buf) == 0 {
				continue
			}
		}
		end := lineEnd(r.buf)
		piece := r.buf[:max(end, 0)]
		if end < 0 {
			piece = r.buf
		}
		if len(r.line) == 0 && len(piece) > 0 && piece[0] == ':' {
			r.comment = true
		}
		if end < 0 {
			r.buf = nil
			if err := r.keep(piece); err != nil {
				return nil, err
			}
			continue
		}
		r.afterCR = r.buf[end] == '\r'
		r.buf = r.buf[end+1:]
		if len(r.line) == 0 { // the line came in one piece
			if r.comment {
				return commentLine, nil
			}
			return piece, nil
		}
		err := r.keep(piece)
		return r.line, err
	}
}

var commentLine = []byte(":")

// keep adds a piece to the line that it belongs to; of a comment the first byte is
// enough.
func (r *EventReader) keep(piece []byte) error {
	if r.comment {
		r.line = append(r.line[:0], commentLine...)
		return nil
	}
	if len(r.line)+len(piece) > r.max+len("data: ") {
		return ErrEventTooLarge
	}
	r.line = append(r.line, piece...)
	return nil
}

// fill reads more. A reader may return bytes together with an error: the bytes count
// first.
func (r *EventReader) fill() error {
	for idle := 0; r.failed == nil; idle++ {
		if idle == 100 {
			return io.ErrNoProgress
		}
		n, err := r.r.Read(r.filled)
		r.buf, r.failed = r.filled[:n], err
		if n == 0 {
			continue
		}
		if n == len(r.filled) && n < 64<<10 { // a large message comes in fewer pieces
			r.filled = make([]byte, 4*n)
		}
		return nil
	}
	return r.failed
}

func lineEnd(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return bytes.IndexByte(b, '\r')
	}
	if cr := bytes.IndexByte(b[:end], '\r'); cr >= 0 {
		return cr
	}
	return end
}

// AppendEvent appends an event with the given data; id may be "". Line ends in the
// data (of JSON: between members) start a new data line.
func AppendEvent(dst []byte, id string, data []byte) []byte {
	if id != "" {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	dst = append(dst, "event: message\n"...)
	for {
		end := lineEnd(data)
		if end < 0 {
			break
		}
		dst = append(append(append(dst, "data: "...), data[:end]...), '\n')
		data = data[end+1:]
	}
	dst = append(append(dst, "data: "...), data...)
	return append(dst, '\n', '\n')
}
