package transport

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

func TestLineReader(t *testing.T) {
	hundred := strings.Repeat("0123456789", 1000)
	for _, test := range []struct {
		name, in string
		want     []string // of a long line its tail, after "long:"
	}{
		{"nothing", "", nil},
		{"lines", "a\nbc\n", []string{"a", "bc"}},
		{"empty lines", "\n\r\n\n", []string{"", "", ""}},
		{"carriage returns", "a\r\nb\rc\r\r\n", []string{"a", "b\rc\r"}},
		{"no end", "a\nb", []string{"a", "b"}},
		{"the limit", "12345678\n12345678\r\n", []string{"12345678", "12345678"}},
		{"over it", "123456789\nb\n", []string{"long:123456789", "b"}},
		{"over it with a carriage return", "1234567890\r\nb\n", []string{"long:1234567890\r", "b"}},
		{"far over it", hundred + "\nb\n", []string{"long:" + hundred[len(hundred)-keptTail:], "b"}},
		{"over it without an end", hundred, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(test.in), iotest.OneByteReader(strings.NewReader(test.in))} {
				if got := lines(newLineReader(r, 8)); !slices.Equal(got, test.want) {
					t.Errorf("got %q, want %q", got, test.want)
				}
			}
		})
	}
}

func lines(l *lineReader) (all []string) {
	for {
		buf := jsonrpc.NewBuffer()
		switch err := l.next(buf); {
		case err == nil:
			all = append(all, string(buf.B))
		case err == errLongLine:
			all = append(all, "long:"+string(l.tail))
		default:
			if len(buf.B) > 0 {
				all = append(all, string(buf.B))
			}
			return all
		}
	}
}

// Whatever the pieces, the lines are those of the whole, and no more is kept of one than the limit allows.
func FuzzLineReader(f *testing.F) {
	f.Add([]byte("a\nbc\r\n\n123456789\nend"), uint8(8))
	f.Add([]byte(strings.Repeat("x", 100)+"\n{}\n"), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, max uint8) {
		limit := int(max)
		for _, r := range []io.Reader{bytes.NewReader(in), iotest.OneByteReader(bytes.NewReader(in)), iotest.HalfReader(bytes.NewReader(in)), iotest.DataErrReader(bytes.NewReader(in))} {
			l := newLineReader(r, limit)
			rest := in
			for {
				buf := jsonrpc.NewBuffer()
				err := l.next(buf)
				want, after, ended := bytes.Cut(rest, []byte{'\n'})
				if rest = after; ended {
					want = bytes.TrimSuffix(want, []byte{'\r'})
				}
				switch {
				case !ended && err != io.EOF:
					t.Fatalf("error %v at the end", err)
				case ended && len(want) > limit && err != errLongLine:
					t.Fatalf("line of %d bytes, limit %d: error %v", len(want), limit, err)
				case ended && len(want) > limit && !bytes.HasPrefix(append(want[:len(want):len(want)], '\r'), buf.B):
					t.Fatalf("head %q of %q", buf.B, want)
				case ended && len(want) <= limit && (err != nil || !bytes.Equal(buf.B, want)):
					t.Fatalf("got %q, %v, want %q", buf.B, err, want)
				case !ended && len(buf.B) > 0 && !bytes.Equal(buf.B, want):
					t.Fatalf("rest %q, want %q", buf.B, want)
				}
				buf.Release()
				if err == io.EOF {
					break
				}
			}
		}
	})
}
