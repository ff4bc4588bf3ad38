package stdio_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/front/stdio"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// A step is one call that the test leads.
type step struct {
	ctx    context.Context
	stream proxy.Stream
	r      proxy.Request
	reply  chan jsonrpc.Reply
}

func (s step) finish() { s.reply <- result(`{"done":` + string(s.r.Message.ID) + `}`) }

// A fake is a server with the manners of the proxy. Its calls come to the test.
type fake struct{ steps chan step }

func (f *fake) Serve(ctx context.Context, r proxy.Request, s proxy.Stream) {
	if r.Message.IsNotification() {
		if r.Message.Method == protocol.Initialized {
			r.Session.Initialized()
		}
		return
	}
	ctx, done, err := r.Session.Begin(ctx, r.Message.ID)
	if err != nil {
		return
	}
	defer done()
	switch r.Message.Method {
	case protocol.Initialize:
		r.Session.Negotiated("2025-11-25", nil, nil)
		_ = s.Reply(result(`{"protocolVersion":"2025-11-25"}`))
	case protocol.CallTool, protocol.Listen:
		one := step{ctx, s, r, make(chan jsonrpc.Reply)}
		select {
		case f.steps <- one:
		case <-ctx.Done():
			return
		}
		select {
		case reply := <-one.reply:
			_ = s.Reply(reply)
		case <-ctx.Done():
		}
	default:
		_ = s.Reply(result(`{"version":"` + r.Session.Version() + `"}`))
	}
}

func result(raw string) jsonrpc.Reply { return jsonrpc.Reply{Result: json.RawMessage(raw)} }

// A client is the other end of a Front, within a bubble of synctest: there nothing can
// go on after the test.
type client struct {
	t     *testing.T
	in    io.WriteCloser
	lines *bufio.Scanner
	out   *io.PipeReader
	steps chan step
	table *session.Table
	stop  context.CancelFunc
	ended chan error
}

func dial(t *testing.T, o stdio.Options) *client {
	f := &fake{steps: make(chan step)}
	table := session.NewTable(session.TableOptions{})
	in, theirs := io.Pipe()
	out, ours := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	c := &client{t: t, in: theirs, out: out, lines: bufio.NewScanner(out), steps: f.steps, table: table, stop: stop, ended: make(chan error, 1)}
	c.lines.Buffer(nil, 32<<20)
	go func() {
		err := stdio.New(f, table, o).Run(ctx, in, ours)
		_ = ours.Close() // as the end of a process does
		c.ended <- err
	}()
	t.Cleanup(func() {
		stop()
		_ = theirs.Close()
		_ = out.Close()
		table.Close()
	})
	return c
}

func (c *client) send(lines ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, strings.Join(lines, "\n")+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// line returns the next line, which has to be a message.
func (c *client) line() string {
	c.t.Helper()
	if !c.lines.Scan() {
		return "end"
	}
	if _, err := jsonrpc.Parse(c.lines.Bytes()); err != nil {
		c.t.Errorf("S1 C176: a line that is no message: %v: %s", err, c.lines.Text())
	}
	return c.lines.Text()
}

func (c *client) want(want ...string) {
	c.t.Helper()
	for _, w := range want {
		if got := c.line(); !strings.Contains(got, w) {
			c.t.Errorf("got %s, want %s", got, w)
		}
	}
}

const (
	hello       = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	meta        = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

func request(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `}}`
}

func bubble(t *testing.T, o stdio.Options, test func(t *testing.T, c *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, dial(t, o)) })
}

