package client

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Stdio client talks to a command on its standard input and output.
type Stdio struct {
	Version string
	Hello   Message

	t     testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	next  atomic.Int64
	done  chan struct{} // closed when the output has ended

	mu      sync.Mutex // guards what follows
	lines   []string
	waiting map[string]chan Message
	changed chan struct{}
}

// Launch starts a command, which must not have been started, and does the handshake of a version with one.
func Launch(t testing.TB, cmd *exec.Cmd, version string) *Stdio {
	t.Helper()
	c := &Stdio{Version: version, t: t, cmd: cmd, done: make(chan struct{}), waiting: map[string]chan Message{}, changed: make(chan struct{})}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.read(bufio.NewReaderSize(stdout, 1<<20))
	t.Cleanup(func() { c.Close() })
	if version == Modern {
		c.Hello = c.Call("server/discover", "")
		return c
	}
	c.Hello = c.Call("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"test","version":"1"}}`, version))
	c.Notify("notifications/initialized", "")
	return c
}

func (c *Stdio) read(out *bufio.Reader) {
	defer close(c.done)
	for {
		line, err := out.ReadString('\n')
		if line != "" {
			c.arrived(line)
		}
		if err != nil {
			return
		}
	}
}

func (c *Stdio) arrived(line string) {
	var m Message
	_ = json.Unmarshal([]byte(line), &m)
	m.Raw = json.RawMessage(line)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
	if m.IsReply() {
		if w := c.waiting[string(m.ID)]; w != nil {
			delete(c.waiting, string(m.ID))
			w <- m
		}
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// Lines returns all lines that came so far.
func (c *Stdio) Lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.lines...)
}

// Expect waits for a message with a method.
func (c *Stdio) Expect(method string) Message {
	c.t.Helper()
	deadline := time.After(patience)
	for {
		c.mu.Lock()
		changed, lines := c.changed, c.lines
		c.mu.Unlock()
		for _, line := range lines {
			if m := Parse(c.t, []byte(line)); m.Method == method {
				return m
			}
		}
		select {
		case <-changed:
		case <-deadline:
			c.t.Fatalf("no %s came", method)
		}
	}
}

// Send writes bytes as they are.
func (c *Stdio) Send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.stdin, line); err != nil {
		c.t.Errorf("write to the command: %v", err)
	}
}

// Start sends a request; the reply comes on the channel.
func (c *Stdio) Start(method, params string) <-chan Message {
	c.t.Helper()
	id := fmt.Sprint(c.next.Add(1))
	if c.Version == Modern {
		params = withMeta(params, Meta())
	}
	reply := make(chan Message, 1)
	c.mu.Lock()
	c.waiting[id] = reply
	c.mu.Unlock()
	c.Send(Request(id, method, params) + "\n")
	return reply
}

// Call sends a request and waits for the reply.
func (c *Stdio) Call(method, params string) Message {
	c.t.Helper()
	return c.Await(c.Start(method, params))
}

// Await waits for a reply.
func (c *Stdio) Await(reply <-chan Message) Message {
	c.t.Helper()
	select {
	case m := <-reply:
		return m
	case <-c.done:
		c.t.Fatal("the command's output ended before its reply")
	case <-time.After(patience):
		c.t.Fatal("no reply from the command")
	}
	return Message{}
}

// Tool calls a tool with raw arguments, none if empty.
func (c *Stdio) Tool(name, arguments string) Message {
	c.t.Helper()
	return c.Call("tools/call", CallParams(name, arguments))
}

// Names returns the names of the tools that are listed.
func (c *Stdio) Names() []string {
	c.t.Helper()
	return namesOf(toolsOf(c.t, c.Call("tools/list", "")))
}

// Notify sends a notification.
func (c *Stdio) Notify(method, params string) {
	c.t.Helper()
	if c.Version == Modern {
		params = withMeta(params, Meta())
	}
	c.Send(Request("", method, params) + "\n")
}

// Close ends the input and returns how the command ended. It may be called again.
func (c *Stdio) Close() error {
	c.t.Helper()
	_ = c.stdin.Close()
	select {
	case <-c.done:
	case <-time.After(patience):
		c.t.Errorf("the command did not end after the end of its input")
		_ = c.cmd.Process.Kill()
	}
	err := c.cmd.Wait()
	if errors.As(err, new(*exec.ExitError)) {
		return err
	}
	return nil
}
