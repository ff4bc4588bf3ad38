package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/upstream/process"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

// startServer starts a stdio server of the kind in stdio_helper_test.go.
func startServer(t *testing.T, o transport.StdioOptions, h jsonrpc.Sink) *transport.StdioConn {
	t.Helper()
	if o.Command.Argv == nil {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		o.Command.Argv = []string{exe, "-test.run=^TestStdioServer$"}
	}
	o.Command.Env = process.Environment([]string{"STDIO_SERVER=1", "GORACE=atexit_sleep_ms=0"}, nil, os.Environ())
	if o.Command.Stderr == nil {
		o.Command.Stderr = func(string) {}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // the connection lives on
	if h == nil {
		h = &hearer{}
	}
	c, err := transport.StartStdio(ctx, o, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		noneLeft(t)
	})
	return c
}

// noneLeft checks that no goroutine of a connection or a process is left.
func noneLeft(t *testing.T) {
	t.Helper()
	var stacks string
	for range 200 {
		buf := make([]byte, 1<<20)
		stacks = string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "transport.(*StdioConn)") && !strings.Contains(stacks, "upstream/process.") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("goroutines left:\n%s", stacks)
}

// A hearer is a sink that keeps what it hears, and answers with its name.
type hearer struct {
	name string

	mu    sync.Mutex
	heard []string
}

func (h *hearer) Notify(method string, params json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, method+" "+string(params))
}

func (h *hearer) Ask(_ context.Context, method string, params json.RawMessage) (jsonrpc.Reply, error) {
	h.Notify(method, params)
	if h.name == "" {
		return jsonrpc.Reply{}, &jsonrpc.Error{Code: -32601, Message: "refused"}
	}
	return jsonrpc.Reply{Result: json.RawMessage(fmt.Sprintf(`{"by":%q}`, h.name))}, nil
}

func (h *hearer) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.heard)
}

// ask makes one call and returns its result as text.
func ask(ctx context.Context, c *transport.StdioConn, s jsonrpc.Sink, method, params string) (string, error) {
	reply, err := c.Call(ctx, method, jsonrpc.NewParams(json.RawMessage(params)), s)
	if err != nil {
		return "", err
	}
	defer reply.Release()
	if reply.Error != nil {
		return string(reply.Error), nil
	}
	return string(reply.Result), nil
}

func mustAsk(t *testing.T, c *transport.StdioConn, s jsonrpc.Sink, method, params string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	result, err := ask(ctx, c, s, method, params)
	if err != nil {
		t.Fatalf("%s %.100s: %v", method, params, err)
	}
	return result
}

