// Package selector connects as an EgressSelectorConfiguration configures: directly, or through a
// proxy into another network, such as Konnectivity.
//
// It knows the configuration and the protocols of the proxies. It does not know the servers
// behind them.
package selector

import (
	"context"
	"fmt"
	"net"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/anykind/anykind/internal/network/egress"
)

// A Name is the name of an egress selection, which stands for a network.
type Name string

// The names that Kubernetes defines.
const (
	// Cluster is for Services, pods and kubelets.
	Cluster Name = "cluster"
	// ControlPlane is for webhooks with a URL or a kubeconfig file.
	ControlPlane Name = "controlplane"
	// Etcd is for the store.
	Etcd Name = "etcd"
)

// dialTimeout limits connecting to a proxy, and the proxy's connecting to the address.
const dialTimeout = 30 * time.Second

// A Selector has the proxies of networks. A nil one has none.
type Selector struct {
	ways    map[Name]egress.Dial
	metrics *metrics
}

// A way is the proxy of a network, with its protocol.
type way struct {
	protocol, transport string // labels of metrics
	// connect connects to the proxy.
	connect func(context.Context) (proxy, error)
}

// A proxy connects to an address, once, on a connection of its own. That connection closes with
// the returned one, or on an error.
type proxy func(ctx context.Context, address string) (net.Conn, error)

// newSelector returns the Selector of a valid configuration. It fails if certificates cannot be
// read.
func newSelector(c *apiserver.EgressSelectorConfiguration) (*Selector, error) {
	s := &Selector{ways: map[Name]egress.Dial{}, metrics: newMetrics()}
	for _, selection := range c.EgressSelections {
		name := canonical(selection.Name)
		if selection.Connection.ProxyProtocol == apiserver.ProtocolDirect {
			s.ways[name] = new(egress.Dialer).DialContext
			continue
		}
		w, err := newWay(selection.Connection, s.metrics)
		if err != nil {
			return nil, fmt.Errorf("failed to create dialer for egressSelection %q: %w", name, err)
		}
		s.ways[name] = s.dial(w)
	}
	return s, nil
}

// newWay returns the way through a proxy.
func newWay(c apiserver.Connection, m *metrics) (way, error) {
	if c.ProxyProtocol == apiserver.ProtocolGRPC {
		return way{"grpc", "uds", openTunnel(c.Transport.UDS.UDSName, m)}, nil
	}
	if c.Transport.UDS != nil {
		return way{"http_connect", "uds", connectByUDS(c.Transport.UDS.UDSName)}, nil
	}
	config, err := tlsConfig(c.Transport.TCP.TLSConfig)
	if err != nil {
		return way{}, err
	}
	address, err := hostOf(c.Transport.TCP.URL)
	return way{"http_connect", "tcp", connectByTCP(address, config)}, err
}

// dial returns a Dial that connects through a way, and counts connections.
func (s *Selector) dial(w way) egress.Dial {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		begun := time.Now()
		s.metrics.starts.WithLabelValues(w.protocol, w.transport).Inc()
		connecting, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		proxy, err := w.connect(connecting)
		if err != nil {
			s.metrics.failures.WithLabelValues(w.protocol, w.transport, "connect").Inc()
			return nil, err
		}
		proxying, cancel := context.WithTimeoutCause(ctx, dialTimeout, errBackstop)
		defer cancel()
		conn, err := proxy(proxying, address)
		if err != nil {
			s.metrics.failures.WithLabelValues(w.protocol, w.transport, "proxy").Inc()
			return nil, err
		}
		s.metrics.durations.WithLabelValues(w.protocol, w.transport).Observe(time.Since(begun).Seconds())
		return conn, nil
	}
}

// Configured reports whether there is a configuration.
func (s *Selector) Configured() bool { return s != nil }

// Dial returns the Dial for a network, or nil if connections to it are direct.
func (s *Selector) Dial(n Name) egress.Dial {
	if s == nil {
		return nil
	}
	return s.ways[n]
}
