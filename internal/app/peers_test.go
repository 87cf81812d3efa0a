package app

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/controller/kubernetesservice"
	"github.com/anykind/anykind/internal/object/gate"
)

// Invalid flags of peers stop the start, with the words of kube-apiserver where it has some.
func TestPeerFlags(t *testing.T) {
	on, off := gate.With(nil), gate.With(map[gate.Name]bool{gate.UnknownVersionInteroperabilityProxy: false})
	ca := write(t, filepath.Join(t.TempDir(), "ca.pem"), authority(t).CA())
	proxy := FrontProxy{CertFile: "a", KeyFile: "b"}
	for _, test := range []struct {
		name  string
		peers Peers
		gates *gate.Set
		front FrontProxy
		want  string // "" for no error
	}{
		{"nothing", Peers{}, off, FrontProxy{}, ""},
		{"all", Peers{CAFile: ca, IP: "192.0.2.1", Port: "6443"}, on, proxy, ""},
		{"an address only", Peers{IP: "192.0.2.1", Port: "6443"}, on, FrontProxy{}, ""},
		{"a CA without the gate", Peers{CAFile: ca}, off, proxy, "--peer-ca-file requires UnknownVersionInteroperabilityProxy feature to be turned on"},
		{"an address without the gate", Peers{IP: "192.0.2.1"}, off, proxy, "--peer-advertise-ip requires"},
		{"a port without the gate", Peers{Port: "1"}, off, proxy, "--peer-advertise-port requires"},
		{"no certificate", Peers{CAFile: ca}, on, FrontProxy{}, "proxy-cert-file not specified"},
		{"no key", Peers{CAFile: ca}, on, FrontProxy{CertFile: "a"}, "proxy-key-file not specified"},
		{"a missing file", Peers{CAFile: ca + "x"}, on, proxy, "CA certificates: "},
		{"a host name", Peers{IP: "example.com", Port: "1"}, on, proxy, `--peer-advertise-ip "example.com": want an IP address`},
		{"a large port", Peers{IP: "192.0.2.1", Port: "65536"}, on, proxy, `--peer-advertise-port "65536": want a port`},
	} {
		err := test.peers.check(test.gates, test.front)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// A server publishes a loopback address only if it has peers, and none without the gate.
func TestAddressForPeers(t *testing.T) {
	on, off := gate.With(nil), gate.With(map[gate.Name]bool{gate.UnknownVersionInteroperabilityProxy: false})
	for _, test := range []struct {
		name, own, want string
		peers           Peers
		gates           *gate.Set
	}{
		{"its own", "192.0.2.1:6443", "192.0.2.1:6443", Peers{}, on},
		{"loopback", "127.0.0.1:6443", "", Peers{}, on},
		{"loopback with peers", "127.0.0.1:6443", "127.0.0.1:6443", Peers{CAFile: "ca"}, on},
		{"a given one", "192.0.2.1:6443", "192.0.2.2:1", Peers{IP: "192.0.2.2", Port: "1"}, on},
		{"half of one", "192.0.2.1:6443", "192.0.2.1:6443", Peers{IP: "192.0.2.2"}, on},
		{"no gate", "192.0.2.1:6443", "", Peers{}, off},
	} {
		w := &wired{server: kubernetesservice.Server{Address: netip.MustParseAddrPort(test.own)}}
		w.identify(Options{Peers: test.peers, Gates: test.gates})
		got := ""
		if w.identity.Address.IsValid() {
			got = w.identity.Address.String()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// Flags of peers have no effect on a server with a store of its own.
func TestNoPeers(t *testing.T) {
	if err := (&wired{}).peer(nil, Options{Peers: Peers{CAFile: "ca"}}); err != nil {
		t.Error(err)
	}
}
