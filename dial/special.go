package dial

import (
	"encoding/binary"
	"net/netip"
)

type block struct {
	prefix netip.Prefix
	kind   string // with its article, for the error
}

// blocks4 is the IANA registry of special-purpose IPv4 addresses, less what is globally reachable, with the names that
// people know.
var blocks4 = []block{
	{netip.MustParsePrefix("0.0.0.0/8"), "an address of this host"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private address"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a shared (carrier) address"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud platform's internal address"}, // public by its number only
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private address"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a protocol address"},
	{netip.MustParsePrefix("192.0.2.0/24"), "a documentation address"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay address"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private address"},
	{netip.MustParsePrefix("198.18.0.0/15"), "a benchmarking address"},
	{netip.MustParsePrefix("198.51.100.0/24"), "a documentation address"},
	{netip.MustParsePrefix("203.0.113.0/24"), "a documentation address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "the broadcast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},
}

// blocks6 names what must not be reached; what stands in no row must at least be in globalUnicast.
var blocks6 = []block{
	{netip.MustParsePrefix("::/128"), "an address of this host"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("100::/64"), "a discard address"},
	{netip.MustParsePrefix("2001::/23"), "a protocol address"}, // Teredo, ORCHID, benchmarking
	{netip.MustParsePrefix("2001:db8::/32"), "a documentation address"},
	{netip.MustParsePrefix("3fff::/20"), "a documentation address"},
	{netip.MustParsePrefix("fc00::/7"), "a private (unique local) address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fec0::/10"), "a site-local address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
}

var (
	globalUnicast = netip.MustParsePrefix("2000::/3") // all that IANA gives out so far
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour     = netip.MustParsePrefix("2002::/16")
)

// ISATAP: the second half of such an address begins with these four bytes; one bit of them says whether it is unique.
const (
	isatap       = 0x00005efe
	isatapUnique = 0x02000000
)

// special returns what kind of address a is, "" for an ordinary public one. The address is unmapped and without a zone.
func special(a netip.Addr) string {
	if !a.IsValid() {
		return "no address"
	}
	rows := blocks4
	if a.Is6() {
		rows = blocks6
	}
	for _, row := range rows {
		if row.prefix.Contains(a) {
			return row.kind
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) && !nat64.Contains(a) {
		return "a reserved address"
	}
	return ""
}

// embedded finds the IPv4 address to which a translator or a tunnel would take what is sent to an IPv6 one. The other forms
// that embed one (compatible, translated, local NAT64, Teredo) are special as a whole.
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case binary.BigEndian.Uint32(b[8:])&^isatapUnique == isatap:
		return netip.AddrFrom4([4]byte(b[12:])), true
	}
	return netip.Addr{}, false
}
