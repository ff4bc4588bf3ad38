//go:build unix

// Package process runs one child in a session of its own and leaves nothing of it behind, however the child, or we, end.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// How a child is stopped: less than six seconds in all.
const (
	graceInput  = 2 * time.Second // after its standard input was closed
	graceTerm   = 2 * time.Second // after SIGTERM
	graceKill   = time.Second     // after SIGKILL, for the kernel to clean up
	graceOrphan = time.Second     // after SIGTERM, for those that the child itself left behind
)

// stderrGrace is how long the end of the child waits for its last words.
const stderrGrace = 100 * time.Millisecond

// A Command says what to run.
type Command struct {
	Argv   []string          // see Argv
	Env    []string          // all of it, see Environment
	Dir    string            // "": ours
	Stderr func(line string) // called with each line by one goroutine; may be nil
}

// A Process is a running child and all its descendants. Whoever started it calls Stop in the end, also when the child has
// ended by itself.
type Process struct {
	// set by Start, never changed
	Stdin  *os.File // a write deadline may be set
	Stdout *os.File // ends when the child and all that it started have gone

	cmd    *exec.Cmd
	kin    kin
	watch  *watch
	stderr *stderr
	done   chan struct{} // closed when the child has ended and err is set
	gone   chan struct{} // closed when nobody of the family is left, or nothing more can be done
	err    error

	stopping sync.Once
	stopped  chan struct{} // closed by the first Stop
}

// Start starts a child, and a watcher that ends the whole family should we die without a word.
func Start(c Command) (*Process, error) {
	path, err := find(c)
	if err != nil {
		return nil, err
	}
	var p pipes
	if err := p.open(); err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	defer p.closeTheirs()
	w, err := startWatch(p.stdout[0])
	if err != nil {
		p.closeOurs()
		return nil, fmt.Errorf("process: start the watcher: %w", err)
	}
	cmd := c.at(path, &p)
	if err := cmd.Start(); err != nil {
		w.end()
		p.closeOurs()
		return nil, startError(c, err)
	}
	w.watch(cmd.Process.Pid)
	child := &Process{
		Stdin: p.stdin[1], Stdout: p.stdout[0],
		cmd: cmd, watch: w,
		kin:    kin{leader: cmd.Process.Pid, pipes: p.names()},
		stderr: newStderr(p.stderr[0], c.Stderr),
		done:   make(chan struct{}), gone: make(chan struct{}), stopped: make(chan struct{}),
	}
	go child.stderr.run()
	go child.wait()
	return child, nil
}

// at is the command, found at path, with its ends of the pipes.
func (c Command) at(path string, p *pipes) *exec.Cmd {
	return &exec.Cmd{
		Path:   path,
		Args:   c.Argv,
		Env:    append([]string{}, c.Env...), // nil would mean ours
		Dir:    c.Dir,
		Stdin:  p.stdin[0],
		Stdout: p.stdout[1],
		Stderr: p.stderr[1],
		// A session contains every process group that the child may make, and has no terminal to ask for passwords.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
}

// Pid is the process id of the child, which is also that of its group and its session.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended. Others of its family may still be about until Stop returns.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the child ended ("exit status 1", "signal: killed"). It is nil until Done is closed.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// StderrTail is the last of what the child wrote to its standard error.
func (p *Process) StderrTail() string { return p.stderr.text() }

// Stop closes the child's standard input, then sends SIGTERM, then SIGKILL to the child and every descendant, and returns
// within six seconds, when none is left. What the child still writes can be read until then; Stdout is closed afterwards.
func (p *Process) Stop() {
	p.stopping.Do(func() { close(p.stopped) })
	<-p.gone
	p.Stdout.Close()
}

// wait lives as long as the family does.
func (p *Process) wait() {
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		p.cmd.Wait()
	}()
	select {
	case <-exited:
		p.finish()
		p.endOrphans()
	case <-p.stopped:
		p.endAll(exited)
	}
	p.watch.end()
	p.stderr.close() // only somebody whom we could not kill still holds the other end
	close(p.gone)
}

// finish publishes how the child ended.
func (p *Process) finish() {
	select {
	case <-p.stderr.ended:
	case <-time.After(stderrGrace):
	}
	p.err = errors.New(p.cmd.ProcessState.String())
	close(p.done)
}

// endOrphans ends those that a child which ended by itself left behind.
func (p *Process) endOrphans() {
	p.Stdin.Close()
	if len(p.kin.members()) == 0 {
		return
	}
	p.kin.signal(syscall.SIGTERM)
	if !p.kin.leaveWithin(graceOrphan) {
		p.kill()
	}
}

// endAll ends a child that is running. Its family may live longer than it does, and is given the same time.
func (p *Process) endAll(exited <-chan struct{}) {
	p.Stdin.Close()
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		<-exited
		p.finish()
	}()
	if !p.leave(exited, graceInput) {
		p.kin.signal(syscall.SIGTERM)
		if !p.leave(exited, graceTerm) {
			p.kill()
		}
	}
	select {
	case <-announced:
	case <-time.After(graceKill): // the kernel itself holds it: nobody can do more
	}
}

// leave waits for the child, then for the rest.
func (p *Process) leave(exited <-chan struct{}, grace time.Duration) bool {
	deadline := time.Now().Add(grace)
	select {
	case <-exited:
		return p.kin.leaveWithin(time.Until(deadline))
	case <-time.After(grace):
		return false
	}
}

// kill repeats itself, because a process that is being killed may be starting another one.
func (p *Process) kill() {
	deadline := time.Now().Add(graceKill)
	for {
		p.kin.signal(syscall.SIGKILL)
		if p.kin.leaveWithin(20*time.Millisecond) || time.Now().After(deadline) {
			return
		}
	}
}

// pipes are those between us and a child: [0] is read, [1] is written.
type pipes struct{ stdin, stdout, stderr [2]*os.File }

func (p *pipes) open() (err error) {
	for _, pair := range []*[2]*os.File{&p.stdin, &p.stdout, &p.stderr} {
		if pair[0], pair[1], err = os.Pipe(); err != nil {
			p.closeTheirs()
			p.closeOurs()
			return err
		}
	}
	return nil
}

func (p *pipes) closeTheirs() { closeAll(p.stdin[0], p.stdout[1], p.stderr[1]) }
func (p *pipes) closeOurs()   { closeAll(p.stdin[1], p.stdout[0], p.stderr[0]) }

// names are the pipes as they show in the list of a process's open files.
func (p *pipes) names() []string {
	var names []string
	for _, f := range []*os.File{p.stdin[1], p.stdout[0], p.stderr[0]} {
		if name, ok := pipeName(f); ok {
			names = append(names, name)
		}
	}
	return names
}

func closeAll(files ...io.Closer) {
	for _, f := range files {
		f.Close() // a nil *os.File only says so
	}
}
