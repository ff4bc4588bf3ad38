package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// A relation is what /proc tells about one process.
type relation struct {
	pid, parent, group, session int
	dead                        bool // but not yet waited for
}

// members lists the living members in no particular order.
func (k kin) members() []int {
	others := slices.DeleteFunc(processes(), func(r relation) bool {
		if r.dead {
			k.bury(r)
		}
		return r.dead
	})
	var found []int
	for {
		before := len(found)
		rest := others[:0]
		for _, r := range others {
			if r.session == k.leader || r.group == k.leader || slices.Contains(found, r.parent) || before == 0 && k.holdsPipe(r.pid) {
				found = append(found, r.pid)
			} else {
				rest = append(rest, r)
			}
		}
		if others = rest; len(found) == before {
			return found
		}
	}
}

// bury waits for a dead orphan. Where we are the first process of a container, orphans become our children, and nobody else
// can do it. Of the child itself os/exec takes care.
func (k kin) bury(r relation) {
	if r.parent == os.Getpid() && r.session == k.leader && r.pid != k.leader {
		syscall.Wait4(r.pid, nil, syscall.WNOHANG, nil)
	}
}

// holdsPipe looks at standard input, output and error only: we, too, hold ends of these pipes, but elsewhere.
func (k kin) holdsPipe(pid int) bool {
	for fd := range 3 {
		target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
		if err == nil && slices.Contains(k.pipes, target) {
			return true
		}
	}
	return false
}

// processes lists everybody but ourselves.
func processes() []relation {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	all := make([]relation, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if stat, err := os.ReadFile("/proc/" + name + "/stat"); err == nil {
			if r, ok := parseStat(stat); ok {
				all = append(all, r)
			}
		}
	}
	return all
}

// parseStat reads "pid (name) state parent group session …"; the name may contain anything.
func parseStat(stat []byte) (r relation, ok bool) {
	open, shut := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || shut < open {
		return r, false
	}
	fields := bytes.Fields(stat[shut+1:])
	if len(fields) < 4 {
		return r, false
	}
	r.pid, _ = strconv.Atoi(string(bytes.TrimSpace(stat[:open])))
	r.dead = fields[0][0] == 'Z' || fields[0][0] == 'X'
	r.parent, _ = strconv.Atoi(string(fields[1]))
	r.group, _ = strconv.Atoi(string(fields[2]))
	r.session, _ = strconv.Atoi(string(fields[3]))
	return r, r.pid > 0
}

// pipeName names a pipe as /proc/PID/fd does.
func pipeName(f *os.File) (string, bool) {
	info, err := f.Stat()
	if err != nil {
		return "", false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", false
	}
	return fmt.Sprintf("pipe:[%d]", stat.Ino), true
}

// reopen opens our end of a pipe a second time. A copy of the descriptor would not do: whoever starts a process with one makes
// it blocking, and ours with it.
func reopen(pipe *os.File) (*os.File, error) {
	conn, err := pipe.SyscallConn()
	if err != nil {
		return nil, err
	}
	var same *os.File
	controlled := conn.Control(func(fd uintptr) { same, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", fd)) })
	return same, errors.Join(controlled, err)
}
