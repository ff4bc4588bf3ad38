package fake

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// Framing says how messages are put on the wire, within what the specification allows.
type Framing struct {
	SSE       bool   // an event stream also for a lone reply
	EOL       string // of the event stream; empty: \n
	Split     bool   // every byte in a write of its own; over stdio too
	MultiLine bool   // data over several lines
	Open      bool   // the stream stays open after the reply
	Truncate  bool   // no blank line after the last event
	Gzip      bool   // if the client accepts it
	Ids       bool   // an empty event with an id first
}

// event returns a message as one event.
func (f Framing) event(m []byte, last bool) []byte {
	eol := f.EOL
	if eol == "" {
		eol = "\n"
	}
	data := string(m)
	if f.MultiLine {
		data = strings.ReplaceAll(data, `,"`, ","+eol+`data: "`)
	}
	out := "event: message" + eol + "data: " + data
	if !last || !f.Truncate {
		out += eol + eol
	}
	return []byte(out)
}

// response is the answer to one POST of Streamable HTTP. It becomes an event stream with the first message that is no reply.
type response struct {
	framing Framing
	r       *http.Request

	mu      sync.Mutex // the server's own questions come from other goroutines
	w       http.ResponseWriter
	started bool
	over    bool // the handler has returned: w must not be used any more
}

// end makes what comes later go nowhere.
func (o *response) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
}

func (o *response) message(m []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	o.open()
	o.write(o.framing.event(m, false))
}

func (o *response) reply(m []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.framing.SSE {
		o.open()
	}
	if o.started {
		o.write(o.framing.event(m, true))
		o.stay()
		return
	}
	o.w.Header().Set("Content-Type", "application/json")
	if o.framing.Gzip && strings.Contains(o.r.Header.Get("Accept-Encoding"), "gzip") {
		m = zip(m)
		o.w.Header().Set("Content-Encoding", "gzip")
	}
	o.write(m)
}

func (o *response) raw(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w.Header().Get("Content-Type") == "" {
		o.open()
	}
	o.write(b)
}

func (o *response) drop() { panic(http.ErrAbortHandler) }

func (o *response) open() {
	if o.started {
		return
	}
	o.started = true
	o.w.Header().Set("Content-Type", "text/event-stream")
	o.w.WriteHeader(http.StatusOK)
	if o.framing.Ids {
		o.write([]byte("id: first\ndata:\n\n"))
	}
}

func (o *response) write(b []byte) {
	if !o.framing.Split {
		_, _ = o.w.Write(b)
		_ = http.NewResponseController(o.w).Flush()
		return
	}
	for i := range b {
		_, _ = o.w.Write(b[i : i+1])
		_ = http.NewResponseController(o.w).Flush()
	}
}

func (o *response) stay() {
	if o.framing.Open {
		<-o.r.Context().Done()
	}
}

func zip(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}
