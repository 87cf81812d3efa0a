package app

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"path/filepath"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/network/kubeconfig"
	"github.com/anykind/anykind/internal/network/pki"
)

// credentials is the folder of generated certificates and keys in the data directory.
const credentials = "pki"

// An identity has the server's certificates and its authenticators.
type identity struct {
	tls        *tls.Config
	clients    func() *pki.Authorities // CAs of client certificates
	proxies    func() *pki.Authorities // CAs of front proxies; nil without front proxies
	said       func() authn.Proxies    // allowed names and headers of front proxies
	asProxy    func() *tls.Certificate // client certificate as a front proxy; nil for none
	users      authn.Authenticator     // of requests
	kubeconfig kubeconfig.Credentials

	certificates *authn.ClientCertificates // one of users
}

// newIdentity creates the identity of a server that listens at an address, from the given files and
// generated certificates. tokens authenticate bearer tokens.
func newIdentity(o Options, given files, at net.Addr, tokens *authn.Tokens) (*identity, error) {
	dir := ""
	if o.Dir != "" {
		dir = filepath.Join(o.Dir, credentials)
	}
	host, _, err := net.SplitHostPort(at.String())
	if err != nil {
		return nil, err
	}
	hosts, err := o.Cluster.hosts(pki.Hosts(host))
	if err != nil {
		return nil, err
	}
	own, err := pki.Open(dir, hosts)
	if err != nil {
		return nil, err
	}
	i := &identity{
		// Certificates are verified during authentication: an invalid one does not end the
		// connection.
		tls: &tls.Config{GetCertificate: own.GetCertificate, ClientAuth: tls.RequestClientCert},
		kubeconfig: kubeconfig.Credentials{
			User: kubeconfig.Administrator, Server: "https://" + reachable(at), CA: own.CA(), Certificate: own.Admin().CertPEM(), Key: own.Admin().KeyPEM(),
		},
	}
	if i.clients, err = clients(o, own); err != nil {
		return nil, err
	}
	if i.proxies, i.asProxy, err = o.Authentication.FrontProxy.authorities(own, o.Log); err != nil {
		return nil, err
	}
	i.said = func() authn.Proxies { return o.Authentication.FrontProxy.said() }
	i.delegate(o, given.delegated)
	i.users = i.authenticator(o.Authentication.anonymous(given.issuers), tokens, o.Gates)
	if given.certificate != nil {
		i.tls.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return given.certificate.Get(), nil }
		i.kubeconfig.CA = pki.Trust(given.certificate.Get())
	}
	if others := i.tls.GetCertificate; len(o.NamedCertificates) > 0 {
		i.tls.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if c := given.named(hello); c != nil {
				return c, nil
			}
			return others(hello)
		}
	}
	return i, nil
}

// clients returns the current CAs of client certificates: the server's own, and those of the
// configured file.
func clients(o Options, own *pki.PKI) (func() *pki.Authorities, error) {
	if o.ClientCAFile == "" {
		only := pki.NewAuthorities(own.Authority())
		return func() *pki.Authorities { return only }, nil
	}
	given, err := pki.WatchAuthorities(o.ClientCAFile, o.Log, own.Authority())
	if err != nil {
		return nil, err
	}
	return given.Get, nil
}

// told returns the CAs in the TLS handshake, by which clients choose a certificate.
func (i *identity) told() func() *x509.CertPool {
	if i.proxies == nil {
		return poolOf(i.clients)
	}
	return poolOf(joined(i.clients, i.proxies))
}

func poolOf(authorities func() *pki.Authorities) func() *x509.CertPool {
	return func() *x509.CertPool { return authorities().Pool }
}
