package etcd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/app"
)

// An authority signs certificates, which it writes to files.
type authority struct {
	*testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{T: t, dir: t.TempDir()}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "etcd-ca"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = a.sign("ca", a.cert, a.cert, nil)
	return a
}

// file is where the certificate or key of a name is.
func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// sign writes a certificate and its key, and returns the key.
func (a *authority) sign(name string, cert, by *x509.Certificate, with *ecdsa.PrivateKey) *ecdsa.PrivateKey {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	if with == nil {
		with = key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, by, &key.PublicKey, with)
	if err != nil {
		a.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "EC PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(a.file(file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.Fatal(err)
		}
	}
	return key
}

// leaf signs a certificate for one use.
func (a *authority) leaf(name string, use x509.ExtKeyUsage) {
	a.Helper()
	a.sign(name, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, a.cert, a.key)
}

// etcd that wants to know who is asking is spoken to with a certificate, and a
// server without the right one does not start.
func TestEtcdWithCertificates(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.leaf("server", x509.ExtKeyUsageServerAuth)
	a.leaf("client", x509.ExtKeyUsageClientAuth)
	m := NewMember(t)
	at := freeURL(t)
	m.Secure, m.CA, m.Cert, m.Key = "https://"+at.Host, a.file("ca.crt"), a.file("server.crt"), a.file("server.key")
	m.Begin()
	m.Wait()
	with := app.Etcd{Servers: []string{m.Secure}, CAFile: a.file("ca.crt"), CertFile: a.file("client.crt"), KeyFile: a.file("client.key")}
	server, err := app.Start(t.Context(), app.Options{Etcd: with})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	without, other := with, with
	without.CertFile, without.KeyFile = "", ""
	other.CAFile = ""
	for name, o := range map[string]app.Etcd{"no certificate": without, "another authority": other} {
		server, err := app.Start(t.Context(), app.Options{Etcd: o})
		if err == nil {
			t.Errorf("with %s it starts", name)
			_ = server.Stop(t.Context())
		} else if !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("with %s: %v", name, err)
		}
	}
}
