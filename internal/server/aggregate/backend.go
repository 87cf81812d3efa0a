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
	// A Backend that says nothing on a connection of HTTP/2 is asked whether it is there.
	pingAfter, pingTime = 30 * time.Second, 15 * time.Second
)

// A Backend is another API server. Versions that name the same Service, and trust it for the same
// reason, have the same Backend.
type Backend struct {
	// Service is where it is.
	Service egress.Service
	// CABundle has the authorities, as PEM, that its certificate may come from. Empty means those
	// of the system. If Insecure is set it may come from anywhere.
	CABundle []byte
	Insecure bool

	aggregator *Aggregator
	pool       *pool
}

// Host is the name that the certificate of the Backend is for.
func (b *Backend) Host() string { return b.Service.Name + "." + b.Service.Namespace + ".svc" }

// Resolve returns the URL of one of the addresses at which the Backend is now.
func (b *Backend) Resolve(ctx context.Context) (*url.URL, error) {
	addresses, err := b.aggregator.options.Dialer.Addresses(ctx, b.Service)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: "https", Host: addresses[0]}, nil
}

// As returns what asks the Backend in the name of a user. The host of a request must be one that
// Resolve has returned. Redirects are not followed.
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

// Self is how this server asks a Backend for something that no client has asked for.
func Self() *request.User {
	return &request.User{Name: "system:kube-aggregator", Groups: []string{request.Masters}}
}

// Get asks the Backend for a page, in the name of this server.
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

// Forget gives up the connections to the Backend that are not in use.
func (b *Backend) Forget() { b.pool.close() }

// backend returns the Backend at a Service.
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

// tidy gives up the connections to Backends that no APIService names any more.
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

// A pool has the connections to one Backend. It outlives changes of APIServices that are about
// something else.
type pool struct {
	inside atomic.Int64 // requests that are under way

	mu   sync.Mutex
	made *transports
}

type poolKey struct {
	service  egress.Service
	ca       [sha256.Size]byte
	insecure bool
}

// transports are ways to a Backend. They have the certificate of this server in common.
type transports struct {
	certificate *tls.Certificate
	usual       *http.Transport
	upgrades    *http.Transport // for connections that are upgraded: HTTP/1.1 only
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

// transport returns the ways to the Backend, with the certificate of now: a connection that was
// made with another one is used no more, because it would end to be good with that certificate.
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
		// Whichever authorities the Backend says it trusts: it may say none.
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
		DisableCompression:     true, // it is between the client and the Backend
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTime},
	}
	upgrades := usual.Clone()
	upgrades.ForceAttemptHTTP2, upgrades.Protocols = false, &http.Protocols{}
	upgrades.Protocols.SetHTTP1(true)
	upgrades.TLSClientConfig.NextProtos = []string{"http/1.1"}
	return &transports{certificate: certificate, usual: usual, upgrades: upgrades}, nil
}
