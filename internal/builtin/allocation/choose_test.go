package allocation

import (
	"net/netip"
	"testing"
)

// Blocks leave out the network and broadcast address, and reserve their lower part.
func TestBlocks(t *testing.T) {
	for _, tt := range []struct {
		cidr, first    string
		size, reserved uint64
	}{
		{"10.0.0.0/24", "10.0.0.1", 254, 16},
		{"10.0.0.0/28", "10.0.0.1", 14, 0},
		{"10.0.0.0/27", "10.0.0.1", 30, 16},
		{"10.0.0.0/16", "10.0.0.1", 1<<16 - 2, 256},
		{"10.0.0.0/30", "10.0.0.1", 2, 0},
		{"10.0.0.0/31", "", 0, 0},
		{"10.0.0.0/32", "", 0, 0},
		{"fd00::/112", "fd00::1", 1<<16 - 1, 256},
		{"fd00::/64", "fd00::1", 1<<64 - 1, 256},
		{"fd00::/63", "", 0, 0},
	} {
		b, ok := blockOf(netip.MustParsePrefix(tt.cidr))
		if ok != (tt.first != "") || ok && (b.first.String() != tt.first || b.size != tt.size || b.reserved != tt.reserved) {
			t.Errorf("%s: %+v, %t", tt.cidr, b, ok)
		}
	}
}

// Each address of a range is allocated once before the range is full, the reserved ones last.
func TestAddressesAreGivenOnce(t *testing.T) {
	for _, cidr := range []string{"10.0.0.0/24", "10.0.0.0/28", "255.255.255.0/24", "fd00::/120", "fd00::/124"} {
		p := netip.MustParsePrefix(cidr)
		b, _ := blockOf(p)
		given := map[netip.Addr]bool{}
		taken := func(ip netip.Addr) bool { return given[ip] }
		edge := plus(b.first, b.reserved)
		for i := range b.size {
			ip, ok := b.choose(taken)
			if !ok || !Contains(p, ip) || given[ip] {
				t.Fatalf("%s: %s, %t as number %d", cidr, ip, ok, i)
			}
			if reserved := ip.Less(edge); reserved != (i >= b.size-b.reserved) {
				t.Fatalf("%s: %s is number %d", cidr, ip, i)
			}
			given[ip] = true
		}
		if ip, ok := b.choose(taken); ok {
			t.Errorf("%s: %s after all", cidr, ip)
		}
	}
}

func TestContains(t *testing.T) {
	for _, tt := range []struct {
		cidr, ip string
		want     bool
	}{
		{"10.0.0.0/24", "10.0.0.0", false}, {"10.0.0.0/24", "10.0.0.1", true}, {"10.0.0.0/24", "10.0.0.255", false}, {"10.0.0.0/24", "10.0.1.1", false},
		{"255.255.255.0/24", "255.255.255.255", false}, {"10.0.0.0/24", "fd00::1", false},
		{"fd00::/120", "fd00::", false}, {"fd00::/120", "fd00::ff", true}, {"fd00::/120", "fd00::100", false},
	} {
		if got := Contains(netip.MustParsePrefix(tt.cidr), netip.MustParseAddr(tt.ip)); got != tt.want {
			t.Errorf("%s has %s: %t", tt.cidr, tt.ip, got)
		}
	}
}

// Each port is allocated once, the reserved ones last.
func TestPortsAreGivenOnce(t *testing.T) {
	for _, size := range []int{1, 16, 17, 600, 2768} {
		s := &portSet{of: PortRange{Base: 30000, Size: size}}
		reserved := 0
		if size > leastReservedPorts {
			reserved = min(max(size/reservedPortsShare, leastReservedPorts), mostReservedPorts)
		}
		for i := range size {
			port, ok := s.next(func(port int32) bool { return !s.has(port) })
			if !ok || !s.in(port) || s.has(port) || (int(port) < s.of.Base+reserved) != (i >= size-reserved) {
				t.Fatalf("of %d: %d, %t as number %d", size, port, ok, i)
			}
			s.set(port, 1)
		}
		if port, ok := s.next(func(port int32) bool { return !s.has(port) }); ok {
			t.Errorf("of %d: %d after all", size, port)
		}
	}
}
