//go:build unix

package wire

import (
	"net"
	"syscall"
)

// A glance looks at what has arrived on a socket and leaves it there. It is kept with
// the connection because it is made for each request.
type glance struct {
	socket syscall.RawConn // nil: it cannot be looked into
	recv   func(fd uintptr) bool
	seen   [maxPeek]byte
	n      int
	err    error
}

func (g *glance) at(conn net.Conn) {
	if c, ok := conn.(syscall.Conn); ok {
		g.socket, _ = c.SyscallConn() // nil after an error
	}
	g.recv = func(fd uintptr) bool {
		g.n, _, g.err = syscall.Recvfrom(int(fd), g.seen[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true // never wait
	}
}

// peek returns what has arrived, valid until the next peek. open is false if nothing
// more will come.
func (l *link) peek() (arrived []byte, open bool) {
	g := &l.look
	if g.socket == nil {
		return nil, true
	}
	switch err := g.socket.Read(g.recv); {
	case err != nil:
		return nil, false
	case g.err == syscall.EAGAIN || g.err == syscall.EINTR:
		return nil, true
	case g.err != nil:
		return nil, false
	}
	return g.seen[:g.n], g.n > 0
}
