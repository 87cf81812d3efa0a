package envtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
)

// Names of the files in the directory of certificates.
const (
	servingCertFile  = "apiserver.crt"
	servingKeyFile   = "apiserver.key"
	accountsCertFile = "sa-signer.crt"
	accountsKeyFile  = "sa-signer.key"
	clientsFile      = "client-cert-auth-ca.crt"
)

// credentials are the keys and certificates of a server, and the CA for its clients. Servers from one
// Snapshot share them, so that each accepts the others' tokens.
type credentials struct {
	serving  *keyPair // self-signed
	accounts *keyPair
	clients  *keyPair
}

// A keyPair is a certificate and its key.
type keyPair struct {
	cert          *x509.Certificate
	key           *ecdsa.PrivateKey
	certPEM, kPEM []byte
}

func newCredentials() (c *credentials, err error) {
	c = &credentials{}
	authority := func(name string) *x509.Certificate {
		return &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		}
	}
	server := authority("envtest-server")
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.DNSNames, server.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if c.serving, err = newKeyPair(server, nil); err != nil {
		return nil, err
	}
	if c.accounts, err = newKeyPair(authority("envtest-accounts"), nil); err != nil {
		return nil, err
	}
	c.clients, err = newKeyPair(authority("envtest-clients"), nil)
	return c, err
}

// newKeyPair returns a new certificate and its key, signed by another one or by itself. It is valid
// from 1990: a bubble of testing/synctest begins in the year 2000.
func newKeyPair(of *x509.Certificate, by *keyPair) (*keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		return nil, err
	}
	of.SerialNumber = serial.Add(serial, big.NewInt(1))
	of.NotBefore, of.NotAfter = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2190, 1, 1, 0, 0, 0, 0, time.UTC)
	parent, signer := of, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, of, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &keyPair{
		cert: cert, key: key,
		certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		kPEM:    pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
	}, err
}

// write writes the files of the server, unless they exist, and returns the CA of its serving
// certificate.
func (c *credentials) write(dir string) (ca []byte, err error) {
	ca, err = os.ReadFile(filepath.Join(dir, servingCertFile))
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return ca, err
	}
	for name, data := range map[string][]byte{
		servingCertFile: c.serving.certPEM, servingKeyFile: c.serving.kPEM,
		accountsCertFile: c.accounts.certPEM, accountsKeyFile: c.accounts.kPEM,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	return c.serving.certPEM, nil
}

// certificates is an Authn with client certificates.
type certificates struct {
	ca   *keyPair
	file string
}

// Configure implements Authn.
func (c *certificates) Configure(dir string, args *Arguments) error {
	c.file = filepath.Join(dir, clientsFile)
	args.Set("client-ca-file", c.file)
	return nil
}

// Start implements Authn.
func (c *certificates) Start() error { return os.WriteFile(c.file, c.ca.certPEM, 0o600) }

// AddUser implements Authn.
func (c *certificates) AddUser(user User, base *rest.Config) (*rest.Config, error) {
	made, err := newKeyPair(&x509.Certificate{
		Subject:  pkix.Name{CommonName: user.Name, Organization: user.Groups},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, c.ca)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(base)
	config.CertData, config.KeyData = made.certPEM, made.kPEM
	return config, nil
}

// Stop implements Authn.
func (c *certificates) Stop() error { return nil }
