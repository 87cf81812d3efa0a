// Package trouble does to kube-apiserver and to anykind what networks, clocks, disks
// and operators do, and compares how they take it: requests over HTTP/1 and HTTP/2
// that are not as the standards have them, processes that are paused, certificates
// that expire.
//
// Everything here looks at a server from outside. What both must do the same is
// compared; what only anykind promises (a disk that cannot be written) is tested of it
// alone.
package trouble

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

var reference = flag.String("reference", "", "compare with a server that is started if it is \"start\"")

// The two of a pair, by name, in the order in which they are told of.
var names = [2]string{"kube-apiserver", "anykind"}

// start starts both servers with flags that both have.
func start(t *testing.T, flags ...string) *servers.Pair {
	t.Helper()
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	// What was started is ended by Stop, after the test's own context.
	p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{Reference: "start", Store: "file", Dir: t.TempDir(), Theirs: flags, Ours: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func clients(p *servers.Pair) [2]*wire.Client { return [2]*wire.Client{p.Theirs, p.Ours} }

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write(t, "ca.crt", "CERTIFICATE", der)
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	// Whoever reads the file meanwhile finds the old one or the new one.
	next := a.path(name + ".next")
	if err := os.WriteFile(next, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, a.path(name)); err != nil {
		t.Fatal(err)
	}
}

// sign makes a certificate that is good until then, and keeps it as NAME.crt and
// NAME.key.
func (a *authority) sign(t *testing.T, name string, serial int64, subject pkix.Name, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}},
		a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, name+".key", "EC PRIVATE KEY", keyDER)
	a.write(t, name+".crt", "CERTIFICATE", der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// eventually returns when something is true.
func eventually(t *testing.T, what string, within time.Duration, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, within)
		}
	}
}
