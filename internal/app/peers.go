package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/serveridentity"
	"github.com/anykind/anykind/internal/network/egress/selector"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/front"
	"github.com/anykind/anykind/internal/server/peer"
	"github.com/anykind/anykind/internal/store/kv"
)

// Peers configures requests between the servers that share a store. A server forwards requests for
// resources that only another server serves.
type Peers struct {
	// CAFile has CAs of the serving certificates of the other servers; "" forwards no requests.
	CAFile string
	// IP and Port are the address of this server for the others. Unless both are set, it is the
	// address in the Service kubernetes.
	IP, Port string
}

// check reports invalid values.
func (p Peers) check(gates *gate.Set, f FrontProxy) error {
	for _, flag := range []struct{ name, value string }{{"peer-ca-file", p.CAFile}, {"peer-advertise-ip", p.IP}, {"peer-advertise-port", p.Port}} {
		if flag.value != "" && !gates.On(gate.UnknownVersionInteroperabilityProxy) {
			return fmt.Errorf("--%s requires %s feature to be turned on", flag.name, gate.UnknownVersionInteroperabilityProxy)
		}
	}
	if _, err := p.address(); err != nil {
		return err
	}
	if p.CAFile == "" {
		return nil
	}
	switch {
	case f.CertFile == "":
		return errors.New("error building peer proxy handler, proxy-cert-file not specified: --peer-ca-file needs --proxy-client-cert-file")
	case f.KeyFile == "":
		return errors.New("error building peer proxy handler, proxy-key-file not specified: --peer-ca-file needs --proxy-client-key-file")
	}
	_, err := pki.LoadAuthorities(p.CAFile)
	return err
}

// address returns the configured address, or the zero AddrPort.
func (p Peers) address() (at netip.AddrPort, err error) {
	if p.IP == "" || p.Port == "" { // one alone is ignored, as in Kubernetes
		return at, nil
	}
	ip, err := netip.ParseAddr(p.IP)
	if err != nil {
		return at, fmt.Errorf("--peer-advertise-ip %q: want an IP address", p.IP)
	}
	port, err := strconv.ParseUint(p.Port, 10, 16)
	if err != nil || port == 0 {
		return at, fmt.Errorf("--peer-advertise-port %q: want a port", p.Port)
	}
	return netip.AddrPortFrom(ip, uint16(port)), nil
}

// identify sets the identity of this server among those that share its store. Others cannot reach a
// loopback address unless they are on this machine, so only a server with peers publishes one.
func (w *wired) identify(o Options) {
	host := o.Hooks.Host
	if host == "" {
		host, _ = os.Hostname()
	}
	w.identity = serveridentity.Server{Host: host, Instance: string(uuid.NewUUID())}
	if !o.Gates.On(gate.UnknownVersionInteroperabilityProxy) {
		return
	}
	at, _ := o.Peers.address() // checked at the start
	if own := w.server.Address; !at.IsValid() && (!own.Addr().IsLoopback() || o.Peers.CAFile != "") {
		at = own
	}
	w.identity.Address = at
}

// peer creates the proxy for requests to peers, if it is configured. The store of a server without
// etcd has no other servers.
func (w *wired) peer(a *App, o Options) error {
	if o.Peers.CAFile == "" || o.copied != nil || !o.shared() || !o.Gates.On(gate.APIServerIdentity) {
		return nil
	}
	cas, err := pki.WatchAuthorities(o.Peers.CAFile, o.Log)
	if err != nil {
		return err
	}
	definitions := resource.NewSet([]*resource.Definition{w.crds.Definition(), w.core.Lookup("apiregistration.k8s.io", "apiservices")})
	w.peers = peer.New(peer.Options{
		Self: w.identity.ID(), Cache: w.cache, Definitions: definitions, Catalog: w.catalog, CAs: cas.Get, Log: o.Log,
		Front: asPeer(a, o.Authentication.FrontProxy.Headers),
	})
	a.later(func(context.Context) error { w.peers.Close(); return nil })
	return nil
}

// asPeer returns this server as a front proxy of its peers. They get the uid of a user
// even without the gate RemoteRequestHeaderUID, as in Kubernetes.
func asPeer(a *App, headers authn.ProxyHeaders) *front.Front {
	certificate := a.identity.asProxy
	if certificate == nil {
		certificate = func() *tls.Certificate { return nil }
	}
	return &front.Front{Dialer: a.dialer(selector.ControlPlane), Certificate: certificate, Headers: headers, UID: true}
}

// finding returns the controller that finds peers, if there may be any.
func (w *wired) finding() []controller.Descriptor {
	if w.peers == nil {
		return nil
	}
	return []controller.Descriptor{{Name: peer.Name, Everywhere: true, New: w.peers.Controller()}}
}

// advertise keeps the address of this server in the store for its peers, while it accepts requests.
func (w *wired) advertise(a *App) {
	leaser, ok := kv.As[kv.Leaser](a.backend)
	id, at := w.identity.ID(), w.identity.Address
	if !ok || !at.IsValid() {
		return
	}
	advertising := a.parts.before()
	a.later(advertising.stop)
	advertising.run("address for peers", func(ctx context.Context) error {
		return w.lease(ctx, leaser, resource.PeerLeasesPrefix+id, func(generation int64) ([]byte, error) {
			return leaseOf(generation, map[string]string{"apiserverIdentity": id}, at.Addr().String(),
				corev1.EndpointPort{Name: "https", Port: int32(at.Port()), Protocol: corev1.ProtocolTCP})
		})
	})
}
