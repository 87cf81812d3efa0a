package kubeconfig

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// A Config is a server and the user of its client.
type Config struct {
	URL       string // without a slash at its end
	Namespace string // of the context; "default" if it names none
	*User

	tls     *tls.Config
	proxy   func(*http.Request) (*url.URL, error)
	plain   bool        // do not ask for compressed answers
	as      http.Header // impersonation headers
	program *programCredentials
	timeout time.Duration
}

// A User is a user with credentials.
type User struct {
	// Certificate returns the client certificate for a handshake. It is nil for a user without one.
	Certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)

	tokenFile string // read for each request: it may be rotated
	token     string
	username  string
	password  string
}

// Users returns all users of a file, by name.
func Users(name string) (map[string]*User, error) {
	k, err := read(Options{Files: []string{name}})
	if err != nil {
		return nil, err
	}
	all := make(map[string]*User, len(k.users))
	for name, u := range k.users {
		if u.Exec != nil {
			return nil, fmt.Errorf("user %q: kubeconfig: exec is not supported here: use a client certificate or a token", name)
		}
		if all[name], err = newUser(&u); err != nil {
			return nil, fmt.Errorf("user %q: %w", name, err)
		}
	}
	return all, nil
}

func newUser(u *user) (*User, error) {
	if u.Provider != nil {
		return nil, errors.New("kubeconfig: auth-provider is not supported, as in kubectl: use exec, a client certificate or a token")
	}
	out := &User{token: u.Token, tokenFile: u.TokenFile, username: u.Username, password: u.Password}
	pair, err := u.pair()
	if pair != nil {
		out.Certificate = (&rotated{user: u, last: pair}).next
	}
	return out, err
}

// pair reads the client certificate, nil if there is none.
func (u *user) pair() (*tls.Certificate, error) {
	certificate, err := either(u.Certificate, u.CertificateFile)
	if err != nil {
		return nil, err
	}
	key, err := either(u.Key, u.KeyFile)
	if err != nil || len(certificate) == 0 && len(key) == 0 {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: client certificate and key: %w", err)
	}
	return &pair, nil
}

// A rotated certificate is read for each handshake: its files may be replaced.
type rotated struct {
	user *user

	mu   sync.Mutex
	last *tls.Certificate
}

// next returns the certificate in the files. While they are not a pair, it returns the previous one. A
// server that does not accept it gets none.
func (r *rotated) next(to *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pair, err := r.user.pair(); err == nil && pair != nil {
		r.last = pair
	}
	if to.SupportsCertificate(r.last) != nil {
		return &tls.Certificate{}, nil
	}
	return r.last, nil
}

// Sign adds the user's credentials, other than a certificate, to a request.
func (u *User) Sign(r *http.Request) error {
	token := u.token
	if u.tokenFile != "" {
		data, err := os.ReadFile(u.tokenFile)
		if err != nil {
			return fmt.Errorf("kubeconfig: %w", err)
		}
		token = string(bytes.TrimSpace(data))
	}
	switch {
	case token != "":
		r.Header.Set("Authorization", "Bearer "+token)
	case u.username != "":
		r.SetBasicAuth(u.username, u.password)
	}
	return nil
}

func newConfig(c *cluster, u *user) (*Config, error) {
	user, err := newUser(u)
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(c.Server)
	if err != nil || server.Host == "" || server.Scheme != "https" && server.Scheme != "http" {
		return nil, fmt.Errorf("kubeconfig: server is %q: want a URL such as https://127.0.0.1:6443", c.Server)
	}
	out := &Config{URL: strings.TrimRight(server.String(), "/"), User: user, proxy: http.ProxyFromEnvironment, plain: c.DisableCompression}
	if c.Proxy != "" {
		proxy, err := url.Parse(c.Proxy)
		if err != nil {
			return nil, fmt.Errorf("kubeconfig: proxy-url: %w", err)
		}
		out.proxy = http.ProxyURL(proxy)
	}
	if out.as, err = u.impersonation(); err != nil {
		return nil, err
	}
	if out.tls, err = tlsConfig(c, user); err != nil {
		return nil, err
	}
	// Other credentials take precedence over those of the program.
	if u.Exec != nil && u.Token == "" && u.TokenFile == "" && u.Username == "" && user.Certificate == nil {
		if out.program, err = newProgramCredentials(u.Exec, c); err != nil {
			return nil, err
		}
		out.tls.GetClientCertificate = out.program.certificate
	}
	return out, nil
}

