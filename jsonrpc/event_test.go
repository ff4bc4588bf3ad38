package jsonrpc_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

func readEvents(r io.Reader, max int) (events []jsonrpc.Event, data []string, err error) {
	reader := jsonrpc.NewEventReader(r, max)
	for {
		e, err := reader.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return events, data, err
		}
		events, data = append(events, e), append(data, string(e.Data))
	}
}

func TestEventReaderTakesAnyFraming(t *testing.T) {
	stream := "\xef\xbb\xbf: hello\nid: 7\nevent: message\ndata: a\ndata:b\n\nretry: 1500\n\ndata\n\n:x\n\ndata:  two spaces\nid: bad\x00id\n\nunknown: x\n\ndata: last"
	want := []string{"a\nb", "", "", " two spaces", "last"}
	for _, end := range []string{"\n", "\r\n", "\r"} {
		text := strings.ReplaceAll(stream, "\n", end)
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)),
			"with the error": iotest.DataErrReader(strings.NewReader(text)), "halves": iotest.HalfReader(strings.NewReader(text)),
		} {
			events, data, err := readEvents(r, 100)
			if err != nil || strings.Join(data, "|") != strings.Join(want, "|") {
				t.Fatalf("%q, %s: %q, %v; want %q", end, name, data, err, want)
			}
			if e := events[0]; e.ID != "7" || !e.HasID || e.Name != "message" || e.Retry != -1 {
				t.Errorf("%q, %s: first event %+v", end, name, e)
			}
			if events[1].Retry != 1500*time.Millisecond || events[3].HasID {
				t.Errorf("%q, %s: %+v", end, name, events[1:4])
			}
		}
	}
}

func TestEventReaderLimit(t *testing.T) {
	const max = 10000
	fits, over := strings.Repeat("x", max), strings.Repeat("x", max+1)
	for _, tt := range []struct {
		name, stream string
		want         error
	}{
		{"just fits", "data: " + fits + "\n\n", nil},
		{"one over", "data: " + over + "\n\n", jsonrpc.ErrEventTooLarge},
		{"over two lines", "data: " + fits + "\ndata: x\n\n", jsonrpc.ErrEventTooLarge},
		{"a line without end", over + over, jsonrpc.ErrEventTooLarge},
		{"many events", strings.Repeat("data: "+fits+"\n\n", 5), nil},
		{"a long comment", ":" + over + over + "\n\ndata: x\n\n", nil},
	} {
		_, _, err := readEvents(iotest.HalfReader(strings.NewReader(tt.stream)), max)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

func FuzzEventReader(f *testing.F) {
	f.Add("id: 1\r\ndata: a\r\ndata: b\r\n\r\n:c\n\ndata: x", 3)
	f.Fuzz(func(t *testing.T, stream string, max int) {
		if max < 1 || max > 1<<16 {
			return
		}
		_, whole, err := readEvents(strings.NewReader(stream), max)
		_, pieces, err2 := readEvents(iotest.OneByteReader(strings.NewReader(stream)), max)
		if err == nil && err2 == nil && strings.Join(whole, "|") != strings.Join(pieces, "|") {
			t.Fatalf("%q: %q, byte by byte %q", stream, whole, pieces)
		}
		for _, d := range whole {
			if len(d) > max {
				t.Fatalf("%q: %d bytes passed a limit of %d", stream, len(d), max)
			}
		}
	})
}

func FuzzAppendEvent(f *testing.F) {
	f.Add("7", "{\"a\":\n1}")
	f.Fuzz(func(t *testing.T, id, data string) {
		if strings.ContainsAny(id, "\r\n\x00") {
			return
		}
		out := jsonrpc.AppendEvent(nil, id, []byte(data))
		events, got, err := readEvents(strings.NewReader(string(out)), len(id)+len(data)+1)
		want := strings.ReplaceAll(data, "\r", "\n")
		if err != nil || len(got) != 1 || got[0] != want || events[0].HasID != (id != "") || id != "" && strings.TrimPrefix(events[0].ID, " ") != strings.TrimPrefix(id, " ") {
			t.Fatalf("%q, %q came back as %v, %q, %v", id, data, events, got, err)
		}
	})
}
