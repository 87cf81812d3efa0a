package app

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/internal/network/pki"
)

// A client that connects with a configured name (SNI) gets the certificate for it.
func TestNamedCertificates(t *testing.T) {
	made, err := pki.Open("", []string{"other.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	named := pki.Named{CertFile: filepath.Join(dir, "crt"), KeyFile: filepath.Join(dir, "key")}
	for file, data := range map[string][]byte{named.CertFile: made.Serving().CertPEM(), named.KeyFile: made.Serving().KeyPEM()} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := start(t, Options{NamedCertificates: []pki.Named{named}})
	defer stop(t, a)
	for host, want := range map[string]bool{"other.example.com": true, "another.example.com": false} {
		conn, err := tls.Dial("tcp", a.Address().String(), &tls.Config{ServerName: host, InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		if shown := conn.ConnectionState().PeerCertificates[0].VerifyHostname(host) == nil; shown != want {
			t.Errorf("%s is shown: %v", host, shown)
		}
		conn.Close()
	}
}
