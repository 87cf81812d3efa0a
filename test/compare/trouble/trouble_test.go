// Package trouble compares kube-apiserver and anykind under faults of networks, clocks, disks and
// operators: malformed HTTP/1 and HTTP/2, suspended processes, expiring certificates.
//
// All tests observe a server from outside. They compare common guarantees, and test a guarantee of
// anykind alone (a disk that cannot be written) without kube-apiserver.
package trouble

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"flag"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/network/pki/pkitest"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

var reference = flag.String("reference", "", "compare with a server that is started if it is \"start\"")

// names are the names of the two servers, in the order of a pair.
var names = [2]string{"kube-apiserver", "anykind"}

// start starts both servers with additional flags.
func start(t *testing.T, flags ...string) *servers.Pair {
	t.Helper()
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	// Stop, not the context of the test, ends the servers.
	p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{Reference: "start", Store: "file", Dir: t.TempDir(), Theirs: flags, Ours: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func clients(p *servers.Pair) [2]*wire.Client { return [2]*wire.Client{p.Theirs, p.Ours} }

// An authority is a CA that writes its certificates to a folder.
type authority struct {
	*pki.Pair
	dir string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{Pair: pkitest.Authority(t, "authority"), dir: t.TempDir()}
	pkitest.Write(t, a.dir, "ca", a.Pair)
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// sign issues a certificate that expires at until, and writes it to NAME.crt and NAME.key.
func (a *authority) sign(t *testing.T, name string, subject pkix.Name, until time.Time) *pki.Pair {
	t.Helper()
	p := pkitest.Sign(t, a.Pair, x509.Certificate{Subject: subject, NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	pkitest.Write(t, a.dir, name, p)
	return p
}

// eventually polls a condition until it is true.
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
