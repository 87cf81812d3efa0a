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

// credentials is where in the data directory our certificates and keys are.
const credentials = "pki"

// An identity is who the server is, and how it knows others.
type identity struct {
	tls        *tls.Config
	clients    func() *pki.Authorities // sign certificates of clients
	proxies    func() *pki.Authorities // sign certificates of front proxies; nil if there are none
	said       func() authn.Proxies    // which of those proxies are believed
	asProxy    func() *tls.Certificate // the server's own as a front proxy; nil for none
	users      authn.Authenticator     // of requests
	kubeconfig kubeconfig.Credentials
}

// newIdentity makes the identity of a server that listens at an address, of what
// was given and, for the rest, of certificates of our own. tokens are those by which it
// knows users.
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
		// Whose certificate it is, and whether to believe it, is found out later:
		// one that is not good is no reason to hang up.
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
	i.users = i.authenticator(o.Authentication.anonymous(given.issuers), tokens)
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

// clients returns the authorities whose client certificates count, as they are when
// it is called: our own, and those of the file that was given.
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

// told returns the authorities that clients are told of, who choose a certificate by them.
func (i *identity) told() func() *x509.CertPool {
	if i.proxies == nil {
		return poolOf(i.clients)
	}
	return poolOf(joined(i.clients, i.proxies))
}

func poolOf(authorities func() *pki.Authorities) func() *x509.CertPool {
	return func() *x509.CertPool { return authorities().Pool }
}
