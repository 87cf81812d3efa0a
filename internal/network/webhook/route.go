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
	// addresses returns the addresses of a Service for one call, in the order to try. It is nil for a URL, and without
	// the gate WebhookRoundTripLoadBalancing: each connection has an address then.
	addresses func(context.Context) ([]string, error)
	calls     atomic.Int64
}

// A dialError is the error of a connection that could not be made. The webhook has not seen the request.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// RoundTrip implements http.RoundTripper.
func (r *route) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.addresses == nil {
		return r.transport.RoundTrip(request)
	}
	addresses, err := r.addresses(request.Context())
	if err != nil {
		return nil, err
	}
	for _, address := range addresses[:min(len(addresses), egress.ServiceAttempts)] {
		one := request.Clone(request.Context())
		one.Host, one.URL.Host = request.URL.Host, address
		if request.GetBody != nil {
			if one.Body, err = request.GetBody(); err != nil {
				return nil, err
			}
		}
		var answer *http.Response
		answer, err = r.transport.RoundTrip(one)
		if _, unreachable := errors.AsType[dialError](err); !unreachable || request.Context().Err() != nil {
			return answer, err
		}
	}
	return nil, err
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
		conn, err := c.options.Services.DialContext(ctx, network, address)
		if err != nil {
			return nil, dialError{err}
		}
		return conn, nil
	}
	return &route{transport: t, addresses: func(ctx context.Context) ([]string, error) {
		return c.options.Services.Addresses(ctx, service)
	}}, nil
}
