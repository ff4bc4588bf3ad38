// Package run builds the command, starts it with a configuration of a test's own, and sees that it leaves nothing behind.
package run

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/test/fake"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// A Mainstem is a running `mainstem serve`.
type Mainstem struct {
	URL      string // http://127.0.0.1:PORT
	Addr     string
	StateDir string
	Pid      int

	t      testing.TB
	home   string
	judged bool // the test itself looks at how the process ends
	cmd    *exec.Cmd
	log    *log
	exited chan struct{} // closed when the process is gone
	code   int           // set before exited is closed
}

// Start runs `mainstem serve` and returns when it listens. It is stopped when the test ends, must then exit with 0 and leave no child.
// Variables are added to its environment as NAME=VALUE.
func Start(t testing.TB, c Config, env ...string) *Mainstem {
	t.Helper()
	return StartIn(t, t.TempDir(), c, env...)
}

// StartIn is Start with a folder of the test's choice for configuration and state, so that a second run finds what the first one kept.
func StartIn(t testing.TB, dir string, c Config, env ...string) *Mainstem {
	t.Helper()
	for range 5 {
		m := launch(t, dir, c, env)
		if m.listening() {
			t.Cleanup(func() { m.end() })
			return m
		}
		if !strings.Contains(m.Log(), "address already in use") {
			t.Fatalf("mainstem serve did not listen:\n%s", m.Log())
		}
	}
	t.Fatal("no free port")
	return nil
}

func launch(t testing.TB, dir string, c Config, env []string) *Mainstem {
	t.Helper()
	l := fake.Listen(t)
	addr := l.Addr().String()
	l.Close()
	m := &Mainstem{
		URL: "http://" + addr, Addr: addr, StateDir: filepath.Join(dir, "state"),
		t: t, home: dir, log: newLog(), exited: make(chan struct{}),
	}
	m.cmd = command(t, dir, c, env, "serve", "--listen", addr)
	m.cmd.Stderr, m.cmd.Stdout = m.log, m.log
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.Pid = m.cmd.Process.Pid
	go func() {
		_ = m.cmd.Wait()
		m.code = m.cmd.ProcessState.ExitCode()
		close(m.exited)
	}()
	return m
}

// command prepares a run of the binary with a file of its own. HOME marks every process that comes from it.
func command(t testing.TB, dir string, c Config, env []string, args ...string) *exec.Cmd {
	t.Helper()
	file := filepath.Join(dir, "mainstem.yaml")
	if err := os.WriteFile(file, c.file(filepath.Join(dir, "state")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(Binary(t), append(args, "--config", file)...)
	cmd.Dir = dir
	cmd.Env = append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TMPDIR=" + os.TempDir()}, env...)
	return cmd
}

// listening waits until the process answers; false means that it ended instead.
func (m *Mainstem) listening() bool {
	m.t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		select {
		case <-m.exited:
			return false
		case <-time.After(5 * time.Millisecond):
		}
		if w, err := http.Get(m.URL + "/healthz"); err == nil {
			w.Body.Close()
			return true
		}
	}
	m.t.Fatalf("mainstem serve does not answer:\n%s", m.Log())
	return false
}

// Endpoint returns the address of all servers together.
func (m *Mainstem) Endpoint() string { return m.URL + "/mcp" }

// One returns the address of one server alone.
func (m *Mainstem) One(server string) string { return m.URL + "/servers/" + server + "/mcp" }

// Eventually asks again and again until a condition holds. It is for states that nobody announces.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("waited in vain for %s", what)
}

// Log returns what the process wrote so far.
func (m *Mainstem) Log() string { return m.log.String() }

// WaitLog waits for a line that holds all of these texts.
func (m *Mainstem) WaitLog(texts ...string) string {
	m.t.Helper()
	line, ok := m.log.wait(texts, patience)
	if !ok {
		m.t.Fatalf("no line of the log holds %q:\n%s", texts, m.Log())
	}
	return line
}

// Signal sends a signal to the process alone.
func (m *Mainstem) Signal(s syscall.Signal) { _ = m.cmd.Process.Signal(s) }

// Kill ends the process in a way that it cannot prepare for.
func (m *Mainstem) Kill() {
	m.judged = true
	_ = m.cmd.Process.Kill()
	<-m.exited
}

// WaitExit waits for the end of the process and returns its exit code, and how long it took.
func (m *Mainstem) WaitExit(within time.Duration) (int, time.Duration) {
	m.t.Helper()
	m.judged = true
	start := time.Now()
	select {
	case <-m.exited:
		return m.code, time.Since(start)
	case <-time.After(within):
		m.t.Fatalf("mainstem serve did not end within %v", within)
		return 0, 0
	}
}

// Stop ends the process as its user would and returns its exit code.
func (m *Mainstem) Stop() int {
	m.t.Helper()
	m.Signal(syscall.SIGTERM)
	code, _ := m.WaitExit(patience)
	return code
}

// end stops the process and looks for what it left behind.
func (m *Mainstem) end() {
	m.Signal(syscall.SIGTERM)
	select {
	case <-m.exited:
	case <-time.After(patience):
		_ = m.cmd.Process.Kill()
		<-m.exited
		m.t.Errorf("mainstem serve did not end after SIGTERM")
	}
	if !m.judged && m.code != 0 {
		m.t.Errorf("mainstem serve ended with exit code %d", m.code)
	}
	if left := m.Descendants(); len(left) > 0 {
		m.t.Errorf("processes left behind: %v", left)
	}
	if strings.Contains(m.Log(), "DATA RACE") || strings.Contains(m.Log(), "goroutine 1 [") {
		m.t.Errorf("mainstem serve raced or panicked")
	}
	if m.t.Failed() {
		m.t.Logf("log of mainstem serve:\n%s", tail(m.Log(), 8000))
	}
}

func tail(text string, n int) string {
	if len(text) > n {
		return "…" + text[len(text)-n:]
	}
	return text
}

// A Result is how a command ended.
type Result struct {
	Code   int
	Stdout string
	Stderr string
}

// Command runs one command with a configuration.
func Command(t testing.TB, c Config, args ...string) Result {
	t.Helper()
	return finish(t, command(t, t.TempDir(), c, nil, args...))
}

// Prepare returns a command with a configuration that has not been started.
func Prepare(t testing.TB, c Config, env []string, args ...string) *exec.Cmd {
	t.Helper()
	return command(t, t.TempDir(), c, env, args...)
}

func finish(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(2*patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return Result{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}
