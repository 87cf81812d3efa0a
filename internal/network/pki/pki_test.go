package pki

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func open(t testing.TB, dir string, hosts ...string) *PKI {
	t.Helper()
	p, err := Open(dir, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shake performs a TLS handshake between a server of p and a client that trusts p's CA, and
// returns the client's subject.
func shake(t *testing.T, p *PKI, client *Pair, serverName string) (who pkix.Name, err error) {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(p.CA()) {
		t.Fatal("the CA is not PEM")
	}
	a, b := net.Pipe()
	s := tls.Server(a, &tls.Config{GetCertificate: p.GetCertificate, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: NewAuthorities(p.Authority()).Pool})
	c := tls.Client(b, &tls.Config{RootCAs: roots, ServerName: serverName, Certificates: []tls.Certificate{*client.TLS()}})
	done := make(chan error, 1)
	go func() {
		err := s.Handshake()
		a.Close()
		done <- err
	}()
	// A pipe buffers nothing: the server's last message must be read too.
	_, err = c.Read(make([]byte, 1))
	b.Close()
	if serr := <-done; serr != nil {
		return who, serr
	}
	if err != io.EOF {
		return who, err
	}
	return s.ConnectionState().PeerCertificates[0].Subject, nil
}

// The certificates of a new PKI work together, in memory and on disk.
func TestHandshake(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "disk": filepath.Join(t.TempDir(), "a", "b")} {
		t.Run(name, func(t *testing.T) {
			p := open(t, dir, "192.0.2.7", "example.com", "0.0.0.0", "", "bücher.example")
			for _, host := range []string{"localhost", "127.0.0.1", "::1", "kubernetes.default.svc", "192.0.2.7", "example.com"} {
				who, err := shake(t, p, p.Admin(), host)
				if err != nil {
					t.Fatalf("%s: %v", host, err)
				}
				if who.CommonName != "kubernetes-admin" || !slices.Equal(who.Organization, []string{"system:masters"}) {
					t.Errorf("the server saw %v", who)
				}
			}
			if _, err := shake(t, p, p.Admin(), "other.example.com"); err == nil {
				t.Error("the certificate is valid for another host")
			}
			eve, err := p.Client("eve", "a", "b")
			if err != nil {
				t.Fatal(err)
			}
			if who, err := shake(t, p, eve, "localhost"); err != nil || who.CommonName != "eve" {
				t.Error(err)
			}
			if _, err := shake(t, p, open(t, "").Admin(), "localhost"); err == nil {
				t.Error("another server's administrator was let in")
			}
		})
	}
}

func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	return files
}

// changed returns the names of files that differ.
func changed(before, after map[string]string) string {
	var names []string
	for name, data := range after {
		if before[name] != data {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestKept(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, "192.0.2.7")
	first := content(t, dir)
	if len(first) != 4 {
		t.Errorf("files: %v", first)
	}
	for name := range first {
		info, err := os.Stat(filepath.Join(dir, name))
		if want := map[bool]os.FileMode{true: 0o644, false: 0o600}[name == publicFile]; err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	for _, hosts := range [][]string{{"192.0.2.7"}, nil} {
		open(t, dir, hosts...)
		if got := changed(first, content(t, dir)); got != "" {
			t.Errorf("opened with %v: changed %s", hosts, got)
		}
	}
}

// Files that can be recreated are, and no others change.
func TestRenewed(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(dir string) error
		hosts  []string
		want   string
	}{
		"another address": {nil, []string{"192.0.2.8"}, servingFile},
		"another name":    {nil, []string{"example.com"}, servingFile},
		"lost serving":    {func(dir string) error { return os.Remove(filepath.Join(dir, servingFile)) }, nil, servingFile},
		"lost admin":      {func(dir string) error { return os.Remove(filepath.Join(dir, adminFile)) }, nil, adminFile},
		"lost public":     {func(dir string) error { return os.Remove(filepath.Join(dir, publicFile)) }, nil, ""}, // unchanged
		"half a file":     {func(dir string) error { return os.Truncate(filepath.Join(dir, servingFile), 300) }, nil, servingFile},
		"an empty file":   {func(dir string) error { return os.Truncate(filepath.Join(dir, adminFile), 0) }, nil, adminFile},
		"two files swapped": {func(dir string) error {
			return os.Rename(filepath.Join(dir, adminFile), filepath.Join(dir, servingFile))
		}, nil, adminFile + " " + servingFile},
		"another authority": {func(dir string) error { return os.Remove(filepath.Join(dir, authorityFile)) }, nil,
			adminFile + " " + publicFile + " " + authorityFile + " " + servingFile},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, dir)
			before := content(t, dir)
			if tt.change != nil {
				if err := tt.change(dir); err != nil {
					t.Fatal(err)
				}
			}
			p := open(t, dir, tt.hosts...)
			after := content(t, dir)
			if len(after) != len(before) {
				t.Errorf("files: %d, were %d", len(after), len(before))
			}
			want := strings.Fields(tt.want)
			slices.Sort(want)
			if got := changed(before, after); got != strings.Join(want, " ") {
				t.Errorf("changed %q, want %q", got, tt.want)
			}
			if _, err := shake(t, p, p.Admin(), "localhost"); err != nil {
				t.Error(err)
			}
			open(t, dir, tt.hosts...)
			if got := changed(after, content(t, dir)); got != "" {
				t.Errorf("the next start changed %s", got)
			}
		})
	}
}

