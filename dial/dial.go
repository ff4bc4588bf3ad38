// Package dial knows which addresses may be reached, and decides it after DNS, when the connection is made.
package dial

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	connectTimeout = 30 * time.Second
	keepAlive      = 30 * time.Second
)

// A Policy says where we connect. It never changes and may be used from any goroutine.
type Policy struct {
	allowed []netip.Prefix
}

// New returns the policy that lets strangers name public addresses and those in allowPrivate (`network.allow_private`).
func New(allowPrivate []netip.Prefix) *Policy {
	p := &Policy{}
	for _, prefix := range allowPrivate {
		p.allowed = append(p.allowed, unmapPrefix(prefix).Masked())
	}
	return p
}

// Operator dials addresses that the operator wrote in the configuration: anything.
func (p *Policy) Operator() func(ctx context.Context, network, addr string) (net.Conn, error) {
	return dialer(nil)
}

// Stranger dials addresses that somebody else named: a redirect, a server's metadata, a person in the console. The check is
// made on the address that is about to be connected to, so a name that resolves differently each time gains nothing.
func (p *Policy) Stranger() func(ctx context.Context, network, addr string) (net.Conn, error) {
	return dialer(func(network, addr string, _ syscall.RawConn) error {
		if !strings.HasPrefix(network, "tcp") {
			return fmt.Errorf("network %s is not allowed here", network)
		}
		target, err := netip.ParseAddrPort(addr)
		if err != nil {
			return err
		}
		return p.Check(target.Addr())
	})
}

// Check tells why a stranger may not send us to an address, or returns nil.
func (p *Policy) Check(a netip.Addr) error {
	a = a.WithZone("").Unmap()
	if p.allows(a) {
		return nil
	}
	kind, shown := special(a), a.String()
	if inner, ok := embedded(a); ok && kind == "" {
		if p.allows(inner) {
			return nil
		}
		kind, shown = special(inner), fmt.Sprintf("%s (in %s)", inner, a)
	}
	if kind == "" {
		return nil
	}
	return fmt.Errorf("%s is %s; network.allow_private must list it", shown, kind)
}

func (p *Policy) allows(a netip.Addr) bool {
	return slices.ContainsFunc(p.allowed, func(prefix netip.Prefix) bool { return prefix.Contains(a) })
}

func dialer(control func(network, addr string, c syscall.RawConn) error) func(context.Context, string, string) (net.Conn, error) {
	return (&net.Dialer{Timeout: connectTimeout, KeepAlive: keepAlive, Control: control}).DialContext
}

// unmapPrefix makes ::ffff:10.0.0.0/104 mean 10.0.0.0/8: addresses are compared unmapped.
func unmapPrefix(prefix netip.Prefix) netip.Prefix {
	if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
		return netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
	}
	return prefix
}
