package pki

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// The server name of a client selects the certificate.
func TestNamed(t *testing.T) {
	dir := t.TempDir()
	made := map[string]*Pair{}
	named := func(name string, names ...string) Named {
		t.Helper()
		p, err := Open("", []string{name + ".example.com", "*.under.example.com", "127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		made[name] = p.Serving()
		n := Named{CertFile: filepath.Join(dir, name+".crt"), KeyFile: filepath.Join(dir, name+".key"), Names: names}
		for file, data := range map[string][]byte{n.CertFile: p.Serving().CertPEM(), n.KeyFile: p.Serving().KeyPEM()} {
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	find, err := LoadNamed([]Named{
		named("a"), named("b"), named("c", "b.example.com", "*.wild.example.com"), named("d", "*.wild.example.com", "x.wild.example.com", "*"),
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"a.example.com":        "a",
		"A.Example.com":        "a",
		"b.example.com":        "c", // a configured name precedes that of a certificate
		"c.example.com":        "",  // and replaces its own names
		"y.under.example.com":  "a",
		"under.example.com":    "",
		"y.wild.example.com":   "c",
		"x.wild.example.com":   "d", // an exact name precedes a wildcard
		"z.y.wild.example.com": "",
		"single":               "d",
		"127.0.0.1":            "",
		"":                     "",
	} {
		got := find(&tls.ClientHelloInfo{ServerName: host})
		switch {
		case want == "" && got != nil:
			t.Errorf("%q has a certificate", host)
		case want != "" && (got == nil || !got.Leaf.Equal(made[want].Cert)):
			t.Errorf("%q has not that of %s", host, want)
		}
	}
	if _, err := LoadNamed([]Named{{CertFile: filepath.Join(dir, "none"), KeyFile: filepath.Join(dir, "none")}}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a certificate that is not there was found")
	}
}
