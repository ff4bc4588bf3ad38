package dial_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/dial"
)

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		addr string
		want string // part of the error, "" for a public address
	}{
		{"8.8.8.8", ""}, {"1.1.1.1", ""}, {"100.63.255.255", ""}, {"100.128.0.0", ""}, {"172.15.255.255", ""}, {"172.32.0.0", ""},
		{"192.0.1.0", ""}, {"198.17.255.255", ""}, {"198.20.0.0", ""}, {"223.255.255.255", ""}, {"169.253.255.255", ""}, {"11.0.0.0", ""},
		{"0.0.0.0", "this host"}, {"0.1.2.3", "this host"},
		{"10.0.0.1", "private"}, {"172.16.0.1", "private"}, {"172.31.255.255", "private"}, {"192.168.1.1", "private"},
		{"100.64.0.1", "shared"}, {"100.100.100.200", "shared"}, {"100.127.255.255", "shared"},
		{"127.0.0.1", "loopback"}, {"127.255.255.254", "loopback"},
		{"168.63.129.16", "cloud"}, {"169.254.169.254", "link-local"},
		{"192.0.0.192", "protocol"}, {"192.0.2.1", "documentation"}, {"198.51.100.7", "documentation"}, {"203.0.113.7", "documentation"},
		{"192.88.99.1", "6to4 relay"}, {"198.18.0.1", "benchmarking"}, {"198.19.255.255", "benchmarking"},
		{"224.0.0.1", "multicast"}, {"239.255.255.255", "multicast"}, {"240.0.0.1", "reserved"}, {"255.255.255.255", "broadcast"},

		{"2606:4700::1111", ""}, {"2a00:1450::1", ""}, {"2001:200::1", ""}, {"2620:4f:8000::1", ""},
		{"::", "this host"}, {"::1", "loopback"}, {"::2", "reserved"}, {"100::1", "discard"},
		{"fc00::1", "private"}, {"fd00:ec2::254", "private"}, {"fe80::1", "link-local"}, {"fe80::1%eth0", "link-local"},
		{"febf::1", "link-local"}, {"fec0::1", "site-local"}, {"ff02::1", "multicast"},
		{"2001::1", "protocol"}, {"2001:2::1", "protocol"}, {"2001:1ff::1", "protocol"}, {"2001:db8::1", "documentation"}, {"3fff::1", "documentation"},
		{"5f00::1", "reserved"}, {"4000::1", "reserved"}, {"1::1", "reserved"},

		{"::ffff:8.8.8.8", ""}, {"::ffff:127.0.0.1", "loopback"}, {"::ffff:169.254.169.254", "link-local"}, {"::ffff:10.1.2.3", "private"},
		{"::127.0.0.1", "reserved"}, {"::8.8.8.8", "reserved"}, {"::ffff:0:127.0.0.1", "reserved"},
		{"64:ff9b::8.8.8.8", ""}, {"64:ff9b::127.0.0.1", "loopback"}, {"64:ff9b::169.254.169.254", "link-local"}, {"64:ff9b::10.1.2.3", "private"},
		{"64:ff9b:1::a00:1", "reserved"},
		{"2002:808:808::1", ""}, {"2002:7f00:1::1", "loopback"}, {"2002:c0a8:101::1", "private"}, {"2002:a9fe:a9fe::", "link-local"},
		{"2606:4700::5efe:10.0.0.1", "private"}, {"2606:4700::200:5efe:127.0.0.1", "loopback"}, {"fe80::5efe:8.8.8.8", "link-local"},
		{"2001:0:a00:1::f5ff:fffe", "protocol"},
	} {
		t.Run(test.addr, func(t *testing.T) {
			err := dial.New(nil).Check(netip.MustParseAddr(test.addr))
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && err == nil:
				t.Errorf("allowed, want %s", test.want)
			case test.want != "" && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "network.allow_private")):
				t.Errorf("error %q, want %s and network.allow_private", err, test.want)
			}
		})
	}
	if dial.New(nil).Check(netip.Addr{}) == nil {
		t.Error("the zero address is allowed")
	}
}

func TestAllowPrivate(t *testing.T) {
	prefixes := func(all ...string) (out []netip.Prefix) {
		for _, p := range all {
			out = append(out, netip.MustParsePrefix(p))
		}
		return out
	}
	for _, test := range []struct {
		name  string
		allow []netip.Prefix
		addr  string
		want  bool
	}{
		{"inside", prefixes("10.0.0.0/8"), "10.1.2.3", true},
		{"outside", prefixes("10.0.0.0/8"), "192.168.1.1", false},
		{"host bits set", prefixes("10.9.9.9/8"), "10.1.2.3", true},
		{"mapped address", prefixes("10.0.0.0/8"), "::ffff:10.1.2.3", true},
		{"mapped prefix", prefixes("::ffff:10.0.0.0/104"), "10.1.2.3", true},
		{"translated address", prefixes("10.0.0.0/8"), "64:ff9b::10.1.2.3", true},
		{"tunnel in a special block", prefixes("10.0.0.0/8"), "fe80::5efe:10.1.2.3", false},
		{"v6", prefixes("fd00::/8"), "fd00::1", true},
		{"v6 with a zone", prefixes("fe80::/10"), "fe80::1%eth0", true},
		{"all of v6 says nothing of v4", prefixes("::/0"), "127.0.0.1", false},
		{"all of v4 says nothing of v6", prefixes("0.0.0.0/0"), "::1", false},
		{"public needs no row", prefixes("10.0.0.0/8"), "8.8.8.8", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := dial.New(test.allow).Check(netip.MustParseAddr(test.addr)); (err == nil) != test.want {
				t.Errorf("%s with %v: %v, want allowed %v", test.addr, test.allow, err, test.want)
			}
		})
	}
}

// C194: what a server's metadata names is looked at after DNS, whatever its spelling.
func TestStrangerC194(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	stranger := dial.New(nil).Stranger()
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1", "::1", "0.0.0.0", "169.254.169.254"} {
		conn, err := stranger(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			conn.Close()
			t.Errorf("%s was connected", host)
		} else if !strings.Contains(err.Error(), "network.allow_private") {
			t.Errorf("%s: error %q does not name network.allow_private", host, err)
		}
	}
	if conn, err := stranger(t.Context(), "udp", net.JoinHostPort("8.8.8.8", port)); err == nil {
		conn.Close()
		t.Error("udp was allowed")
	}
	allowed := dial.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	for name, f := range map[string]func() (net.Conn, error){
		"operator": func() (net.Conn, error) {
			return dial.New(nil).Operator()(t.Context(), "tcp", listener.Addr().String())
		},
		"allowed": func() (net.Conn, error) { return allowed.Stranger()(t.Context(), "tcp", listener.Addr().String()) },
	} {
		conn, err := f()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		conn.Close()
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1})
	f.Add([]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1})
	f.Add([]byte{0x20, 0x02, 127, 0, 0, 1, 15: 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		err := dial.New(nil).Check(a)
		u := a.Unmap()
		unfit := u.IsPrivate() || u.IsLoopback() || u.IsLinkLocalUnicast() || u.IsMulticast() || u.IsUnspecified()
		if unfit && err == nil {
			t.Errorf("%s is allowed", a)
		}
		if dial.New([]netip.Prefix{netip.PrefixFrom(u, u.BitLen())}).Check(a) != nil {
			t.Errorf("%s is refused although it is listed", a)
		}
	})
}
