package aggregation

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"time"

	"github.com/anykind/anykind/internal/network/pki"
)

// An authority is a CA that writes its certificates to files in a folder.
type authority struct {
	*pki.Pair
	dir, name string
}

// newAuthority creates a CA. Its certificate is in NAME.crt.
func newAuthority(dir, name string) (*authority, error) {
	p, err := sign(nil, x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	if err != nil {
		return nil, err
	}
	a := &authority{Pair: p, dir: dir, name: name}
	return a, os.WriteFile(a.file(), p.CertPEM(), 0o644)
}

func (a *authority) file() string { return filepath.Join(a.dir, a.name+".crt") }

func sign(by *pki.Pair, of x509.Certificate) (*pki.Pair, error) {
	of.NotBefore, of.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	return pki.Sign(by, &of)
}

// issue writes a client certificate, or the certificate of a server with DNS names, and returns the
// files.
func (a *authority) issue(name string, names ...string) (certFile, keyFile string, err error) {
	use := x509.ExtKeyUsageClientAuth
	if len(names) > 0 {
		use = x509.ExtKeyUsageServerAuth
	}
	p, err := sign(a.Pair, x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{use}, KeyUsage: x509.KeyUsageDigitalSignature,
	})
	if err != nil {
		return "", "", err
	}
	certFile, keyFile = filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	if err := os.WriteFile(certFile, p.CertPEM(), 0o644); err != nil {
		return "", "", err
	}
	return certFile, keyFile, os.WriteFile(keyFile, p.KeyPEM(), 0o600)
}
