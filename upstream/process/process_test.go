//go:build linux

package process_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/mainstem-mcp/mainstem/upstream/process"
)

// The test binary is also the children: "helper NAME TAG".
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "helper" {
		time.AfterFunc(time.Minute, func() { os.Exit(99) }) // never a burden, whatever the test does
		helper(os.Args[2], os.Args[3:])
		os.Exit(0)
	}
	code := m.Run()
	if left := goroutines(); left != "" && code == 0 {
		fmt.Fprintf(os.Stderr, "goroutines left:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// goroutines returns the stacks if any is ours, and stays so.
func goroutines() string {
	buf := make([]byte, 1<<20)
	for range 100 {
		stacks := string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "process.(*") {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	return string(buf)
}

func helper(name string, args []string) {
	switch name {
	case "linger": // ignores what can be ignored
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		fmt.Println("ready")
		select {}
	case "polite": // goes at SIGTERM only
		fmt.Println("ready")
		select {}
	case "cat":
		io.Copy(os.Stdout, os.Stdin)
		fmt.Println("last words")
	case "owner": // is killed with a child
		c := process.Command{Argv: []string{"/bin/sh", "-c", args[0]}, Env: os.Environ()}
		p, err := process.Start(c)
		if err != nil {
			fmt.Println(err)
			return
		}
		io.CopyN(os.Stdout, p.Stdout, int64(len("ready\n")))
		if len(args) > 1 { // exits by itself, without Stop
			return
		}
		select {}
	}
}

// family is a command line of helpers that all carry tag.
func family(t *testing.T, script string) (line, tag string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// the end mark keeps a test from taking another one, whose name begins alike, for its own
	tag = fmt.Sprintf("tag-%d-%s.", os.Getpid(), strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '-'
	}, t.Name()))
	t.Cleanup(func() {
		for _, pid := range alive(tag) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	for _, name := range []string{"linger", "polite", "cat"} {
		script = strings.ReplaceAll(script, strings.ToUpper(name), exe+" helper "+name+" "+tag)
	}
	return script, tag
}

// alive lists living processes whose command line has the tag.
func alive(tag string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, _ := os.ReadFile(dir + "/cmdline") // empty of the dead
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if bytes.Contains(line, []byte(tag)) && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

func waitNone(t *testing.T, tag string, within time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		left := alive(tag)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still alive after %v: %v", within, left)
		}
	}
}

func start(t *testing.T, c process.Command) *process.Process {
	t.Helper()
	if c.Env == nil {
		c.Env = process.Environment(nil, nil, os.Environ())
	}
	p, err := process.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func firstLine(t *testing.T, r io.Reader) string {
	t.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("first line: %q, %v", line, err)
	}
	return strings.TrimSpace(line)
}

func TestStopC164(t *testing.T) {
	for _, test := range []struct {
		name   string
		script string
		within time.Duration
	}{
		{"goes when its input ends", "CAT", 2 * time.Second},
		{"goes at SIGTERM", "POLITE", 3 * time.Second},
		{"C166 ignores both", "LINGER", 6 * time.Second},
		{"a wrapper's server", "LINGER; true", 6 * time.Second},
		{"a wrapper of a wrapper", `sh -c "LINGER; true"; true`, 6 * time.Second},
		{"in the background", "LINGER & wait", 6 * time.Second},
		{"in a group of its own", "timeout 1000 LINGER; true", 6 * time.Second},
		{"in a session of its own", "setsid LINGER & wait", 6 * time.Second},
		{"orphan in a session of its own", "(setsid LINGER &); cat", 6 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			line, tag := family(t, test.script)
			p := start(t, process.Command{Argv: []string{"/bin/sh", "-c", line}})
			if !strings.HasPrefix(test.script, "CAT") {
				firstLine(t, p.Stdout)
			}
			began := time.Now()
			p.Stop()
			if took := time.Since(began); took > test.within {
				t.Errorf("Stop took %v, want at most %v", took, test.within)
			}
			if left := alive(tag); len(left) > 0 {
				t.Errorf("still alive: %v", left)
			}
			select {
			case <-p.Done():
			default:
				t.Error("not done after Stop")
			}
			p.Stop()
		})
	}
}

// A server that ends by itself, or crashes, leaves nobody behind either, and nobody has to call Stop for that.
func TestOrphansOfAServerThatEnded(t *testing.T) {
	for _, script := range []string{"LINGER & read x; exit 3", "setsid LINGER & read x; exit 3", "LINGER & read x; kill -9 $$"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			line, tag := family(t, script)
			p := start(t, process.Command{Argv: []string{"/bin/sh", "-c", line}})
			firstLine(t, p.Stdout)
			io.WriteString(p.Stdin, "\n")
			<-p.Done()
			waitNone(t, tag, 3*time.Second)
			want := "exit status 3"
			if strings.Contains(script, "kill") {
				want = "signal: killed"
			}
			if err := p.Err(); err == nil || err.Error() != want {
				t.Errorf("Err = %v, want %s", err, want)
			}
		})
	}
}

