// Package egress connects the server to everything that it calls.
//
// A Dialer makes all outgoing connections: those to webhooks, to other API servers, to kubelets
// and to what runs in a cluster. It knows addresses, Services and the proxies of the environment.
// It does not know what is sent on a connection, how a Service is resolved, or which tunnels
// there are.
package egress

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// dialTimeout bounds one attempt to connect.
	dialTimeout = 10 * time.Second
	// serviceAttempts is how many addresses of a Service are tried for one connection.
	serviceAttempts = 3
)

// A Service names a port of a Service.
type Service struct {
	Namespace, Name string
	Port            int32
}

// A Resolver finds the addresses, host:port each, at which a Service is answered now.
type Resolver func(ctx context.Context, s Service) ([]string, error)

// A Dial connects to an address.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// A Dialer connects. Its zero value connects directly, and finds no Service.
type Dialer struct {
	// Resolve finds Services.
	Resolve Resolver
	// Through makes the connections, in place of the network of this machine, unless it is nil.
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

// Addresses returns where a Service is answered now, host:port each, in the order in which to try
// them: from any of them on. There is at least one.
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

// DialService connects to one of the addresses of a Service, and to another one when
// that does not answer.
func (d *Dialer) DialService(ctx context.Context, network string, s Service) (net.Conn, error) {
	addresses, err := d.Addresses(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, address := range addresses[:min(len(addresses), serviceAttempts)] {
		var conn net.Conn
		if conn, err = d.DialContext(ctx, network, address); err == nil || ctx.Err() != nil {
			return conn, err
		}
	}
	return nil, err
}

// Proxy returns the proxy for a request, as the environment says: HTTPS_PROXY, HTTP_PROXY and
// NO_PROXY. A connection that is upgraded goes past all proxies, as that of a kube-apiserver does.
func (d *Dialer) Proxy(r *http.Request) (*url.URL, error) {
	for _, line := range r.Header.Values("Connection") {
		if strings.Contains(strings.ToLower(line), "upgrade") {
			return nil, nil
		}
	}
	return http.ProxyFromEnvironment(r)
}

// Proxied returns the address of a Service to which the environment has a proxy lead. It is ""
// where there is none: DialService connects then.
func (d *Dialer) Proxied(ctx context.Context, s Service) (string, error) {
	if !proxies() {
		return "", nil
	}
	addresses, err := d.Addresses(ctx, s)
	if err != nil {
		return "", err
	}
	to := &http.Request{URL: &url.URL{Scheme: "https", Host: addresses[0]}}
	by, err := http.ProxyFromEnvironment(to)
	if by == nil || err != nil {
		return "", err
	}
	return addresses[0], nil
}

// proxies says whether the environment has a proxy for anything by HTTPS.
var proxies = sync.OnceValue(func() bool { return os.Getenv("HTTPS_PROXY") != "" || os.Getenv("https_proxy") != "" })
