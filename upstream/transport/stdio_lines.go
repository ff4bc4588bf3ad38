package transport

import (
	"bytes"
	"errors"
	"io"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

const (
	readSize = 32 << 10
	keptHead = 4 << 10 // of a line that is too long: here stands the id, if its writer put it first,
	keptTail = 1 << 10 // or here, if last
)

// errLongLine says that a line exceeded the limit. Reading goes on with the next one.
var errLongLine = errors.New("line too long")

// A lineReader takes a stream apart into lines, and holds no more of one than its limit.
type lineReader struct {
	r    io.Reader
	max  int // bytes of a line, its end not counted
	buf  []byte
	rest []byte // what of buf has not been used
	tail []byte // of the last line that was too long
}

func newLineReader(r io.Reader, max int) *lineReader {
	return &lineReader{r: r, max: max, buf: make([]byte, readSize)}
}

// next appends the next line, without its end, to dst. After errLongLine dst has the line's head and l.tail its tail. Any
// other error is that of the stream; dst then has what stood after the last line end.
func (l *lineReader) next(dst *jsonrpc.Buffer) error {
	long := false
	for {
		piece, ended, err := l.piece()
		switch {
		case long:
			l.keepTail(piece)
		case len(dst.B)+len(piece) > l.max+1: // one more for the \r of \r\n
			long = true
			l.tail = l.tail[:0]
			l.keepTail(dst.B)
			l.keepTail(piece)
			dst.B = append(dst.B, piece[:min(len(piece), keptHead)]...)
			dst.B = dst.B[:min(len(dst.B), keptHead)]
		default:
			dst.B = append(dst.B, piece...)
		}
		if ended && !long {
			dst.B = bytes.TrimSuffix(dst.B, []byte{'\r'})
			if long = len(dst.B) > l.max; long {
				l.tail = append(l.tail[:0], dst.B[max(0, len(dst.B)-keptTail):]...)
			}
		}
		switch {
		case err != nil && long:
			dst.B = dst.B[:0] // neither whole nor ended
			return err
		case err != nil:
			return err
		case ended && long:
			return errLongLine
		case ended:
			return nil
		}
	}
}

// piece returns what is there of the current line. It is valid until the next call.
func (l *lineReader) piece() (piece []byte, ended bool, err error) {
	if len(l.rest) == 0 {
		n, err := l.r.Read(l.buf)
		if l.rest = l.buf[:n]; n == 0 {
			return nil, false, err // an error that came with bytes will come again without
		}
	}
	if i := bytes.IndexByte(l.rest, '\n'); i >= 0 {
		piece, l.rest = l.rest[:i], l.rest[i+1:]
		return piece, true, nil
	}
	piece, l.rest = l.rest, nil
	return piece, false, nil
}

func (l *lineReader) keepTail(piece []byte) {
	l.tail = append(l.tail, piece[max(0, len(piece)-keptTail):]...)
	if extra := len(l.tail) - keptTail; extra > 0 {
		l.tail = l.tail[:copy(l.tail, l.tail[extra:])]
	}
}