// Everything that a client may write at once, without waiting, in the order in which a
// script does.
func TestLines(t *testing.T) {
	long := request("9", "ping", `"x":"`+strings.Repeat("x", 5<<20)+`"`)
	for _, c := range []struct {
		name string
		send []string
		want []string
	}{
		{"handshake", []string{hello, initialized, request("1", "tools/list", "")}, []string{`"id":0,"result":{"protocolVersion"`, `{"jsonrpc":"2.0","id":1,"result":{"version":"2025-11-25"}}`}},
		{"modern without handshake", []string{request("1", "tools/list", meta)}, []string{`"result":{"version":"2026-07-28"}`}},
		{"C134 ping", []string{request(`"p"`, "ping", "")}, []string{`"id":"p","result":`}},
		{"C156 no JSON", []string{"not json", request("1", "ping", "")}, []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700`, `"id":1`}},
		{"C215 newline in a string", []string{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\nng\"}"}, []string{`"code":-32700`, `"code":-32700`}},
		{"carriage returns", []string{request("1", "ping", "") + "\r", "\r", ""}, []string{`"id":1`}},
		{"C132 a batch", []string{"[" + hello + "]"}, []string{`"id":null,"error":{"code":-32600`}},
		{"no method", []string{`{"jsonrpc":"2.0","id":4}`}, []string{`"id":4,"error":{"code":-32600`}},
		{"C133 notifications", []string{`{"jsonrpc":"2.0","method":"notifications/zzz","params":[1]}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, request("1", "ping", "")}, []string{`"id":1`}},
		{"too long", []string{long, request("1", "ping", "")}, []string{`"id":null,"error":{"code":-32600`, `"id":1`}},
		{"C214 _meta twice", []string{request("1", "tools/call", `"_meta":{},"_meta":{}`)}, []string{`"id":1,"error":{"code":-32602`}},
		{"L8", []string{request("1", "tools/list", strings.Replace(meta, "2026-07-28", "2099-01-01", 1))}, []string{`"code":-32022`}},
		{"L9", []string{request("1", "tools/list", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`)}, []string{`"code":-32602`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, stdio.Options{}, func(t *testing.T, client *client) {
				client.send(c.send...)
				client.want(c.want...)
				client.in.Close()
				client.want("end")
				if err := <-client.ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// S6: the input's end ends us; a last line needs no line end.
func TestEndOfInput(t *testing.T) {
	bubble(t, stdio.Options{}, func(t *testing.T, c *client) {
		begun := time.Now()
		go func() {
			_, _ = io.WriteString(c.in, request("1", "ping", ""))
			c.in.Close()
		}()
		c.want(`"id":1`, "end")
		if err := <-c.ended; err != nil || time.Since(begun) > 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// Calls that run are given time, but not for ever.
func TestEndWithRunningCalls(t *testing.T) {
	bubble(t, stdio.Options{}, func(t *testing.T, c *client) {
		c.send(hello, request("1", "tools/call", ""))
		quick := <-c.steps
		c.send(request("2", "tools/call", ""))
		endless := <-c.steps
		c.send(request(`"l"`, "subscriptions/listen", meta))
		listen := <-c.steps
		begun := time.Now()
		c.in.Close()
		c.want(`"id":0`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"`)
		go quick.finish()
		c.want(`"id":1,"result":{"done":1}`)
		<-listen.ctx.Done()
		<-endless.ctx.Done()
		if waited := time.Since(begun); waited != 3*time.Second {
			t.Errorf("the call was given %v", waited)
		}
		c.want("end")
		<-c.ended
	})
}

func TestStop(t *testing.T) {
	bubble(t, stdio.Options{}, func(t *testing.T, c *client) {
		c.send(hello)
		c.want(`"id":0`)
		c.stop()
		c.want("end")
		if err := <-c.ended; err != nil {
			t.Error(err)
		}
		if c.table.Len() != 0 {
			t.Error("the session is still there")
		}
	})
}

func TestBrokenOutput(t *testing.T) {
	bubble(t, stdio.Options{}, func(t *testing.T, c *client) {
		c.send(hello, request("1", "tools/call", ""))
		call := <-c.steps
		c.out.CloseWithError(errors.New("gone"))
		<-call.ctx.Done()
		if err := <-c.ended; err == nil {
			t.Error("no error")
		}
	})
}

// C134, C152: a slow call delays no quick one; both eras at once; answers find their
// requests.
func TestRequestsAreIndependent(t *testing.T) {
	bubble(t, stdio.Options{}, func(t *testing.T, c *client) {
		c.send(hello, initialized, request("1", "tools/call", ""))
		c.want(`"id":0`)
		slow := <-c.steps
		c.send(request("2", "tools/call", meta))
		quick := <-c.steps
		if slow.r.Session.Version() != "2025-11-25" || quick.r.Session.Version() != "2026-07-28" {
			t.Errorf("versions %s and %s", slow.r.Session.Version(), quick.r.Session.Version())
		}
		c.send(request("3", "ping", ""), request("1", "ping", ""))
		c.want(`"id":3,"result"`, `"id":1,"error":{"code":-32600`)
		quick.stream.Notify("notifications/progress", json.RawMessage("{\"progress\":\n1}"))
		go quick.finish()
		c.want(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress": 1}}`, `"id":2,"result":{"done":2}`) // C215
		quick.stream.Notify("notifications/progress", nil)
		go slow.finish()
		c.want(`"id":1,"result":{"done":1}`)
	})
}

// S7, C144: in both eras.
func TestCancel(t *testing.T) {
	for name, params := range map[string]string{"legacy": "", "modern": meta} {
		t.Run(name, func(t *testing.T) {
			bubble(t, stdio.Options{}, func(t *testing.T, c *client) {
				c.send(hello, request("1", "tools/call", params))
				c.want(`"id":0`)
				call := <-c.steps
				c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
				<-call.ctx.Done()
				call.stream.Notify("notifications/progress", nil)
				if err := call.stream.Reply(result(`{}`)); err == nil {
					t.Error("a cancelled call was answered")
				}
				c.send(request("2", "ping", ""))
				c.want(`"id":2`)
			})
		})
	}
}

// A cancel that follows its request at once is not too early.
func TestCancelAtOnce(t *testing.T) {
	bubble(t, stdio.Options{}, func(t *testing.T, c *client) {
		c.send(request("1", "tools/call", ""), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, request("2", "ping", ""))
		c.want(`"id":2`)
		synctest.Wait()
		select {
		case call := <-c.steps:
			<-call.ctx.Done()
		default: // it never began
		}
	})
}

func TestListChanged(t *testing.T) {
	bubble(t, stdio.Options{}, func(t *testing.T, c *client) {
		c.send(hello)
		c.want(`"id":0`)
		tell := func() {
			c.table.Each(func(s *session.Session) { s.Notify("notifications/tools/list_changed", nil) })
		}
		tell()
		tell()
		c.send(request("1", "ping", ""))
		c.want(`"id":1`) // L3: nothing before it is initialized
		c.send(initialized)
		c.want("notifications/tools/list_changed")
		tell()
		c.want("notifications/tools/list_changed")
		c.send(request("2", "ping", ""))
		c.want(`"id":2`)
	})
}

// A client may write all it has before it reads anything.
func TestSlowReader(t *testing.T) {
	bubble(t, stdio.Options{}, func(t *testing.T, c *client) {
		const n = 20000
		for id := range n {
			c.send(request(fmt.Sprint(id), "ping", ""))
		}
		c.send(request(`"call"`, "tools/call", ""))
		call := <-c.steps
		for p := range 100000 {
			call.stream.Notify("notifications/progress", json.RawMessage(fmt.Sprintf(`{"progress":%d}`, p)))
		}
		go call.finish()
		for id := range n {
			c.want(fmt.Sprintf(`"id":%d,`, id))
		}
		var seen []string
		for {
			line := c.line()
			if strings.Contains(line, `"id":"call"`) {
				break
			}
			seen = append(seen, line)
		}
		if len(seen) > 20000 || !strings.Contains(seen[len(seen)-1], `"progress":99999}`) {
			t.Errorf("Q3: %d notifications, the last is %s", len(seen), seen[len(seen)-1])
		}
	})
}

// What a client never reads is given up when it leaves.
func TestReaderThatNeverReads(t *testing.T) {
	bubble(t, stdio.Options{}, func(t *testing.T, c *client) {
		large := `{"text":"` + strings.Repeat("x", 6<<20) + `"}`
		for id := range 4 {
			c.send(request(fmt.Sprint(id), "tools/call", ""))
			call := <-c.steps
			go func() { call.reply <- result(large) }()
		}
		synctest.Wait()
		c.in.Close()
		if err := <-c.ended; err != nil {
			t.Error(err)
		}
	})
}

func TestTooManyRequests(t *testing.T) {
	bubble(t, stdio.Options{}, func(t *testing.T, c *client) {
		go func() {
			for range c.steps {
			}
		}()
		for id := range 1001 {
			c.send(request(fmt.Sprint(id), "tools/call", ""))
		}
		c.want(`"id":1000,"error":{"code":-32603`)
		c.in.Close()
		<-c.ended
		close(c.steps)
	})
}

// Whatever comes in, what goes out are messages, one a line.
func FuzzInput(f *testing.F) {
	f.Add([]byte(hello + "\n" + initialized + "\nnot json\n\n[1]\n"))
	f.Add([]byte(request("1", "ping", meta)))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":\"a\\nb\",\r\"method\":\"ping\"}\r\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		steps := make(chan step)
		close(steps)
		var out strings.Builder
		table := session.NewTable(session.TableOptions{})
		defer table.Close()
		front := stdio.New(&answering{}, table, stdio.Options{MaxRequestBytes: 1 << 10})
		if err := front.Run(t.Context(), strings.NewReader(string(input)), &out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\n"), "\n") {
			if line == "" {
				continue
			}
			if _, err := jsonrpc.Parse([]byte(line)); err != nil {
				t.Errorf("%q was answered with %q: %v", input, line, err)
			}
		}
	})
}

// answering answers everything with what it was asked.
type answering struct{}

func (answering) Serve(_ context.Context, r proxy.Request, s proxy.Stream) {
	if r.Message.IsRequest() {
		s.Notify(r.Message.Method, r.Message.Params)
		_ = s.Reply(result(`{"asked":` + string(r.Message.ID) + `}`))
	}
}
