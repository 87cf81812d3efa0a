package aggregate

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/object/request"
)

const (
	handshakeTime = 10 * time.Second
	idleTime      = 90 * time.Second
	maxHeader     = 1 << 20
	// An HTTP/2 connection that is silent for pingAfter is pinged.
	pingAfter, pingTime = 30 * time.Second, 15 * time.Second
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
func (b *Backend) As(user *request.User) http.RoundTripper { return &impersonated{b, user} }

type impersonated struct {
	backend *Backend
	user    *request.User
}

func (i *impersonated) RoundTrip(r *http.Request) (*http.Response, error) {
	t, err := i.backend.transport()
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	i.backend.aggregator.tell(r.Header, i.user)
	return t.usual.RoundTrip(r)
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
func (b *Backend) Forget() { b.pool.close() }

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
			p.close()
		}
	}
}

// A pool has the connections to one Backend. It outlives changes of APIServices that do not
// change the Backend.
type pool struct {
	inside atomic.Int64 // requests in flight

	mu   sync.Mutex
	made *transports
}

type poolKey struct {
	service  egress.Service
	ca       [sha256.Size]byte
	insecure bool
}

// transports are the HTTP transports to a Backend, with one client certificate.
type transports struct {
	certificate *tls.Certificate
	usual       *http.Transport
	upgrades    *http.Transport // for upgraded connections: HTTP/1.1 only
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made != nil {
		p.made.close()
		p.made = nil
	}
}

func (t *transports) close() {
	t.usual.CloseIdleConnections()
	t.upgrades.CloseIdleConnections()
}

// transport returns the transports to the Backend with the current client certificate. Transports
// with an earlier certificate are closed, because it may expire while a connection is open.
func (b *Backend) transport() (*transports, error) {
	certificate := b.aggregator.options.Certificate()
	p := b.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made != nil && p.made.certificate == certificate {
		return p.made, nil
	}
	made, err := b.connect(certificate)
	if err != nil {
		return nil, err
	}
	if p.made != nil {
		p.made.close()
	}
	p.made = made
	return made, nil
}

func (b *Backend) connect(certificate *tls.Certificate) (*transports, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: b.Host(), InsecureSkipVerify: b.Insecure}
	if len(b.CABundle) > 0 {
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(b.CABundle) {
			return nil, errors.New("unable to load root certificates: unable to parse bytes as PEM block")
		}
	}
	if certificate != nil {
		// The certificate is sent whatever CAs the Backend lists: it may list none.
		secure.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	usual := &http.Transport{
		Proxy:                  b.aggregator.options.Dialer.Proxy,
		DialContext:            b.aggregator.options.Dialer.DialContext,
		TLSClientConfig:        secure,
		TLSHandshakeTimeout:    handshakeTime,
		IdleConnTimeout:        idleTime,
		MaxIdleConnsPerHost:    25,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // The client negotiates compression.
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTime},
	}
	upgrades := usual.Clone()
	upgrades.ForceAttemptHTTP2, upgrades.Protocols = false, &http.Protocols{}
	upgrades.Protocols.SetHTTP1(true)
	upgrades.TLSClientConfig.NextProtos = []string{"http/1.1"}
	return &transports{certificate: certificate, usual: usual, upgrades: upgrades}, nil
}
