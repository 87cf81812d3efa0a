package aggregate

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/server/front"
)

// A Backend is another API server. Versions with the same Service and the same TLS settings share
// a Backend.
type Backend struct {
	// Service locates the Backend.
	Service egress.Service
	// CABundle has the CAs for the Backend's serving certificate, as PEM; empty means the CAs of
	// the system. Insecure skips the verification.
	CABundle []byte
	Insecure bool

	aggregator *Aggregator
	pool       *pool
}

// Host is the name in the Backend's serving certificate.
func (b *Backend) Host() string { return b.Service.Name + "." + b.Service.Namespace + ".svc" }

// Resolve returns the URL of a current address of the Backend.
func (b *Backend) Resolve(ctx context.Context) (*url.URL, error) {
	addresses, err := b.aggregator.options.Dialer.Addresses(ctx, b.Service)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: "https", Host: addresses[0]}, nil
}

// As returns a RoundTripper that sends requests to the Backend as a user. The host of a request
// must be one that Resolve returned. Redirects are not followed.
func (b *Backend) As(user *request.User) http.RoundTripper {
	return b.aggregator.front.As(user, b.transport)
}

// Self is the user of requests that this server sends on its own behalf.
func Self() *request.User {
	return &request.User{Name: "system:kube-aggregator", Groups: []string{request.Masters}}
}

// Get requests a path from the Backend as Self.
func (b *Backend) Get(ctx context.Context, path string, header http.Header) (*http.Response, error) {
	to, err := b.Resolve(ctx)
	if err != nil {
		return nil, err
	}
	to.Path = path
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, err
	}
	if header != nil {
		r.Header = header.Clone()
	}
	return b.As(Self()).RoundTrip(r)
}

// Forget closes idle connections to the Backend.
func (b *Backend) Forget() { b.pool.Close() }

// backend returns the Backend of a Service.
func (a *Aggregator) backend(at egress.Service, ca []byte, insecure bool) *Backend {
	key := poolKey{at, sha256.Sum256(ca), insecure}
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pools[key]
	if p == nil {
		p = &pool{}
		a.pools[key] = p
	}
	return &Backend{Service: at, CABundle: ca, Insecure: insecure, aggregator: a, pool: p}
}

// tidy closes connections to Backends that no APIService names any more.
func (a *Aggregator) tidy(remote map[schema.GroupVersion]*Service) {
	used := map[*pool]bool{}
	for _, s := range remote {
		used[s.Backend.pool] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, p := range a.pools {
		if !used[p] {
			delete(a.pools, key)
			p.Close()
		}
	}
}

// A pool has the connections to one Backend. It outlives changes of APIServices that do not
// change the Backend.
type pool struct {
	front.Pool
	inside atomic.Int64 // requests in flight
}

type poolKey struct {
	service  egress.Service
	ca       [sha256.Size]byte
	insecure bool
}

// transport returns the transports to the Backend with the current client certificate.
func (b *Backend) transport() (*front.Transports, error) {
	return b.aggregator.front.Transports(&b.pool.Pool, nil, b.secure)
}

// secure returns the TLS settings of connections to the Backend.
func (b *Backend) secure() (*tls.Config, error) {
	secure := &tls.Config{ServerName: b.Host(), InsecureSkipVerify: b.Insecure}
	if len(b.CABundle) > 0 {
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(b.CABundle) {
			return nil, errors.New("unable to load root certificates: unable to parse bytes as PEM block")
		}
	}
	return secure, nil
}
