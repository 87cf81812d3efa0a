package authn

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/network/pki/pkitest"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
)

// issue returns a key pair; change modifies the certificate before it is signed.
func issue(t testing.TB, by *pki.Pair, name string, change func(*x509.Certificate)) *pki.Pair {
	t.Helper()
	of := x509.Certificate{Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true}
	if change != nil {
		change(&of)
	}
	return pkitest.Sign(t, by, of)
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

func trusting(a *pki.Pair, gates *gate.Set) *ClientCertificates {
	roots := x509.NewCertPool()
	roots.AddCert(a.Cert)
	return NewClientCertificates(func() *x509.CertPool { return roots }, gates)
}

// withUID returns a change of a client certificate, whose subject gets UIDs.
func withUID(values ...any) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		forClient(c)
		for _, v := range values {
			c.Subject.ExtraNames = append(c.Subject.ExtraNames, pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: v})
		}
	}
}

func TestClientCertificate(t *testing.T) {
	ca := issue(t, nil, "ca", isCA)
	middle := issue(t, ca, "middle", isCA)
	stranger := issue(t, nil, "ca", isCA)
	for _, tt := range []struct {
		name string
		sent []*x509.Certificate
		want *request.User
		err  string
	}{
		{"none", nil, anonymous, ""},
		{"good", []*x509.Certificate{issue(t, ca, "eve", func(c *x509.Certificate) {
			forClient(c)
			c.Subject.Organization = []string{"dev", "ops"}
		}).Cert}, &request.User{Name: "eve", Groups: []string{"dev", "ops", request.Authenticated}}, ""},
		{"for any use", []*x509.Certificate{issue(t, ca, "eve", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} }).Cert},
			&request.User{Name: "eve", Groups: []string{request.Authenticated}}, ""},
		{"by an intermediate", []*x509.Certificate{issue(t, middle, "eve", forClient).Cert, middle.Cert}, &request.User{Name: "eve", Groups: []string{request.Authenticated}}, ""},
		{"intermediate not sent", []*x509.Certificate{issue(t, middle, "eve", forClient).Cert}, nil, "unknown authority"},
		{"nameless", []*x509.Certificate{issue(t, ca, "", forClient).Cert}, anonymous, ""},
		{"with a UID", []*x509.Certificate{issue(t, ca, "eve", withUID("u-1")).Cert}, &request.User{Name: "eve", UID: "u-1", Groups: []string{request.Authenticated}}, ""},
		{"with two UIDs", []*x509.Certificate{issue(t, ca, "eve", withUID("u-1", "u-2")).Cert}, nil, "more than one UID"},
		{"with an empty UID", []*x509.Certificate{issue(t, ca, "eve", withUID("")).Cert}, nil, "UID in its subject is empty"},
		{"by a stranger of the same name", []*x509.Certificate{issue(t, stranger, "eve", forClient).Cert}, nil, "unknown authority"},
		{"for a server", []*x509.Certificate{issue(t, ca, "eve", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }).Cert}, nil, "incompatible key usage"},
		{"expired", []*x509.Certificate{issue(t, ca, "eve", func(c *x509.Certificate) {
			forClient(c)
			c.NotAfter = time.Now().Add(-time.Minute)
		}).Cert}, nil, "expired"},
	} {
		c := trusting(ca, nil)
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

// The gate AllowParsingUserUIDFromCertAuth reads UIDs. Without it, wrong ones are no errors.
func TestCertificateUIDs(t *testing.T) {
	ca := issue(t, nil, "ca", isCA)
	c := trusting(ca, gate.With(map[gate.Name]bool{gate.AllowParsingUserUIDFromCertAuth: false}))
	for _, uid := range []string{"u-1", ""} {
		sent := issue(t, ca, "eve", withUID(uid))
		if u, ok, err := c.Authenticate(withCertificates(sent.Cert)); err != nil || !ok || u.Name != "eve" || u.UID != "" {
			t.Errorf("UID %q: %+v, %v, %v", uid, u, ok, err)
		}
	}
}

// A cached verification ends when the certificate or its CA expires.
func TestCertificateExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := issue(t, nil, "ca", isCA)
		middle := issue(t, ca, "middle", func(c *x509.Certificate) {
			isCA(c)
			c.NotAfter = time.Now().Add(time.Hour)
		})
		short := []*x509.Certificate{issue(t, middle, "short", forClient).Cert, middle.Cert}
		long := []*x509.Certificate{issue(t, ca, "long", forClient).Cert}
		c := trusting(ca, nil)
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

// Invalid certificates evict no valid ones from the cache.
func TestVerifiedStay(t *testing.T) {
	ca, stranger := issue(t, nil, "ca", isCA), issue(t, nil, "stranger", forClient)
	c := trusting(ca, nil)
	if _, ok, err := c.Authenticate(withCertificates(issue(t, ca, "eve", forClient).Cert)); !ok || c.good.Len() != 1 {
		t.Errorf("%v, %v, %d valid ones are cached", ok, err, c.good.Len())
	}
	for i := range maxVerified {
		c.refused.AddFor(refusedFor, certificateKey{certificates: [32]byte{byte(i), byte(i >> 8), 1}}, &verified{})
	}
	if _, ok, err := c.Authenticate(withCertificates(stranger.Cert)); ok || err == nil || c.refused.Len() > maxVerified || c.good.Len() != 1 {
		t.Errorf("%v, %v, %d invalid and %d valid ones are cached", ok, err, c.refused.Len(), c.good.Len())
	}
}

func BenchmarkClientCertificate(b *testing.B) {
	ca := issue(b, nil, "ca", isCA)
	c := Chain{trusting(ca, nil)}
	r := withCertificates(issue(b, ca, "eve", forClient).Cert)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := c.Authenticate(r); !ok {
			b.Fatal(err)
		}
	}
}

