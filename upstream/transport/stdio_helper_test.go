package transport_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestStdioServer is no test: the test binary runs it to be a server.
func TestStdioServer(t *testing.T) {
	if os.Getenv("STDIO_SERVER") == "" {
		t.Skip("only as a child")
	}
	time.AfterFunc(time.Minute, func() { os.Exit(99) }) // never a burden, whatever the test does
	s := &stdioServer{in: bufio.NewReader(os.Stdin), answers: make(chan json.RawMessage, 16)}
	s.serve()
	os.Exit(0)
}

type stdioServer struct {
	in      *bufio.Reader
	answers chan json.RawMessage // responses to our own requests

	mu        sync.Mutex // guards what follows, and standard output
	cancelled []json.RawMessage
}

type stdioMessage struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Meta struct{ ProgressToken json.RawMessage } `json:"_meta"`
		N    int
		Text string
	}
	raw json.RawMessage // params
}

func (s *stdioServer) serve() {
	for {
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m stdioMessage
		if err := json.Unmarshal(line, &m); err != nil {
			fmt.Fprintln(os.Stderr, "bad line:", err)
			os.Exit(42)
		}
		var raw struct{ Params json.RawMessage }
		json.Unmarshal(line, &raw)
		m.raw = raw.Params
		switch {
		case m.Method == "":
			s.answers <- json.RawMessage(strings.TrimSpace(string(line)))
		case m.Method == "notifications/cancelled":
			var p struct{ RequestId json.RawMessage }
			json.Unmarshal(m.raw, &p)
			s.mu.Lock()
			s.cancelled = append(s.cancelled, p.RequestId)
			s.mu.Unlock()
		case m.Method == "stall": // reads nothing for a while
			time.Sleep(time.Duration(m.Params.N) * time.Millisecond)
			s.reply(m, `{}`)
		default:
			go s.work(m)
		}
	}
}

func (s *stdioServer) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	io.WriteString(os.Stdout, text)
}

func (s *stdioServer) reply(m stdioMessage, result string) {
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result))
}

func (s *stdioServer) work(m stdioMessage) {
	result := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"text":%q}}`, m.ID, m.Params.Text)
	switch m.Method {
	case "echo":
		s.reply(m, string(m.raw))
	case "id":
		s.reply(m, string(m.ID))
	case "sleep":
		time.Sleep(time.Duration(m.Params.N) * time.Millisecond)
		s.reply(m, `{"slept":true}`)
	case "error":
		s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad","data":{"k":1}}}`+"\n", m.ID))
	case "die":
		s.mu.Lock()
		fmt.Fprintln(os.Stderr, "dying of", m.Params.Text)
		os.Exit(3)
	case "deaf":
		os.Stdout.Close()
	case "mute": // takes no more input, and lives
		os.Stdin.Close()
		time.Sleep(time.Minute)
	case "trickle":
		for i := range len(result) {
			os.Stdout.WriteString(result[i : i+1])
		}
		s.write("\n")
	case "big": // the id stands where Text says, the whole line has N bytes
		s.big(m)
	case "noise":
		s.write("Server v1.0 starting\n\n   \n[1,2]\n\"x\"\n\x00\xff\n{not json}\n42\r\n" + result + "\r\n")
	case "pretty": // ends of lines inside a message
		s.write(strings.Repeat(" ", 10) + result + "   \t\r\n")
	case "bad": // a result that is no UTF-8
		s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"text":"caf`+"\xe9"+`"}}`+"\n", m.ID))
	case "batch":
		s.write(fmt.Sprintf(`[{"jsonrpc":"2.0","method":"notifications/message","params":{"n":1}},%s,{"jsonrpc":"2.0","id":99999,"result":{}}]`+"\n", result))
	case "progress":
		for i := range m.Params.N {
			s.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%q}}`+"\n", m.Params.Meta.ProgressToken, i, m.Params.Text))
		}
		s.reply(m, `{}`)
		s.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1000}}`+"\n", m.Params.Meta.ProgressToken))
	case "chatter": // C186: everything but the reply comes first, a request with the reply's id, too
		s.write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"n":1}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/message","params":{"n":2}}` + "\n")
		s.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`+"\n", m.ID))
		s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"sampling/createMessage","params":{"q":1}}`+"\n", m.ID))
		s.reply(m, string(<-s.answers))
	case "ask":
		s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q","method":%q,"params":{"q":1}}`+"\n", m.Params.Text))
		s.reply(m, string(<-s.answers))
	case "cancelled":
		s.mu.Lock()
		all, _ := json.Marshal(s.cancelled)
		s.mu.Unlock()
		s.reply(m, string(all))
	case "stderr":
		os.Stderr.WriteString(strings.Repeat("e", 300<<10))
		s.reply(m, `{}`)
	}
}

func (s *stdioServer) big(m stdioMessage) {
	before, after := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"t":"`, m.ID), `"}}`
	switch m.Params.Text {
	case "id last":
		before, after = `{"jsonrpc":"2.0","result":{"id":1,"t":"`, fmt.Sprintf(`"},"id":%s}`, m.ID)
	case "notification":
		before, after = `{"jsonrpc":"2.0","method":"notifications/message","params":{"id":1,"t":"`, `"}}`
	}
	s.write(before + strings.Repeat("x", m.Params.N-len(before)-len(after)) + after + "\n")
	if m.Params.Text == "notification" {
		s.reply(m, `{}`)
	}
}