// An unreadable CA is never replaced.
func TestDamagedAuthority(t *testing.T) {
	good := t.TempDir()
	open(t, good)
	other := t.TempDir()
	open(t, other)
	ca, otherCA := content(t, good)[authorityFile], content(t, other)[authorityFile]
	for name, tt := range map[string]struct{ content, want string }{
		"empty":          {"", "the certificate is missing"},
		"half":           {ca[:len(ca)/2], " is missing"},
		"no key":         {ca[:strings.Index(ca, "-----BEGIN EC")], "the private key is missing"},
		"nonsense":       {"nonsense", "the certificate is missing"},
		"not the key":    {ca[:strings.Index(ca, "-----BEGIN EC")] + otherCA[strings.Index(otherCA, "-----BEGIN EC"):], "the private key does not match the certificate"},
		"no authority":   {content(t, good)[adminFile], "is not a CA"},
		"damaged inside": {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "malformed"},
	} {
		dir := t.TempDir()
		open(t, dir)
		if err := os.WriteFile(filepath.Join(dir, authorityFile), []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		before := content(t, dir)
		_, err := Open(dir, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), filepath.Join(dir, authorityFile)) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
		if got := changed(before, content(t, dir)); got != "" {
			t.Errorf("%s: changed %s", name, got)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(file, "dir"), nil); err == nil || !strings.HasPrefix(err.Error(), "certificates: ") {
		t.Error(err)
	}
}

// For years, with and without restarts, a client that trusts the current CA connects, and earlier
// client certificates stay valid.
func TestYears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		p := open(t, dir)
		first := p.Admin()
		old := p.Serving().Cert
		for range 9 {
			time.Sleep(year / 10)
			cert, err := p.GetCertificate(nil)
			if err != nil || time.Until(cert.Leaf.NotAfter) < servingLife/4 {
				t.Fatalf("the serving certificate is good until %v: %v", cert.Leaf.NotAfter, err)
			}
		}
		if p.Serving().Cert.Equal(old) || !open(t, dir).Serving().Cert.Equal(p.Serving().Cert) {
			t.Error("the serving certificate was not renewed and kept")
		}
		for range 30 {
			time.Sleep(year / 2)
			p = open(t, dir)
			if _, err := shake(t, p, p.Admin(), "localhost"); err != nil {
				t.Fatal(err)
			}
			if left := time.Until(first.Cert.NotAfter); left > 0 {
				if _, err := shake(t, p, first, "localhost"); err != nil {
					t.Fatalf("the first administrator, %v before the end: %v", left, err)
				}
			}
			if left := time.Until(p.Admin().Cert.NotAfter); left < 2*year {
				t.Fatalf("the administrator has %v left", left)
			}
		}
	})
}

func TestHosts(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	if got := Hosts("127.0.0.1"); !slices.Equal(got, []string{"127.0.0.1", name}) {
		t.Errorf("%v", got)
	}
	for _, all := range []string{"0.0.0.0", "::", ""} {
		if got := Hosts(all); len(got) < 2 || got[1] != name {
			t.Errorf("%q: %v", all, got)
		}
	}
}

// Files of a user's own PKI.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p, other := open(t, ""), open(t, "")
	cert, key, otherKey := write("crt", p.Serving().CertPEM()), write("key", p.Serving().KeyPEM()), write("other", other.Serving().KeyPEM())
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	foreign := write("rsa", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)}))
	empty, ca := write("empty", nil), write("ca", append(p.CA(), other.CA()...))

	if got, err := LoadCertificate(cert, key, slog.Default()); err != nil || !got.Get().Leaf.Equal(p.Serving().Cert) {
		t.Error(err)
	}
	for _, tt := range []struct{ cert, key, want string }{
		{cert, otherKey, "the private key in " + otherKey + " does not match the certificate in " + cert},
		{cert, foreign, "the private key in " + foreign + " does not match the certificate in " + cert},
		{cert, empty, "failed to find any PEM data in key input"},
		{empty, key, "failed to find any PEM data in certificate input"},
		{key, cert, "certificate in " + key},
		{dir + "/none", key, "no such file"},
		{cert, dir + "/none", "no such file"},
	} {
		if _, err := LoadCertificate(tt.cert, tt.key, slog.Default()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, %s: %v, want %s", tt.cert, tt.key, err, tt.want)
		}
	}

	certs, err := LoadAuthorities(ca)
	if err != nil || len(certs) != 2 || !certs[1].Equal(other.authority.Cert) {
		t.Error(certs, err)
	}
	if _, err := other.Admin().Cert.Verify(x509.VerifyOptions{Roots: NewAuthorities(append(certs, p.Authority())...).Pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{
		empty: empty + " has no PEM certificate", key: key + " has no PEM certificate", dir + "/none": "no such file",
		write("bad", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})): "certificate 1 in ",
	} {
		if _, err := LoadAuthorities(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
			open(b, "")
		}
	})
	b.Run("first", func(b *testing.B) {
		dir := b.TempDir()
		for b.Loop() {
			open(b, dir)
			os.RemoveAll(dir)
		}
	})
	b.Run("later", func(b *testing.B) {
		dir := b.TempDir()
		for b.Loop() {
			open(b, dir)
		}
	})
}

// A user's own serving certificate is trusted directly.
func TestTrust(t *testing.T) {
	p := open(t, "")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(Trust(p.curve.tls))
	if _, err := p.Serving().Cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost"}); err != nil {
		t.Error(err)
	}
}