func TestStdioCalls(t *testing.T) {
	c := startServer(t, transport.StdioOptions{}, nil)
	for _, test := range []struct{ name, method, params, want string }{
		{"C68 byte by byte", "trickle", `{"text":"é😀漢"}`, `{"text":"é😀漢"}`},
		{"numbers and order are kept", "echo", `{"z":1.0,"a":12345678901234567890}`, `{"z":1.0,"a":12345678901234567890}`},
		{"C215 line ends between members", "echo", "{\"a\":\r\n[1,\n2]}", `{"a":  [1, 2]}`},
		{"C215 line ends in a string", "echo", `{"a":"x\ny","b":"` + "\u2028" + `"}`, `{"a":"x\ny","b":"` + "\u2028" + `"}`},
		{"an error is a reply", "error", `{}`, `{"code":-32602,"message":"bad","data":{"k":1}}`},
		{"C159 noise", "noise", `{"text":"ok"}`, `{"text":"ok"}`},
		{"white space around a message", "pretty", `{"text":"ok"}`, `{"text":"ok"}`},
		{"a batch is taken apart", "batch", `{"text":"ok"}`, `{"text":"ok"}`},
		{"C163 a full standard error", "stderr", `{}`, `{}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := mustAsk(t, c, nil, test.method, test.params); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	t.Run("C161 a line of 3 MiB", func(t *testing.T) {
		text := strings.Repeat("0123456789abcdef", 3<<16)
		if got, want := mustAsk(t, c, nil, "echo", `{"t":"`+text+`"}`), `{"t":"`+text+`"}`; got != want {
			t.Errorf("got %d bytes, want %d", len(got), len(want))
		}
	})
	t.Run("C70 invalid UTF-8 fails its own call", func(t *testing.T) {
		_, err := ask(t.Context(), c, nil, "bad", `{}`)
		var e *jsonrpc.Error
		if !errors.As(err, &e) || e.Code != jsonrpc.CodeParse {
			t.Errorf("error %v, want a parse error", err)
		}
		mustAsk(t, c, nil, "echo", `{}`)
	})
}

// M001, M002, M005, C71: the limit is met to the byte, and what exceeds it costs its own call only.
func TestStdioLimitC71(t *testing.T) {
	const limit = 100_000
	c := startServer(t, transport.StdioOptions{MaxMessage: limit}, nil)
	slow := make(chan error, 1)
	go func() {
		_, err := ask(t.Context(), c, nil, "sleep", `{"n":300}`)
		slow <- err
	}()
	for _, test := range []struct {
		text string
		n    int
		want bool // too large
	}{
		{"id first", limit, false},
		{"id first", limit + 1, true},
		{"id first", 6 << 20, true},
		{"id last", limit, false},
		{"id last", limit + 1, true},
		{"id last", 6 << 20, true},
		{"notification", 6 << 20, false},
	} {
		t.Run(fmt.Sprint(test.text, " ", test.n), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			got, err := ask(ctx, c, nil, "big", fmt.Sprintf(`{"n":%d,"text":%q}`, test.n, test.text))
			var large *transport.TooLarge
			if errors.As(err, &large) != test.want || !test.want && err != nil {
				t.Errorf("%d bytes, error %v", len(got), err)
			}
			if test.want && (large == nil || large.Limit != limit) {
				t.Errorf("error %#v does not name the limit", err)
			}
			mustAsk(t, c, nil, "echo", `{}`)
		})
	}
	if err := <-slow; err != nil {
		t.Errorf("another call: %v", err)
	}
}

// C152, C179: replies come in any order, and find their calls.
func TestStdioManyAtOnceC152C179(t *testing.T) {
	c := startServer(t, transport.StdioOptions{}, nil)
	slow := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := ask(ctx, c, nil, "sleep", `{"n":30000}`)
		slow <- err
	}()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			want := fmt.Sprintf(`{"n":%d}`, i)
			if got, err := ask(t.Context(), c, nil, "echo", want); err != nil || got != want {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		})
	}
	wg.Wait()
	select {
	case err := <-slow:
		t.Errorf("the slow call ended: %v", err)
	default:
	}
}

// C182, Q1, Q2: equal tokens of two callers do not meet, types stay, and what comes after the reply is dropped.
func TestStdioProgressC182(t *testing.T) {
	other := &hearer{}
	c := startServer(t, transport.StdioOptions{}, other)
	var wg sync.WaitGroup
	for _, token := range []string{`1`, `1`, `"1"`, `"a\"b"`, `18446744073709551616`} {
		wg.Go(func() {
			for range 3 {
				sink := &hearer{}
				text := fmt.Sprintf("%p", sink)
				if _, err := ask(t.Context(), c, sink, "progress", fmt.Sprintf(`{"_meta":{"progressToken":%s},"n":3,"text":%q}`, token, text)); err != nil {
					t.Error(err)
				}
				var want []string
				for i := range 3 {
					want = append(want, fmt.Sprintf(`notifications/progress {"progressToken":%s,"progress":%d,"message":%q}`, token, i, text))
				}
				if got := sink.all(); !slices.Equal(got, want) {
					t.Errorf("token %s: heard %q, want %q", token, got, want)
				}
			}
		})
	}
	wg.Wait()
	mustAsk(t, c, nil, "echo", `{}`)
	if got := other.all(); len(got) > 0 {
		t.Errorf("somebody else heard %q", got)
	}
}

// C186: two log notifications, a progress and a request of the server with the id of the call, then the reply.
func TestStdioChatterC186(t *testing.T) {
	sink, other := &hearer{name: "caller"}, &hearer{name: "other"}
	c := startServer(t, transport.StdioOptions{}, other)
	got := mustAsk(t, c, sink, "chatter", `{"_meta":{"progressToken":"p"}}`)
	if want := `{"jsonrpc":"2.0","id":1,"result":{"by":"caller"}}`; got != want {
		t.Errorf("the server got %s, want %s", got, want)
	}
	want := []string{`notifications/message {"n":1}`, `notifications/message {"n":2}`, `notifications/progress {"progressToken":"p","progress":1}`, `sampling/createMessage {"q":1}`}
	if heard := sink.all(); !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
	if heard := other.all(); len(heard) > 0 {
		t.Errorf("somebody else heard %q", heard)
	}
}

// A question that could be of either of two calls is nobody's: the handler decides.
func TestStdioQuestionOfTwoCalls(t *testing.T) {
	handler := &hearer{}
	c := startServer(t, transport.StdioOptions{}, handler)
	ctx, cancel := context.WithCancel(t.Context())
	bystander := &hearer{name: "bystander"}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ask(ctx, c, bystander, "sleep", `{"n":30000}`)
	}()
	for c.Running() < 1 {
		runtime.Gosched()
	}
	caller := &hearer{name: "caller"}
	got := mustAsk(t, c, caller, "ask", `{"text":"sampling/createMessage"}`)
	if !strings.Contains(got, "-32601") {
		t.Errorf("the server got %s, want a refusal", got)
	}
	if n := len(bystander.all()) + len(caller.all()); n > 0 {
		t.Errorf("callers heard %d messages", n)
	}
	// N1: a ping is answered without anybody
	if got := mustAsk(t, c, caller, "ask", `{"text":"ping"}`); got != `{"jsonrpc":"2.0","id":"q","result":{}}` {
		t.Errorf("ping answered with %s", got)
	}
	cancel()
	<-ended
	if got := mustAsk(t, c, caller, "ask", `{"text":"roots/list"}`); !strings.Contains(got, "caller") {
		t.Errorf("the only call was not asked: %s", got)
	}
	if got := handler.all(); !slices.Equal(got, []string{`sampling/createMessage {"q":1}`}) {
		t.Errorf("handler heard %q", got)
	}
}

// C2, C4, C183: a cancelled call is cancelled at the server by its own id; an initialize never is.
func TestStdioCancel(t *testing.T) {
	c := startServer(t, transport.StdioOptions{}, nil)
	reason := errors.New("the client does not want it")
	start := func(method string) (func(), chan error) {
		ctx, cancel := context.WithCancelCause(t.Context())
		got := make(chan error, 1)
		before := c.Running()
		go func() {
			_, err := ask(ctx, c, nil, method, `{"n":1000}`)
			got <- err
		}()
		for c.Running() == before {
			runtime.Gosched()
		}
		mustAsk(t, c, nil, "echo", `{}`) // so that the other one has been written
		return func() { cancel(reason) }, got
	}
	cancel, got := start("sleep") // ids 1, 2 with the echo
	_, other := start("sleep")    // 3, 4
	cancelInit, init := start("initialize")
	cancel()
	cancelInit()
	for _, ch := range []chan error{got, init} {
		if err := <-ch; !errors.Is(err, reason) {
			t.Errorf("error %v, want the cause", err)
		}
	}
	if got := mustAsk(t, c, nil, "cancelled", `{}`); got != "[1]" {
		t.Errorf("the server saw cancellations of %s, want [1]", got)
	}
	if err := <-other; err != nil {
		t.Errorf("the other call: %v", err)
	}
}

// A full pipe holds up nobody beyond his own context, and what was not written is never sent.
func TestStdioFullPipe(t *testing.T) {
	c := startServer(t, transport.StdioOptions{}, nil)
	stalled := make(chan error, 1)
	go func() {
		_, err := ask(t.Context(), c, nil, "stall", `{"n":1500}`)
		stalled <- err
	}()
	for c.Running() == 0 {
		runtime.Gosched()
	}
	large := `{"t":"` + strings.Repeat("x", 1<<20) + `"}`
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			began := time.Now()
			if _, err := ask(ctx, c, nil, "echo", large); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want deadline exceeded", err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("took %v", took)
			}
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			var unsent *transport.NotSent
			if err := c.Notify(ctx, "notifications/x", nil); !errors.As(err, &unsent) {
				t.Errorf("notification: %v, want NotSent", err)
			}
		})
	}
	wg.Wait()
	if err := <-stalled; err != nil {
		t.Error(err)
	}
	// of the four at most the one whose writing had begun reaches the server: it alone is cancelled
	if got := mustAsk(t, c, nil, "cancelled", `{}`); strings.Contains(got, ",") {
		t.Errorf("the server saw cancellations of %s", got)
	}
	mustAsk(t, c, nil, "echo", `{}`)
}

// C171, C184: whoever waits when the server dies hears at once that the outcome is unknown; whoever comes later was not sent.
func TestStdioDeathC171C184(t *testing.T) {
	c := startServer(t, transport.StdioOptions{}, nil)
	waiting := make(chan error, 1)
	go func() {
		_, err := ask(t.Context(), c, nil, "sleep", `{"n":30000}`)
		waiting <- err
	}()
	for c.Running() == 0 {
		runtime.Gosched()
	}
	mustAsk(t, c, nil, "echo", `{}`)
	began := time.Now()
	_, err := ask(t.Context(), c, nil, "die", `{"text":"old age"}`)
	for _, err := range []error{err, <-waiting} {
		var unsent *transport.NotSent
		if err == nil || errors.As(err, &unsent) {
			t.Fatalf("error %v, want an unknown outcome", err)
		}
		for _, part := range []string{"outcome is unknown", "exit status 3"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not say %q", err, part)
			}
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %v", took)
	}
	<-c.Done()
	var unsent *transport.NotSent
	if _, err := ask(t.Context(), c, nil, "echo", `{}`); !errors.As(err, &unsent) || strings.Contains(err.Error(), "unknown") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("a later call: %v, want NotSent with the exit status", err)
	}
	if err := c.Notify(t.Context(), "notifications/x", nil); !errors.As(err, &unsent) {
		t.Errorf("a later notification: %v, want NotSent", err)
	}
	if tail := c.StderrTail(); tail != "dying of old age" {
		t.Errorf("stderr tail %q", tail)
	}
	if c.Err() == nil {
		t.Error("no exit status")
	}
}

func TestStdioServerThatClosesAPipe(t *testing.T) {
	t.Run("output", func(t *testing.T) {
		c := startServer(t, transport.StdioOptions{}, nil)
		if _, err := ask(t.Context(), c, nil, "deaf", `{}`); err == nil || !strings.Contains(err.Error(), "closed its output") {
			t.Errorf("error %v", err)
		}
		<-c.Done()
	})
	t.Run("input", func(t *testing.T) {
		c := startServer(t, transport.StdioOptions{Command: process.Command{Argv: []string{"/bin/sh", "-c", "exec <&-; sleep 60"}}}, nil)
		large := `{"t":"` + strings.Repeat("x", 1<<20) + `"}` // more than a pipe holds
		var unsent *transport.NotSent
		if _, err := ask(t.Context(), c, nil, "echo", large); !errors.As(err, &unsent) {
			t.Errorf("error %v, want NotSent", err)
		}
		<-c.Done()
	})
}

// Close ends what runs, and is not held up by a server that ignores it.
func TestStdioClose(t *testing.T) {
	c := startServer(t, transport.StdioOptions{}, nil)
	waiting := make(chan error, 1)
	go func() {
		_, err := ask(t.Context(), c, nil, "sleep", `{"n":30000}`)
		waiting <- err
	}()
	mustAsk(t, c, nil, "echo", `{}`)
	for c.Running() == 0 {
		runtime.Gosched()
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { c.Close() })
	}
	if err := <-waiting; err == nil {
		t.Error("the call succeeded")
	}
	<-c.Done()
	wg.Wait()
	var unsent *transport.NotSent
	if _, err := ask(t.Context(), c, nil, "echo", `{}`); !errors.As(err, &unsent) {
		t.Errorf("after Close: %v, want NotSent", err)
	}
}

func TestStdioStartErrors(t *testing.T) {
	c, err := transport.StartStdio(t.Context(), transport.StdioOptions{Command: process.Command{Argv: []string{"nosuchcmd"}, Env: []string{"PATH=/bin"}}}, &hearer{})
	if err == nil || !strings.Contains(err.Error(), "nosuchcmd") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := transport.StartStdio(ctx, transport.StdioOptions{}, &hearer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if c != nil {
		t.Error("a connection to nothing")
	}
	noneLeft(t)
}

// C159: noise is logged once in a while, standard error line by line.
func TestStdioLog(t *testing.T) {
	var log lockedBuffer
	exe, _ := os.Executable()
	c, err := transport.StartStdio(t.Context(), transport.StdioOptions{
		Command: process.Command{
			Argv: []string{"/bin/sh", "-c", `echo hello >&2; i=0; while [ $i -lt 1000 ]; do echo "debug $i"; i=$((i+1)); done; exec "$0" -test.run='^TestStdioServer$'`, exe},
			Env:  []string{"STDIO_SERVER=1"},
		},
		Log: zerolog.New(&log),
	}, &hearer{})
	if err != nil {
		t.Fatal(err)
	}
	mustAsk(t, c, nil, "echo", `{}`)
	c.Close()
	noneLeft(t)
	text := log.String()
	if n := strings.Count(text, "debug "); n == 0 || n > 10 {
		t.Errorf("noise logged %d times", n)
	}
	if strings.Count(text, `"line":"hello"`) != 1 {
		t.Errorf("standard error not logged:\n%s", text)
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
