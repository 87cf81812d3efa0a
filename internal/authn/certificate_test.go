package authn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/request"
)

// An authority signs certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue returns a new authority whose certificate is as change makes it, signed
// by a, or by itself if a is nil. From now on it is valid for a day.
func (a *authority) issue(t testing.TB, name string, change func(*x509.Certificate)) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		BasicConstraintsValid: true,
	}
	if change != nil {
		change(template)
	}
	parent, signer := template, key
	if a != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func isCA(c *x509.Certificate) {
	c.IsCA = true
	c.KeyUsage = x509.KeyUsageCertSign
}

func forClient(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }

func withCertificates(sent ...*x509.Certificate) *http.Request {
	r := get()
	r.TLS = &tls.ConnectionState{PeerCertificates: sent}
	return r
}

func trusting(a *authority) *ClientCertificates {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return NewClientCertificates(func() *x509.CertPool { return roots })
}

func TestClientCertificate(t *testing.T) {
	ca := (*authority)(nil).issue(t, "ca", isCA)
	middle := ca.issue(t, "middle", isCA)
	stranger := (*authority)(nil).issue(t, "ca", isCA)
	uid := func(values ...any) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			forClient(c)
			for _, v := range values {
				c.Subject.ExtraNames = append(c.Subject.ExtraNames, pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: v})
			}
		}
	}
	for _, tt := range []struct {
		name string
		sent []*x509.Certificate
		want *request.User
		err  string
	}{
		{"none", nil, anonymous, ""},
		{"good", []*x509.Certificate{ca.issue(t, "eve", func(c *x509.Certificate) {
			forClient(c)
			c.Subject.Organization = []string{"dev", "ops"}
		}).cert}, &request.User{Name: "eve", Groups: []string{"dev", "ops", request.Authenticated}}, ""},
		{"for any use", []*x509.Certificate{ca.issue(t, "eve", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} }).cert},
			&request.User{Name: "eve", Groups: []string{request.Authenticated}}, ""},
		{"by an intermediate", []*x509.Certificate{middle.issue(t, "eve", forClient).cert, middle.cert}, &request.User{Name: "eve", Groups: []string{request.Authenticated}}, ""},
		{"intermediate not sent", []*x509.Certificate{middle.issue(t, "eve", forClient).cert}, nil, "unknown authority"},
		{"nameless", []*x509.Certificate{ca.issue(t, "", forClient).cert}, anonymous, ""},
		{"with a UID", []*x509.Certificate{ca.issue(t, "eve", uid("u-1")).cert}, &request.User{Name: "eve", UID: "u-1", Groups: []string{request.Authenticated}}, ""},
		{"with two UIDs", []*x509.Certificate{ca.issue(t, "eve", uid("u-1", "u-2")).cert}, nil, "more than one UID"},
		{"with an empty UID", []*x509.Certificate{ca.issue(t, "eve", uid("")).cert}, nil, "UID in its subject is empty"},
		{"by a stranger of the same name", []*x509.Certificate{stranger.issue(t, "eve", forClient).cert}, nil, "unknown authority"},
		{"for a server", []*x509.Certificate{ca.issue(t, "eve", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }).cert}, nil, "incompatible key usage"},
		{"expired", []*x509.Certificate{ca.issue(t, "eve", func(c *x509.Certificate) {
			forClient(c)
			c.NotAfter = time.Now().Add(-time.Minute)
		}).cert}, nil, "expired"},
	} {
		c := trusting(ca)
		for _, round := range []string{"first", "second"} {
			u, ok, err := OrAnonymous(Chain{c}, Anonymous{Enabled: true}).Authenticate(withCertificates(tt.sent...))
			if tt.want == nil {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%s, %s time: %+v, %v, want %s", tt.name, round, u, err, tt.err)
				}
				continue
			}
			if err != nil || !ok {
				t.Errorf("%s, %s time: %v", tt.name, round, err)
				continue
			}
			got := *u
			if id := got.Extra[request.CredentialID]; u.Name != request.Anonymous && (len(id) != 1 || !strings.HasPrefix(id[0], "X509SHA256=")) {
				t.Errorf("%s: extra %v", tt.name, got.Extra)
			}
			got.Extra = nil
			if !reflect.DeepEqual(&got, tt.want) {
				t.Errorf("%s, %s time: %+v, want %+v", tt.name, round, got, tt.want)
			}
		}
	}
}