func TestOwnerKilled(t *testing.T) {
	exe, _ := os.Executable()
	for _, test := range []struct {
		name, script string
		exits        bool
		group        bool // the kill goes to the whole group of the owner
	}{
		{name: "killed", script: "exec LINGER"},
		{name: "killed with its group", script: "exec LINGER", group: true},
		{name: "grandchild", script: "LINGER; true"},
		{name: "grandchild in a session of its own", script: "setsid LINGER & wait"},
		{name: "orphan in a group of its own", script: "(timeout 1000 LINGER &); cat; cat"},
		{name: "orphan in a session of its own", script: "(setsid LINGER &); cat; cat"},
		{name: "many", script: "LINGER & LINGER & LINGER & (LINGER & LINGER) & wait"},
		{name: "exits", script: "LINGER; true", exits: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			line, tag := family(t, test.script)
			args := []string{"helper", "owner", line}
			if test.exits {
				args = append(args, "exits")
			}
			owner := exec.Command(exe, args...)
			owner.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out, err := owner.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := owner.Start(); err != nil {
				t.Fatal(err)
			}
			if got := firstLine(t, out); got != "ready" {
				t.Fatalf("owner says %q", got)
			}
			if len(alive(tag)) < 2 && !test.exits { // the owner's own command line has the tag, too
				t.Fatal("no family")
			}
			target := owner.Process.Pid
			if test.group {
				target = -target
			}
			if !test.exits {
				syscall.Kill(target, syscall.SIGKILL)
			}
			owner.Wait()
			waitNone(t, tag, 5*time.Second)
		})
	}
}

// The watcher goes with its child, and does not multiply.
func TestWatchersEnd(t *testing.T) {
	children := func() (n int) {
		all, _ := filepath.Glob("/proc/self/task/*/children")
		for _, file := range all {
			list, _ := os.ReadFile(file)
			n += len(strings.Fields(string(list)))
		}
		return n
	}
	before := children()
	for range 5 {
		p := start(t, process.Command{Argv: []string{"cat"}})
		p.Stop()
	}
	if _, err := process.Start(process.Command{Argv: []string{noInterpreter(t)}}); err == nil {
		t.Error("a script without an interpreter was started")
	}
	if after := children(); after > before {
		t.Errorf("%d children, %d before", after, before)
	}
}

func noInterpreter(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "script")
	os.WriteFile(file, []byte("#!/no/such/interpreter\n"), 0o700)
	return file
}

// C166: what the child had finished is not held back because it is being stopped.
func TestLastWordsAreRead(t *testing.T) {
	line, _ := family(t, "CAT")
	p := start(t, process.Command{Argv: []string{"/bin/sh", "-c", line}})
	io.WriteString(p.Stdin, "one\n")
	got := make(chan string)
	go func() {
		all, _ := io.ReadAll(p.Stdout)
		got <- string(all)
	}()
	p.Stop()
	if all := <-got; all != "one\nlast words\n" {
		t.Errorf("read %q", all)
	}
}

func TestOwnSession(t *testing.T) {
	p := start(t, process.Command{Argv: []string{"/bin/sh", "-c", "cut -d' ' -f1,5,6 /proc/$$/stat; cat"}})
	if got, want := firstLine(t, p.Stdout), fmt.Sprintf("%d %[1]d %[1]d", p.Pid()); got != want {
		t.Errorf("pid, group, session = %s, want %s", got, want)
	}
}

// C163: standard error is always read, and the last of it kept.
func TestStderrC163(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	p := start(t, process.Command{
		Argv: []string{"/bin/sh", "-c", `head -c 300000 /dev/zero | tr '\0' x >&2; echo >&2; printf 'caf\351\r\n\n' >&2; echo last >&2; echo reply; exit 7`},
		Stderr: func(line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		},
	})
	if got := firstLine(t, p.Stdout); got != "reply" {
		t.Errorf("reply %q", got)
	}
	<-p.Done()
	if got := p.Err().Error(); got != "exit status 7" {
		t.Errorf("Err = %s", got)
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{strings.Repeat("x", 4096), "caf\uFFFD", "last"}
	if !slices.Equal(lines, want) {
		t.Errorf("%d lines, want 3: %.60q", len(lines), lines)
	}
	if got := p.StderrTail(); got != strings.Join(want, "\n") {
		t.Errorf("tail of %d bytes", len(got))
	}
}

func TestStderrTailIsBounded(t *testing.T) {
	p := start(t, process.Command{Argv: []string{"/bin/sh", "-c", `i=0; while [ $i -lt 3000 ]; do echo "line $i" >&2; i=$((i+1)); done`}})
	<-p.Done()
	tail := p.StderrTail()
	if len(tail) > 8<<10 || !strings.HasSuffix(tail, "line 2998\nline 2999") {
		t.Errorf("%d bytes, ends in %.30q", len(tail), tail[max(0, len(tail)-30):])
	}
}

func TestManyStopsAtOnce(t *testing.T) {
	p := start(t, process.Command{Argv: []string{"cat"}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(p.Stop)
	}
	wg.Wait()
	if p.Err() == nil {
		t.Error("no exit status")
	}
}

func readAll(t *testing.T, p *process.Process) string {
	t.Helper()
	all, err := io.ReadAll(p.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// The watcher must not hold the pipes open: that they were closed tells something.
func TestPipesEnd(t *testing.T) {
	p := start(t, process.Command{Argv: []string{"/bin/sh", "-c", "exec <&- >&-; sleep 60"}})
	if all := readAll(t, p); all != "" {
		t.Errorf("read %q", all)
	}
	if _, err := p.Stdin.Write(make([]byte, 1<<20)); err == nil {
		t.Error("written to nobody")
	}
	select {
	case <-p.Done():
		t.Error("ended")
	default:
	}
}
