package app

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

func TestServiceOptions(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   Services
		want string // ranges and ports, or the error
	}{
		{"nothing", Services{}, "[10.0.0.0/24] 30000-32767 true"},
		{"both families", Services{CIDRs: []string{"fd00::/108", "10.0.0.0/16"}, NodePorts: "1-9", Reconciler: "none"}, "[fd00::/108 10.0.0.0/16] 1-9 false"},
		{"no range", Services{CIDRs: []string{"10.0.0.0"}}, `--service-cluster-ip-range "10.0.0.0": want a CIDR such as 10.0.0.0/24`},
		{"an address of a range", Services{CIDRs: []string{"10.0.0.1/24"}}, `--service-cluster-ip-range "10.0.0.1/24": want a CIDR such as 10.0.0.0/24`},
		{"too small", Services{CIDRs: []string{"10.0.0.0/30"}}, "--service-cluster-ip-range 10.0.0.0/30: want at least 8 addresses, and for IPv6 a prefix of at least 64 bits"},
		{"the smallest", Services{CIDRs: []string{"10.0.0.0/29"}}, "[10.0.0.0/29] 30000-32767 true"},
		{"the largest", Services{CIDRs: []string{"fd00::/64"}}, "[fd00::/64] 30000-32767 true"},
		{"too large", Services{CIDRs: []string{"fd00::/56"}}, "--service-cluster-ip-range fd00::/56: want at least 8 addresses, and for IPv6 a prefix of at least 64 bits"},
		{"one family twice", Services{CIDRs: []string{"10.0.0.0/24", "10.1.0.0/24"}}, "--service-cluster-ip-range [10.0.0.0/24 10.1.0.0/24]: want one CIDR, or one of IPv4 and one of IPv6"},
		{"no ports", Services{NodePorts: "x"}, `--service-node-port-range "x": want a range such as 30000-32767`},
		{"no address", Services{Advertise: "here"}, `--advertise-address "here": want an IP address`},
		{"all addresses", Services{Advertise: "::"}, `--advertise-address "::": want an IP address`},
		{"the deprecated reconciler", Services{Reconciler: "master-count"}, "[10.0.0.0/24] 30000-32767 true"},
		{"another reconciler", Services{Reconciler: "leases"}, `--endpoint-reconciler-type "leases": want lease or none`},
	} {
		g, err := tt.in.read()
		got := fmt.Sprint(g.cidrs, " ", g.ports, " ", g.reconcile)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// The advertised address is the configured one, or that of the listener.
func TestAdvertisedAddress(t *testing.T) {
	for _, tt := range []struct{ advertise, listens, want string }{
		{"", "127.0.0.1:6443", "127.0.0.1:6443"},
		{"", "[::1]:6443", "[::1]:6443"},
		{"192.0.2.1", "127.0.0.1:6443", "192.0.2.1:6443"},
		{"2001:db8::1", "0.0.0.0:6443", "[2001:db8::1]:6443"},
	} {
		g, err := Services{Advertise: tt.advertise}.read()
		if err != nil {
			t.Fatal(err)
		}
		at, err := net.ResolveTCPAddr("tcp", tt.listens)
		if err != nil {
			t.Fatal(err)
		}
		s, err := g.server(at)
		if err != nil || s.Address.String() != tt.want {
			t.Errorf("%+v: %s, %v", tt, s.Address, err)
		}
	}
	g, _ := Services{}.read()
	s, err := g.server(&net.TCPAddr{IP: net.IPv6unspecified, Port: 1})
	if err != nil || s.Address.Addr().IsUnspecified() || s.Address.Port() != 1 {
		t.Errorf("one that listens on all: %s, %v", s.Address, err)
	}
}

// keeping is a store that outlives an App.
type keeping struct{ kv.Backend }

func (keeping) Close() error { return nil }

// Stored Services of an earlier version keep their addresses: they are allocated first, even before
// that of the Service kubernetes.
func TestStoredServicesComeFirst(t *testing.T) {
	store := memkv.New(memkv.Options{})
	t.Cleanup(func() { _ = store.Close() })
	for name, ip := range map[string]string{"first": "10.0.0.1", "outside": "192.0.2.1", "other": "10.0.0.9"} {
		value := fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q,"namespace":"default","uid":%q,"creationTimestamp":"2026-01-02T03:04:05Z"},
			"spec":{"type":"ClusterIP","clusterIP":%q,"clusterIPs":[%q],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"port":80,"protocol":"TCP","targetPort":80}]}}`, name, name, ip, ip)
		if _, err := store.Commit(t.Context(), kv.Write{Key: "/registry/services/specs/default/" + name, Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}
	a := start(t, Options{Backend: keeping{store}, Controllers: []string{}})
	defer stop(t, a)
	c := client(t, a, admin(t, a))
	_, body := ask(t, c, "GET", a.URL()+"/apis/networking.k8s.io/v1/ipaddresses", "", "")
	for ip, want := range map[string]bool{"10.0.0.1": true, "10.0.0.9": true, "192.0.2.1": false} {
		if strings.Contains(body, `"name":"`+ip+`"`) != want {
			t.Errorf("there is an IPAddress %s: %t", ip, !want)
		}
	}
	if code, _ := ask(t, c, "GET", a.URL()+"/api/v1/namespaces/default/services/kubernetes", "", ""); code != http.StatusNotFound {
		t.Errorf("the Service kubernetes is there without an address: %d", code)
	}
	code, body := ask(t, c, "POST", a.URL()+"/api/v1/namespaces/default/services", "", `{"metadata":{"name":"new"},"spec":{"clusterIP":"10.0.0.9","ports":[{"port":80}]}}`)
	if code != http.StatusUnprocessableEntity || !strings.Contains(body, "provided IP is already allocated") {
		t.Errorf("%d %s", code, body)
	}
}