func BenchmarkToken(b *testing.B) {
	c := Chain{NewClientCertificates(x509.NewCertPool, nil), bearing(b)}
	r := get()
	b.ReportAllocs()
	for b.Loop() {
		r.Header["Authorization"] = []string{"Bearer user-token"}
		if _, ok, err := c.Authenticate(r); !ok {
			b.Fatal(err)
		}
	}
}

// A removed or added CA takes effect with the next request, also on an open connection.
func TestAuthoritiesChange(t *testing.T) {
	old, next := issue(t, nil, "old", isCA), issue(t, nil, "next", isCA)
	pool := func(a *pki.Pair) *x509.CertPool {
		p := x509.NewCertPool()
		p.AddCert(a.Cert)
		return p
	}
	trusted := pool(old)
	c := NewClientCertificates(func() *x509.CertPool { return trusted }, nil)
	is := func(a *pki.Pair) bool {
		_, ok, err := c.Authenticate(withCertificates(a.Cert))
		return ok && err == nil
	}
	alice, bob := issue(t, old, "alice", forClient), issue(t, next, "bob", forClient)
	if !is(alice) || is(bob) {
		t.Error("before: alice is not known, or bob is")
	}
	trusted = pool(next)
	if is(alice) || !is(bob) {
		t.Error("after: alice is known still, or bob is not")
	}
}

// The metric has the remaining lifetime of the client's certificate at each request that it
// authenticates.
func TestCertificateLifetimeIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := issue(t, nil, "ca", isCA)
		now := time.Now()
		short := issue(t, ca, "bob", func(c *x509.Certificate) {
			forClient(c)
			c.NotBefore, c.NotAfter = now.Add(-time.Minute), now.Add(2*time.Hour)
		})
		c := trusting(ca, nil)
		for range 2 {
			if _, ok, err := c.Authenticate(withCertificates(short.Cert)); !ok || err != nil {
				t.Fatal(ok, err)
			}
			time.Sleep(time.Hour)
		}
		stranger := issue(t, issue(t, nil, "other", isCA), "eve", forClient)
		if _, ok, _ := c.Authenticate(withCertificates(stranger.Cert)); ok {
			t.Fatal("a stranger is authenticated")
		}
		var m dto.Metric
		if err := c.expiration.Write(&m); err != nil {
			t.Fatal(err)
		}
		if n, sum := m.Histogram.GetSampleCount(), m.Histogram.GetSampleSum(); n != 2 || sum != (3*time.Hour).Seconds() {
			t.Errorf("%d certificates with %v s in total, want 2 with 3 hours", n, sum)
		}
	})
}
