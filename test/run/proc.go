package run

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Descendants returns the processes that came from this one, by the HOME that they inherited. It knows none where there is no /proc.
func (m *Mainstem) Descendants() []string {
	var left []string
	mark := []byte("HOME=" + m.home + "\x00")
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environments {
		pid := strings.Split(path, "/")[2]
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(env, mark) || pid == fmt.Sprint(m.Pid) {
			continue
		}
		line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		left = append(left, pid+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	}
	return left
}

// Memory returns the resident memory of the process in bytes; 0 with the race detector, which needs much more.
func (m *Mainstem) Memory() int {
	m.t.Helper()
	if race {
		return 0
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", m.Pid))
	if err != nil {
		m.t.Skip("no /proc to read memory from")
	}
	var size, resident int
	_, _ = fmt.Sscan(string(b), &size, &resident)
	return resident * os.Getpagesize()
}

// Files returns how many file descriptors the process has open.
func (m *Mainstem) Files() int {
	m.t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", m.Pid))
	if err != nil {
		m.t.Skip("no /proc to count file descriptors")
	}
	return len(files)
}
