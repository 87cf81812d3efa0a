// Package egress makes all outgoing connections of the server.
//
// A Dialer connects to webhooks, other API servers, kubelets, and pods and Services of a cluster.
// It knows addresses, Services and the proxy variables of the environment. It does not know the
// protocols on a connection, how a Service is resolved, or the configured tunnels.
package egress

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// dialTimeout limits one attempt to connect.
	dialTimeout = 10 * time.Second
	// ServiceAttempts limits the addresses of a Service that are tried for one connection.
	ServiceAttempts = 3
)

// A Service names a port of a Service.
type Service struct {
	Namespace, Name string
	Port            int32
}

// A Resolver returns the current addresses (host:port) of a Service.
type Resolver func(ctx context.Context, s Service) ([]string, error)

// A Dial connects to an address.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// A Dialer connects. Its zero value connects directly, and resolves no Services.
type Dialer struct {
	// Resolve resolves Services.
	Resolve Resolver
	// Through replaces the network of this machine, unless it is nil.
	Through Dial
}

// DialContext connects to an address.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Through != nil {
		return d.Through(ctx, network, address)
	}
	direct := net.Dialer{Timeout: dialTimeout}
	return direct.DialContext(ctx, network, address)
}

// Addresses returns the current addresses (host:port) of a Service in the order of attempts,
// starting at a random one. There is at least one.
func (d *Dialer) Addresses(ctx context.Context, s Service) ([]string, error) {
	if d.Resolve == nil {
		return nil, errors.New("services cannot be resolved")
	}
	addresses, err := d.Resolve(ctx, s)
	if err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, errors.New("the service has no address")
	}
	first := rand.IntN(len(addresses))
	return slices.Concat(addresses[first:], addresses[:first]), nil
}

// DialService connects to an address of a Service. If that fails, it tries others.
func (d *Dialer) DialService(ctx context.Context, network string, s Service) (net.Conn, error) {
	addresses, err := d.Addresses(ctx, s)
	if err != nil {
		return nil, err
	}
	var conn net.Conn
	for _, address := range addresses[:min(len(addresses), ServiceAttempts)] {
		if conn, err = d.DialContext(ctx, network, address); err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// Proxy returns the proxy for a request from HTTPS_PROXY, HTTP_PROXY and NO_PROXY. Upgraded
// connections bypass proxies, as in kube-apiserver.
func (d *Dialer) Proxy(r *http.Request) (*url.URL, error) {
	for _, line := range r.Header.Values("Connection") {
		if strings.Contains(strings.ToLower(line), "upgrade") {
			return nil, nil
		}
	}
	return http.ProxyFromEnvironment(r)
}
