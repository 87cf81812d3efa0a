// Package selector connects as an EgressSelectorConfiguration says: directly, or through a proxy
// that leads to another network, such as that of Konnectivity.
//
// It knows the configuration and the two protocols of such proxies. It does not know who is
// called, or why.
package selector

import (
	"context"
	"fmt"
	"net"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/anykind/anykind/internal/network/egress"
)

// A Name is that of an egress selection: of a network, and so of what is called there.
type Name string

// The names there are, as in Kubernetes.
const (
	// Cluster has what runs in the cluster: Services, pods, and kubelets.
	Cluster Name = "cluster"
	// ControlPlane has webhooks that are known by a URL or a kubeconfig file.
	ControlPlane Name = "controlplane"
	// Etcd has the store.
	Etcd Name = "etcd"
)

// dialTimeout bounds connecting to a proxy, and then connecting on from there.
const dialTimeout = 30 * time.Second

// A Selector has the ways into networks. A nil one has none.
type Selector struct {
	ways    map[Name]egress.Dial
	metrics *metrics
}

// A way is one to a network: a proxy, and how it is spoken to.
type way struct {
	protocol, transport string // as metrics name them
	// connect connects to the proxy.
	connect func(context.Context) (proxy, error)
}

// A proxy connects to an address, once, on a connection of its own. The connection is closed when
// the one that is returned is, or when there is none.
type proxy func(ctx context.Context, address string) (net.Conn, error)

// newSelector returns the Selector of a configuration in which nothing is wrong, as far as one can
// tell without reading certificates.
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

// dial connects by a way, and counts it.
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

// Configured says whether there is a configuration.
func (s *Selector) Configured() bool { return s != nil }

// Dial returns the way into a network; nil if the configuration has none, for it is that of this
// machine then.
func (s *Selector) Dial(n Name) egress.Dial {
	if s == nil {
		return nil
	}
	return s.ways[n]
}
