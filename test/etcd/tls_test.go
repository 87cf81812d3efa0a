package etcd

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/network/pki/pkitest"
)

// leaf issues a certificate for one use, as NAME.crt and NAME.key, and returns the files.
func leaf(t *testing.T, by *pki.Pair, dir, name string, use x509.ExtKeyUsage) (cert, key string) {
	t.Helper()
	return pkitest.Write(t, dir, name, pkitest.Sign(t, by, x509.Certificate{
		Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}))
}

// The server connects with a client certificate to an etcd that requires one, and does not start
// without the right one.
func TestEtcdWithCertificates(t *testing.T) {
	t.Parallel()
	dir, authority := t.TempDir(), pkitest.Authority(t, "etcd-ca")
	m := NewMember(t)
	at := freeURL(t)
	m.Secure = "https://" + at.Host
	m.CA, _ = pkitest.Write(t, dir, "ca", authority)
	m.Cert, m.Key = leaf(t, authority, dir, "server", x509.ExtKeyUsageServerAuth)
	m.Begin()
	m.Wait()
	with := app.Etcd{Servers: []string{m.Secure}, CAFile: m.CA}
	with.CertFile, with.KeyFile = leaf(t, authority, dir, "client", x509.ExtKeyUsageClientAuth)
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
