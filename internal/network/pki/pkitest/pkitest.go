// Package pkitest creates certificates for tests: CAs, and certificates for clients and servers.
// It writes the files that flags name, and does not know their use.
package pkitest

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/network/pki"
)

// Authority creates a CA.
func Authority(t testing.TB, name string) *pki.Pair {
	t.Helper()
	return Sign(t, nil, x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
}

// Client creates a client certificate for a user in groups.
func Client(t testing.TB, by *pki.Pair, user string, groups ...string) *pki.Pair {
	t.Helper()
	return Sign(t, by, x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Sign creates a pair with a new key, as pki.Sign does. By default the certificate is valid from
// an hour ago for a day.
func Sign(t testing.TB, by *pki.Pair, of x509.Certificate) *pki.Pair {
	t.Helper()
	if of.NotBefore.IsZero() {
		of.NotBefore = time.Now().Add(-time.Hour)
	}
	if of.NotAfter.IsZero() {
		of.NotAfter = time.Now().Add(24 * time.Hour)
	}
	p, err := pki.Sign(by, &of)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Write writes a pair to NAME.crt and NAME.key in a folder, atomically, and returns the paths.
func Write(t testing.TB, dir, name string, p *pki.Pair) (cert, key string) {
	t.Helper()
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	put(t, key, p.KeyPEM())
	put(t, cert, p.CertPEM())
	return cert, key
}

func put(t testing.TB, file string, data []byte) {
	t.Helper()
	next := file + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
}
