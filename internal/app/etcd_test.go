package app

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"os"
	"testing"

	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/network/pki/pkitest"
)

// etcd listens on a port or, in Kubernetes' own tests, on a Unix socket.
func TestEtcdURL(t *testing.T) {
	for server, want := range map[string]bool{
		"http://127.0.0.1:2379": true, "https://etcd:2379": true, "unix:///tmp/etcd.sock": true, "unixs:///tmp/etcd.sock": true,
		"127.0.0.1:2379": false, "http://": false, "unix://": false, "ftp://etcd": false, "": false,
	} {
		if got := isEtcdURL(server); got != want {
			t.Errorf("%q: %t", server, got)
		}
	}
}

// A replaced client certificate for etcd is used by the next connection.
func TestEtcdCertificateIsReadAgain(t *testing.T) {
	dir, authority := t.TempDir(), pkitest.Authority(t, "etcd-ca")
	leaf := func(name string, use x509.ExtKeyUsage) *pki.Pair {
		return pkitest.Sign(t, authority, x509.Certificate{Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{use}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority.CertPEM())
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{*leaf("etcd", x509.ExtKeyUsageServerAuth).TLS()}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := Etcd{Servers: []string{"https://" + l.Addr().String()}}
	e.CAFile, _ = pkitest.Write(t, dir, "ca", authority)
	e.CertFile, e.KeyFile = pkitest.Write(t, dir, "client", leaf("first", x509.ExtKeyUsageClientAuth))
	config, err := e.tls()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "second"} {
		if want == "second" {
			pkitest.Write(t, dir, "client", leaf(want, x509.ExtKeyUsageClientAuth))
		}
		names := make(chan string, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				names <- err.Error()
				return
			}
			defer c.Close()
			if err := c.(*tls.Conn).HandshakeContext(t.Context()); err != nil {
				names <- err.Error()
				return
			}
			names <- c.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
		}()
		c, err := tls.Dial("tcp", l.Addr().String(), config)
		if err != nil {
			t.Fatal(err)
		}
		if got := <-names; got != want {
			t.Errorf("etcd is shown the certificate %q, not %q", got, want)
		}
		c.Close()
	}
	if err := os.Remove(e.KeyFile); err != nil {
		t.Fatal(err)
	}
	if _, err := e.tls(); err == nil {
		t.Error("a server starts without the key")
	}
}
