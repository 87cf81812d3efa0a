package egress

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/network/pki/pkitest"
)

// An authority is a CA for certificates of this machine and of the names in a test.
type authority struct {
	*pki.Pair
	dir, file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{Pair: pkitest.Authority(t, "test authority"), dir: t.TempDir()}
	a.file, _ = pkitest.Write(t, a.dir, "ca", a.Pair)
	return a
}

func (a *authority) put(t *testing.T, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(a.dir, name)
	must(t, os.WriteFile(file, data, 0o600))
	return file
}

// sign issues a certificate for servers and clients.
func (a *authority) sign(t *testing.T, name string, hosts ...string) *pki.Pair {
	t.Helper()
	return pkitest.Sign(t, a.Pair, x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: hosts, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// issue is sign, with the result in files.
func (a *authority) issue(t *testing.T, name string) (cert, key string) {
	t.Helper()
	return pkitest.Write(t, a.dir, name, a.sign(t, name))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
