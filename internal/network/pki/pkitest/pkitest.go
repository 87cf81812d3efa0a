// Package pkitest makes certificates for tests: authorities, and what they sign for
// clients and servers. It writes the files that flags name, and knows nothing of what
// they are used for.
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

// Authority makes an authority of a name.
func Authority(t testing.TB, name string) *pki.Pair {
	t.Helper()
	return Sign(t, nil, x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
}

// Client makes a certificate for a user in groups.
func Client(t testing.TB, by *pki.Pair, user string, groups ...string) *pki.Pair {
	t.Helper()
	return Sign(t, by, x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Sign makes a pair of a new key, as pki.Sign does. A certificate that does not say when it is good
// began an hour ago, and ends in a day.
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

// Write writes a pair to NAME.crt and NAME.key in a folder, and returns the files. Whoever reads one
// meanwhile finds what was there before, or all of it.
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