// That a certificate was good once does not make it good after it expired, or
// after the one it depends on did.
func TestCertificateExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := (*authority)(nil).issue(t, "ca", isCA)
		middle := ca.issue(t, "middle", func(c *x509.Certificate) {
			isCA(c)
			c.NotAfter = time.Now().Add(time.Hour)
		})
		short := []*x509.Certificate{middle.issue(t, "short", forClient).cert, middle.cert}
		long := []*x509.Certificate{ca.issue(t, "long", forClient).cert}
		c := trusting(ca)
		for _, step := range []struct {
			wait        time.Duration
			short, long bool
		}{{0, true, true}, {59 * time.Minute, true, true}, {2 * time.Minute, false, true}, {24 * time.Hour, false, false}} {
			time.Sleep(step.wait)
			if _, ok, err := c.Authenticate(withCertificates(short...)); ok != step.short {
				t.Errorf("after another %v: by an intermediate: %v, %v", step.wait, ok, err)
			}
			if _, ok, err := c.Authenticate(withCertificates(long...)); ok != step.long {
				t.Errorf("after another %v: by the root: %v, %v", step.wait, ok, err)
			}
		}
	})
}

// However many certificates there are, few are remembered.
func TestVerifiedIsBounded(t *testing.T) {
	ca := (*authority)(nil).issue(t, "ca", isCA)
	c := trusting(ca)
	for i := range maxVerified {
		c.good[[32]byte{byte(i), byte(i >> 8), 1}] = verified{}
	}
	eve := withCertificates(ca.issue(t, "eve", forClient).cert)
	c.by = c.roots()
	if _, ok, err := c.Authenticate(eve); !ok || len(c.good) != 1 {
		t.Errorf("%v, %v, %d remembered", ok, err, len(c.good))
	}
	for i := range maxVerified {
		c.refused[[32]byte{byte(i), byte(i >> 8), 1}] = refused{}
	}
	stranger := (*authority)(nil).issue(t, "stranger", forClient)
	if _, ok, err := c.Authenticate(withCertificates(stranger.cert)); ok || err == nil || len(c.refused) != 1 || len(c.good) != 1 {
		t.Errorf("%v, %v, %d refused and %d good ones remembered", ok, err, len(c.refused), len(c.good))
	}
}

func BenchmarkClientCertificate(b *testing.B) {
	ca := (*authority)(nil).issue(b, "ca", isCA)
	c := Chain{trusting(ca)}
	r := withCertificates(ca.issue(b, "eve", forClient).cert)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := c.Authenticate(r); !ok {
			b.Fatal(err)
		}
	}
}

func BenchmarkToken(b *testing.B) {
	c := Chain{NewClientCertificates(x509.NewCertPool), bearing(b)}
	r := get()
	b.ReportAllocs()
	for b.Loop() {
		r.Header["Authorization"] = []string{"Bearer user-token"}
		if _, ok, err := c.Authenticate(r); !ok {
			b.Fatal(err)
		}
	}
}

// An authority that counts no longer, or only now, is known by the next request, on a
// connection that is open already, too.
func TestAuthoritiesChange(t *testing.T) {
	old, next := (*authority)(nil).issue(t, "old", isCA), (*authority)(nil).issue(t, "next", isCA)
	pool := func(a *authority) *x509.CertPool {
		p := x509.NewCertPool()
		p.AddCert(a.cert)
		return p
	}
	trusted := pool(old)
	c := NewClientCertificates(func() *x509.CertPool { return trusted })
	is := func(a *authority) bool {
		_, ok, err := c.Authenticate(withCertificates(a.cert))
		return ok && err == nil
	}
	alice, bob := old.issue(t, "alice", forClient), next.issue(t, "bob", forClient)
	if !is(alice) || is(bob) {
		t.Error("before: alice is not known, or bob is")
	}
	trusted = pool(next)
	if is(alice) || !is(bob) {
		t.Error("after: alice is known still, or bob is not")
	}
}
