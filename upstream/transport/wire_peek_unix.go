//go:build unix

package transport

import "syscall"

// peek copies what has arrived on the socket into p and leaves it there. open is false
// if nothing more will come.
func (l *link) peek(p []byte) (n int, open bool) {
	if l.socket == nil {
		return 0, true
	}
	var failed error
	err := l.socket.Read(func(fd uintptr) bool {
		n, _, failed = syscall.Recvfrom(int(fd), p, syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true // never wait
	})
	switch {
	case err != nil:
		return 0, false
	case failed == syscall.EAGAIN || failed == syscall.EINTR:
		return 0, true
	case failed != nil:
		return 0, false
	}
	return n, n > 0
}
