// Package front sends requests to other API servers as a front proxy.
//
// A Front sends requests on behalf of users: headers name the user, and the other server trusts
// them because of the client certificate of this server. A Pool has the connections to one kind of
// server: those with the same name and the same CAs.
//
// The package knows TLS, HTTP transports and these headers. It does not know which server gets a
// request: internal/server/aggregate forwards requests of APIServices, and internal/server/peer
// those that another server of the store serves.
package front

import (
	"crypto/tls"
	"net/http"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/access/authn"
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

// A Front is this server as a front proxy.
type Front struct {
	// Dialer connects to the other servers.
	Dialer *egress.Dialer
	// Certificate returns the current client certificate of this server, or nil.
	Certificate func() *tls.Certificate
	// Headers are the request headers of this server's own front proxy. Neither these nor the
	// standard ones are forwarded from a client.
	Headers authn.ProxyHeaders
	// UID reports whether the other servers get the uid of a user.
	UID bool
}

// Tell sets the headers that name the user, and removes those that the client sent.
func (f *Front) Tell(h http.Header, user *request.User) {
	standard := authn.StandardProxyHeaders()
	standard.Remove(h)
	f.Headers.Remove(h)
	h.Set("X-Remote-User", user.Name)
	if user.UID != "" && f.UID {
		h.Set("X-Remote-Uid", user.UID)
	}
	for _, group := range user.Groups {
		h.Add("X-Remote-Group", group)
	}
	for key, values := range user.Extra {
		for _, value := range values {
			h.Add("X-Remote-Extra-"+escape(key), value)
		}
	}
}

// A Pool has connections to servers. The zero value is empty.
type Pool struct {
	mu   sync.Mutex
	made *Transports
}

// Transports are the HTTP transports to a server, with one client certificate.
type Transports struct {
	Usual    *http.Transport
	Upgrades *http.Transport // for upgraded connections: HTTP/1.1 only

	certificate *tls.Certificate
	version     any
}

// Close closes idle connections. Connections in use go on.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made != nil {
		p.made.close()
		p.made = nil
	}
}

func (t *Transports) close() {
	t.Usual.CloseIdleConnections()
	t.Upgrades.CloseIdleConnections()
}

// Transports returns the transports with the current client certificate, and with the TLS settings
// that secure returns. version identifies the settings. Transports with an earlier certificate are
// closed, because it may expire while a connection is open, and so are those with earlier settings.
func (f *Front) Transports(p *Pool, version any, secure func() (*tls.Config, error)) (*Transports, error) {
	certificate := f.Certificate()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made != nil && p.made.certificate == certificate && p.made.version == version {
		return p.made, nil
	}
	settings, err := secure()
	if err != nil {
		return nil, err
	}
	if p.made != nil {
		p.made.close()
	}
	p.made = f.connect(settings, certificate)
	p.made.version = version
	return p.made, nil
}

func (f *Front) connect(secure *tls.Config, certificate *tls.Certificate) *Transports {
	secure.MinVersion = tls.VersionTLS12
	if certificate != nil {
		// The certificate is sent whatever CAs the server lists: it may list none.
		secure.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	usual := &http.Transport{
		Proxy:                  f.Dialer.Proxy,
		DialContext:            f.Dialer.DialContext,
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
	return &Transports{Usual: usual, Upgrades: upgrades, certificate: certificate}
}

// As returns a RoundTripper that sends requests on behalf of a user. Redirects are not followed.
func (f *Front) As(user *request.User, transports func() (*Transports, error)) http.RoundTripper {
	return &impersonated{f, user, transports}
}

type impersonated struct {
	front      *Front
	user       *request.User
	transports func() (*Transports, error)
}

// RoundTrip implements http.RoundTripper.
func (i *impersonated) RoundTrip(r *http.Request) (*http.Response, error) {
	t, err := i.transports()
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	i.front.Tell(r.Header, i.user)
	return t.Usual.RoundTrip(r)
}
