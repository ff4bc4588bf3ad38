//go:build linux

package process

import (
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Should we die between the start of a child and the moment when the watcher is told its number, the watcher finds the child, and
// what it has started, by the pipe.
func TestWatchOfAnUntoldChild(t *testing.T) {
	for _, told := range []string{"", "not a number\n"} {
		var p pipes
		if err := p.open(); err != nil {
			t.Fatal(err)
		}
		w, err := startWatch(p.stdout[0])
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sh", "-c", "sleep 60 & echo ready; sleep 60")
		cmd.Stdout, cmd.SysProcAttr = p.stdout[1], &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p.closeTheirs()
		ready := make([]byte, 6)
		if _, err := io.ReadFull(p.stdout[0], ready); err != nil {
			t.Fatal(err)
		}
		w.life.WriteString(told)
		w.life.Close()
		p.stdout[0].SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadAll(p.stdout[0]); err != nil { // ends when both are dead
			t.Errorf("told %q: %v", told, err)
		}
		cmd.Process.Kill()
		cmd.Wait()
		w.cmd.Wait()
		p.closeOurs()
	}
}

// The watcher of a child that did not start, or has ended, does nothing.
func TestWatchLetGo(t *testing.T) {
	for _, tell := range []bool{false, true} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		watcher, err := startWatch(r)
		if err != nil {
			t.Fatal(err)
		}
		if tell {
			watcher.watch(os.Getpid()) // were it to act, this test would end here
		}
		watcher.end()
		if !watcher.cmd.ProcessState.Success() {
			t.Errorf("watcher: %v", watcher.cmd.ProcessState)
		}
		r.Close()
		w.Close()
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (a) S 1 2 3 4"))
	f.Add([]byte("12 (a) b\n(c)) Z 1 2 3 4"))
	f.Add([]byte(") ("))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if r, ok := parseStat(stat); ok && r.pid <= 0 {
			t.Errorf("%q: process %d", stat, r.pid)
		}
	})
}

func FuzzLineCutter(f *testing.F) {
	f.Add([]byte("a\r\n\nb\xff"), 3)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		var whole, pieces []string
		cut(in, len(in)+1, &whole)
		cut(in, max(size, 1), &pieces)
		if len(whole) != len(pieces) {
			t.Fatalf("%d lines, %d in pieces", len(whole), len(pieces))
		}
		for i := range whole {
			if whole[i] != pieces[i] || len(whole[i]) > 3*maxLine { // an invalid byte becomes three
				t.Errorf("line %q, in pieces %q", whole[i], pieces[i])
			}
		}
	})
}

func cut(in []byte, size int, into *[]string) {
	c := lineCutter{emit: func(line string) { *into = append(*into, line) }}
	for len(in) > 0 {
		n := min(size, len(in))
		c.write(in[:n])
		in = in[n:]
	}
	c.end()
}