func tlsConfig(c *cluster, u *User) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.TLSServerName, InsecureSkipVerify: c.Insecure, GetClientCertificate: u.Certificate}
	ca, err := either(c.CA, c.CAFile)
	if err != nil {
		return nil, err
	}
	if len(ca) > 0 {
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("kubeconfig: certificate-authority has no PEM certificate")
		}
	}
	return out, nil
}

// either returns data, or the content of a file.
func either(data []byte, name string) ([]byte, error) {
	if len(data) > 0 || name == "" {
		return data, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return data, nil
}

// Timeouts of a client for connecting, and for idle connections.
const (
	dialTime = 10 * time.Second
	idleTime = 90 * time.Second
	// As in client-go: a silent server is pinged after pingAfter, and has pingTime to answer.
	pingAfter = 30 * time.Second
	pingTime  = 15 * time.Second
)

// Post returns the URL of a request to a webhook: a path below that of the server. As in Kubernetes, a
// query of the server is not sent.
func (c *Config) Post(path string, timeout time.Duration) string {
	server, _, _ := strings.Cut(c.URL, "?")
	return server + path + "?timeout=" + timeout.String()
}

// Client returns an HTTP client that authenticates as the user.
func (c *Config) Client() *http.Client {
	return c.ClientBy((&net.Dialer{Timeout: dialTime}).DialContext)
}

// ClientBy is Client with connections made by dial.
func (c *Config) ClientBy(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	// Redirects are not followed: the credentials are not for another server.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{CheckRedirect: stay, Timeout: c.timeout, Transport: &as{config: c, next: &http.Transport{
		Proxy:               c.proxy,
		DisableCompression:  c.plain,
		TLSClientConfig:     c.tls,
		TLSHandshakeTimeout: dialTime,
		DialContext:         dial,
		IdleConnTimeout:     idleTime,
		ForceAttemptHTTP2:   true,
		// A watch may be silent for long, and must notice that the server is gone.
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTime},
	}}}
}

// An as transport authenticates requests as the user.
type as struct {
	config *Config
	next   *http.Transport
}

func (a *as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if err := a.config.Sign(r); err != nil {
		return nil, err
	}
	maps.Copy(r.Header, a.config.as)
	if a.config.program == nil {
		return a.send(r)
	}
	given, err := a.config.program.get(r.Context())
	if err != nil {
		return nil, err
	}
	if given.token != "" {
		r.Header.Set("Authorization", "Bearer "+given.token)
	}
	answer, err := a.send(r)
	if err == nil && answer.StatusCode == http.StatusUnauthorized {
		a.config.program.refused(given)
	}
	return answer, err
}

// send sends a request. Connections belong to a certificate, so a rejection closes its connection.
func (a *as) send(r *http.Request) (*http.Response, error) {
	answer, err := a.next.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusUnauthorized {
		answer.Body = &rejected{answer.Body, a.next}
	}
	return answer, err
}

// rejected is the body of a rejection. After it, its connection is idle.
type rejected struct {
	io.ReadCloser
	on *http.Transport
}

func (r *rejected) Close() error {
	err := r.ReadCloser.Close()
	r.on.CloseIdleConnections()
	return err
}

// CloseIdleConnections closes idle connections, for http.Client.
func (a *as) CloseIdleConnections() { a.next.CloseIdleConnections() }
