package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/lru"

	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/object/gate"
)

const (
	// maxRoutes limits the webhooks with open connections. Beyond it, the least recently called
	// one loses its connections.
	maxRoutes = 64
	// maxConnections limits the connections to one address of a webhook; further calls wait. Idle
	// connections are kept for a while: a handshake costs more than a call.
	maxConnections = 32
	idleTime       = 30 * time.Second
	handshakeTime  = 10 * time.Second
	maxHeader      = 64 << 10
)

// A route has the connections to one webhook. Webhooks share a route only if they have the same
// URL, CAs and credentials.
type route struct {
	transport *http.Transport
	// address returns the address of a Service for one call. It is nil for a URL, and without the
	// gate WebhookRoundTripLoadBalancing: each connection has an address then.
	address func(context.Context) (string, error)
	calls   atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (r *route) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.address == nil {
		return r.transport.RoundTrip(request)
	}
	address, err := r.address(request.Context())
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Host, request.URL.Host = request.URL.Host, address
	return r.transport.RoundTrip(request)
}

type routeKey struct {
	url     string
	service Service
	ca      [sha256.Size]byte
	// credentials of the connection.
	credentials *Credentials
}

// routes are the routes in use.
type routes struct {
	mu  sync.Mutex // held while a route is made, so that a webhook has one
	all *lru.Cache
}

func newRoutes() routes {
	return routes{all: lru.NewWithEvictionFunc(maxRoutes, func(_ lru.Key, r any) { r.(*route).transport.CloseIdleConnections() })}
}

func (rs *routes) get(key routeKey, make func() (*route, error)) (*route, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r, ok := rs.all.Get(key); ok {
		return r.(*route), nil
	}
	r, err := make()
	if err == nil {
		rs.all.Add(key, r)
	}
	return r, err
}

func (c *Client) newRoute(config *Config) (*route, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	// A bundle of white space is valid, and means no CA bundle.
	if bundle := bytes.TrimSpace(config.CABundle); len(bundle) > 0 {
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(bundle) {
			return nil, errors.New("unable to load root certificates: unable to parse bytes as PEM block")
		}
	}
	if config.Credentials != nil {
		secure.GetClientCertificate = config.Credentials.Certificate
	}
	t := &http.Transport{
		Proxy: c.options.URLs.Proxy,
		// With HTTP/2 one connection would carry all calls, to one endpoint of a Service.
		TLSClientConfig:        secure,
		TLSHandshakeTimeout:    handshakeTime,
		MaxConnsPerHost:        maxConnections,
		MaxIdleConnsPerHost:    maxConnections,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // so that MaxReply counts the bytes on the wire
		DialContext:            c.options.URLs.DialContext,
	}
	if config.URL != "" {
		return &route{transport: t}, nil
	}
	service := egress.Service{Namespace: config.Service.Namespace, Name: config.Service.Name, Port: config.Service.port()}
	secure.ServerName = config.Service.host()
	own := net.JoinHostPort(secure.ServerName, strconv.Itoa(int(service.Port)))
	t.Proxy = c.options.Services.Proxy
	if !c.options.Gates.On(gate.WebhookRoundTripLoadBalancing) {
		t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != own { // that of a proxy
				return c.options.Services.DialContext(ctx, network, address)
			}
			return c.options.Services.DialService(ctx, network, service)
		}
		return &route{transport: t}, nil
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return c.options.Services.DialAddress(ctx, network, service, address)
	}
	return &route{transport: t, address: func(ctx context.Context) (string, error) {
		addresses, err := c.options.Services.Addresses(ctx, service)
		if err != nil {
			return "", err
		}
		return addresses[0], nil
	}}, nil
}
