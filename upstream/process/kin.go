//go:build unix

package process

import (
	"syscall"
	"time"
)

// A kin is everybody who belongs to a child: who is in its session or group, whoever descends from one of those, and who
// has one of the child's pipes as standard input, output or error. The last two find those that made sessions of their own.
type kin struct {
	leader int      // process, group and session id of the child
	pipes  []string // see pipeName
}

// signal sends to each member.
func (k kin) signal(sig syscall.Signal) {
	for _, pid := range k.members() {
		syscall.Kill(pid, sig)
	}
}

// leaveWithin waits until there are no members left.
func (k kin) leaveWithin(d time.Duration) bool {
	deadline := time.Now().Add(d)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if len(k.members()) == 0 {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
}
