package fake

import (
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// Ports come from below the range from which the system takes them for outgoing connections: a server that is shut for a while gets its
// own back. Each process of tests has a block of them to itself.
const (
	firstPort = 20000
	blockSize = 500
	blocks    = 24
)

// block takes a block by holding its first port until the process ends; nil if all are taken.
var block = sync.OnceValue(func() net.Listener {
	for i := range blocks {
		port := firstPort + (os.Getpid()+i)%blocks*blockSize
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return l
		}
	}
	return nil
})

// ports counts those that were given out, so that none comes again soon.
var ports atomic.Int32

// Listen takes a free port of loopback.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	held := block()
	if held == nil {
		t.Fatal("no free block of ports")
	}
	first := held.Addr().(*net.TCPAddr).Port
	for range blockSize {
		port := first + 1 + int(ports.Add(1))%(blockSize-1)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return l
		}
	}
	t.Fatal("no free port")
	return nil
}
