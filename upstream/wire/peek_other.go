//go:build !unix

package wire

import "net"

// A glance cannot look into a socket here: whether it is still open shows when it is
// used.
type glance struct{}

func (glance) at(net.Conn) {}

func (l *link) peek() (arrived []byte, open bool) { return nil, true }
