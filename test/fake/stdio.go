package fake

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Stdio makes a server that its client starts with Command. The process is a puppet: what it reads comes here, and it says what it
// is told to. The test's binary must call Main first.
func Stdio(t testing.TB, o Options) *Server {
	t.Helper()
	s := newServer(o)
	l := Listen(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.Command = []string{self, puppetArg, l.Addr().String()}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.process(conn)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		for _, p := range s.Processes() {
			p.conn.Close() // ends the puppet, whatever it was told to ignore
		}
	})
	return s
}

// A Process is one process of a stdio server, or one that it started.
type Process struct {
	Pid  int
	Role string // empty for the server itself
	Env  []string
	Args []string
	Dir  string

	conn   net.Conn
	split  bool
	mu     sync.Mutex // guards writing to conn
	ended  context.Context
	finish context.CancelFunc
}

// Processes returns all processes that ever were, in the order in which they started.
func (s *Server) Processes() []*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.processes)
}

// WaitProcesses returns the processes as soon as there were at least n.
func (s *Server) WaitProcesses(t testing.TB, n int) []*Process {
	t.Helper()
	s.Wait(t, "START", n)
	return s.Processes()
}

// process talks to one puppet until it is gone.
func (s *Server) process(conn net.Conn) {
	defer conn.Close()
	in := json.NewDecoder(bufio.NewReader(conn))
	var hello report
	if in.Decode(&hello) != nil {
		return
	}
	p := &Process{Pid: hello.Pid, Role: hello.Role, Env: hello.Env, Args: hello.Args, Dir: hello.Dir, conn: conn, split: s.opt.Framing.Split}
	p.ended, p.finish = context.WithCancel(context.Background())
	defer p.finish()
	s.mu.Lock()
	s.processes = append(s.processes, p)
	s.mu.Unlock()
	s.add(Received{Method: "START", Process: p})
	if s.opt.Started != nil {
		s.opt.Started(p)
	}
	if p.Role == "" {
		defer s.addFeed(&feed{send: p.message})()
	}
	p.order(order{Begin: true})
	for {
		var r report
		if in.Decode(&r) != nil {
			return
		}
		got := Received{Body: r.Line, Process: p, Method: r.Event}
		if r.Event == "" {
			got.parse()
		}
		s.add(got)
		if r.Event == "" {
			s.take(p.ended, got, p)
		}
	}
}

func (p *Process) order(o order) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = json.NewEncoder(p.conn).Encode(o)
}

func (p *Process) message(m []byte) { p.raw(append(m, '\n')) }
func (p *Process) reply(m []byte)   { p.message(m) }
func (p *Process) raw(b []byte)     { p.order(order{Out: b, Split: p.split}) }
func (p *Process) drop()            { p.Exit(1); runtime.Goexit() }

// Stdout makes the process write to its standard output.
func (p *Process) Stdout(text string) { p.raw([]byte(text)) }

// Stderr makes the process write to its standard error.
func (p *Process) Stderr(text string) { p.order(order{Err: []byte(text)}) }

// Exit ends the process.
func (p *Process) Exit(code int) { p.order(order{Exit: &code}) }

// Stubborn makes the process go on after the end of its input and after SIGTERM.
func (p *Process) Stubborn() { p.order(order{Stubborn: true}) }

// Spawn makes the process start one of its own, which is as stubborn and holds the same pipes.
func (p *Process) Spawn() { p.order(order{Spawn: true}) }

// Deafen makes the process read nothing after the next message.
func (p *Process) Deafen() { p.order(order{Deaf: true}) }

// Kill ends the process from outside, as the system does when memory is short.
func (p *Process) Kill() { _ = syscall.Kill(p.Pid, syscall.SIGKILL) }

// WaitGone waits for the end of the process; it fails the test after the given time.
func (p *Process) WaitGone(t testing.TB, within time.Duration) {
	t.Helper()
	select {
	case <-p.ended.Done():
	case <-time.After(within):
		t.Errorf("process %d %s is alive after %v", p.Pid, p.Role, within)
	}
}
