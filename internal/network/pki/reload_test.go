package pki

import (
	"bytes"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A replaced serving certificate is used a second later. A partly written or briefly missing one
// changes nothing, and is logged once.
func TestServingCertificateIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		cert, key := filepath.Join(dir, "crt"), filepath.Join(dir, "key")
		write := func(file string, data []byte) {
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		old, next := open(t, "").Serving(), open(t, "").Serving()
		write(cert, old.CertPEM())
		write(key, old.KeyPEM())
		var log bytes.Buffer
		serving, err := LoadCertificate(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		shows := func(when string, want *Pair, said ...string) {
			t.Helper()
			if !serving.Get().Leaf.Equal(want.Cert) {
				t.Errorf("%s: the wrong certificate is shown", when)
			}
			if n := strings.Count(log.String(), "\n"); n != len(said) {
				t.Errorf("%s: %d lines are said, want %d: %s", when, n, len(said), &log)
			}
			for _, s := range said {
				if !strings.Contains(log.String(), s) {
					t.Errorf("%s: %q is not said: %s", when, s, &log)
				}
			}
			log.Reset()
		}
		second := func() { time.Sleep(time.Second) }

		write(cert, next.CertPEM())
		shows("in the same second", old)
		second()
		shows("without its key", old, "does not match the certificate")
		second()
		shows("without its key for long", old)
		write(key, next.KeyPEM()[:60])
		second()
		shows("with half a key", old, "failed to find any PEM data in key input")
		os.Remove(key)
		second()
		shows("with no key", old, "no such file")
		write(key, next.KeyPEM())
		second()
		shows("with its key", next, "changed files are in use")
		second()
		shows("later", next)
	})
}

// Replaced client CAs are used a second later; the server's own CA stays.
func TestClientCAsAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, old, next := open(t, ""), open(t, ""), open(t, "")
		file := filepath.Join(t.TempDir(), "ca.crt")
		if err := os.WriteFile(file, old.CA(), 0o600); err != nil {
			t.Fatal(err)
		}
		given, err := WatchAuthorities(file, slog.Default(), own.Authority())
		if err != nil {
			t.Fatal(err)
		}
		trusts := func(p *PKI) bool {
			_, err := p.Admin().Cert.Verify(x509.VerifyOptions{Roots: given.Get().Pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			return err == nil
		}
		if before := given.Get(); !before.Shares(NewAuthorities(old.Authority())) || before.Shares(NewAuthorities(next.Authority())) {
			t.Error("before: the wrong authorities are shared")
		}
		if !trusts(own) || !trusts(old) || trusts(next) {
			t.Error("before: the wrong authorities count")
		}
		if err := os.WriteFile(file, next.CA(), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if !trusts(own) || trusts(old) || !trusts(next) {
			t.Error("after: the wrong authorities count")
		}
	})
}
