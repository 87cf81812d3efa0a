// Package egress connects the server to everything that it calls.
//
// The Dialer makes all outgoing connections: those to webhooks, and later those to other API
// servers. It knows addresses, Services and proxies. It does not know what is sent on a
// connection, or how a Service is resolved.
package egress

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
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

// A Dialer connects. Its zero value connects directly, and finds no Service.
type Dialer struct {
	// Resolve finds Services.
	Resolve Resolver
	// Dial connects to an address; nil connects directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// DialContext connects to an address.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Dial != nil {
		return d.Dial(ctx, network, address)
	}
	direct := net.Dialer{Timeout: dialTimeout}
	return direct.DialContext(ctx, network, address)
}

// Addresses returns where a Service is answered now, host:port each. There is at least one.
func (d *Dialer) Addresses(ctx context.Context, s Service) ([]string, error) {
	if d.Resolve == nil {
		return nil, errors.New("services cannot be resolved")
	}
	addresses, err := d.Resolve(ctx, s)
	if err == nil && len(addresses) == 0 {
		err = errors.New("the service has no address")
	}
	return addresses, err
}

// DialService connects to one of the addresses of a Service, and to another one when
// that does not answer.
func (d *Dialer) DialService(ctx context.Context, network string, s Service) (net.Conn, error) {
	addresses, err := d.Addresses(ctx, s)
	if err != nil {
		return nil, err
	}
	first := rand.IntN(len(addresses))
	for i := range min(len(addresses), serviceAttempts) {
		var conn net.Conn
		conn, err = d.DialContext(ctx, network, addresses[(first+i)%len(addresses)])
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
	}
	return nil, err
}

// Proxy returns the proxy for a request to an address, as the environment says. A
// Service is never behind one.
func (d *Dialer) Proxy(r *http.Request) (*url.URL, error) { return http.ProxyFromEnvironment(r) }
