package app

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"path/filepath"

	"github.com/anykind/anykind/internal/authn"
	"github.com/anykind/anykind/internal/kubeconfig"
	"github.com/anykind/anykind/internal/pki"
)

// credentials is where in the data directory our certificates and keys are.
const credentials = "pki"

// An identity is who the server is, and how it knows others.
type identity struct {
	tls        *tls.Config
	clientCAs  func() *x509.CertPool
	tokens     *authn.Tokens       // all kinds of bearer tokens
	users      authn.Authenticator // of requests
	kubeconfig kubeconfig.Administrator
}

// newIdentity makes the identity of a server that listens at an address, of what
// was given and, for the rest, of certificates of our own.
func newIdentity(o Options, given files, at net.Addr) (*identity, error) {
	dir := ""
	if o.Dir != "" {
		dir = filepath.Join(o.Dir, credentials)
	}
	host, _, err := net.SplitHostPort(at.String())
	if err != nil {
		return nil, err
	}
	own, err := pki.Open(dir, pki.Hosts(host))
	if err != nil {
		return nil, err
	}
	clients, err := clientCAs(o, own)
	if err != nil {
		return nil, err
	}
	i := &identity{
		// Whose certificate it is, and whether to believe it, is found out later:
		// one that is not good is no reason to hang up.
		tls:       &tls.Config{GetCertificate: own.GetCertificate, ClientAuth: tls.RequestClientCert},
		clientCAs: clients,
		tokens:    &authn.Tokens{},
		kubeconfig: kubeconfig.Administrator{
			Server: "https://" + reachable(at), CA: own.CA(), Certificate: own.Admin().CertPEM(), Key: own.Admin().KeyPEM(),
		},
	}
	i.users = authn.OrAnonymous(authn.Chain{
		authn.NewClientCertificates(clients),
		authn.Bearer{Tokens: i.tokens},
	}, o.Authentication.anonymous())
	var kinds []authn.TokenAuthenticator
	if given.tokens != nil {
		kinds = append(kinds, authn.ForServer(nil, given.tokens))
	}
	i.tokens.Use(kinds...)
	if given.certificate != nil {
		i.tls.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return given.certificate.Get(), nil }
		i.kubeconfig.CA = pki.Trust(given.certificate.Get())
	}
	return i, nil
}

// clientCAs returns the authorities whose client certificates count, as they are when
// it is called: our own, and those of the file that was given.
func clientCAs(o Options, own *pki.PKI) (func() *x509.CertPool, error) {
	if o.ClientCAFile == "" {
		pool := own.ClientCAs()
		return func() *x509.CertPool { return pool }, nil
	}
	given, err := own.LoadClientCAs(o.ClientCAFile, o.Log)
	if err != nil {
		return nil, err
	}
	return given.Get, nil
}
