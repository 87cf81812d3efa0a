package authn

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/asn1"

	"github.com/anykind/anykind/internal/object/bounded"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
)

// ClientCertificates authenticates by client certificates: the common name is the user name, the
// organizations are the groups.
type ClientCertificates struct {
	trust
	expiration prometheus.Histogram
}

// NewClientCertificates returns a ClientCertificates that trusts the CAs that roots returns. roots
// returns another pool after every change. The gate AllowParsingUserUIDFromCertAuth adds UIDs to the users.
func NewClientCertificates(roots func() *x509.CertPool, gates *gate.Set) *ClientCertificates {
	names := func(cert *x509.Certificate) (*request.User, error) { return subject(cert, gates) }
	return &ClientCertificates{newTrust(roots, names), prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "apiserver_client_certificate_expiration_seconds",
		Help:    "Remaining lifetime in seconds of the client certificates of authenticated requests.",
		Buckets: lifetimes,
	})}
}

const (
	hour = 3600.
	day  = 24 * hour
)

// lifetimes are Kubernetes' buckets, for alerts before certificates expire.
var lifetimes = []float64{0, hour / 2, hour, 2 * hour, 6 * hour, 12 * hour, day, 2 * day, 4 * day, 7 * day, 30 * day, 90 * day, 180 * day, 360 * day}

// Collectors returns the collectors to register.
func (c *ClientCertificates) Collectors() []prometheus.Collector {
	return []prometheus.Collector{c.expiration}
}

// Authenticate implements Authenticator.
func (c *ClientCertificates) Authenticate(r *http.Request) (*request.User, bool, error) {
	u, err := c.of(r)
	if u != nil {
		c.expiration.Observe(time.Until(r.TLS.PeerCertificates[0].NotAfter).Seconds())
	}
	return u, u != nil, err
}

// A trust caches the users of verified certificates.
type trust struct {
	roots func() *x509.CertPool
	names func(*x509.Certificate) (*request.User, error) // user of a valid certificate, or nil

	good, refused *bounded.Cache[certificateKey, *verified]
}

// A certificateKey is the key of a cached result. Other roots make another key.
type certificateKey struct {
	certificates [sha256.Size]byte
	roots        *x509.CertPool
}

// verified is the cached result of a certificate.
type verified struct {
	user        *request.User
	from, until time.Time
	err         error
}

const (
	// maxVerified bounds the cached certificates. Valid and invalid ones are counted apart, so that
	// invalid ones evict no valid ones.
	maxVerified = 4096
	// refusedFor is the TTL of a cached rejection: the certificate may become valid.
	refusedFor = 10 * time.Second
)

func newTrust(roots func() *x509.CertPool, names func(*x509.Certificate) (*request.User, error)) trust {
	return trust{
		roots: roots, names: names,
		good: bounded.New[certificateKey, *verified](maxVerified), refused: bounded.New[certificateKey, *verified](maxVerified),
	}
}

// of returns the user of the client's certificate, or nil. The TLS layer has verified that the
// client has the key. The chain of the certificate is verified here, once.
func (t *trust) of(r *http.Request) (*request.User, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	sent := r.TLS.PeerCertificates
	now := time.Now()
	key := certificateKey{digest(sent), t.roots()}
	if v, ok := t.good.Get(key); ok && !now.Before(v.from) && !now.After(v.until) {
		return v.user, nil
	}
	if v, ok := t.refused.Get(key); ok {
		return nil, v.err
	}
	v, err := t.verify(sent, key.roots, now)
	if err != nil {
		err = fmt.Errorf("client certificate of %q, serial number %d: %w", sent[0].Subject.CommonName, sent[0].SerialNumber, err)
		t.refused.AddFor(refusedFor, key, &verified{err: err})
		return nil, err
	}
	t.good.Add(key, v)
	return v.user, nil
}

// digest hashes the certificates of a client.
func digest(sent []*x509.Certificate) [sha256.Size]byte {
	if len(sent) == 1 {
		return sha256.Sum256(sent[0].Raw)
	}
	h := sha256.New()
	for _, cert := range sent {
		sum := sha256.Sum256(cert.Raw)
		h.Write(sum[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func (t *trust) verify(sent []*x509.Certificate, roots *x509.CertPool, now time.Time) (*verified, error) {
	options := x509.VerifyOptions{
		Roots:         roots,
		Intermediates: x509.NewCertPool(),
		CurrentTime:   now,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, cert := range sent[1:] {
		options.Intermediates.AddCert(cert)
	}
	chains, err := sent[0].Verify(options)
	if err != nil {
		return nil, err
	}
	u, err := t.names(sent[0])
	if err != nil {
		return nil, err
	}
	v := &verified{user: u, from: sent[0].NotBefore, until: sent[0].NotAfter}
	for _, cert := range chains[0] {
		if cert.NotBefore.After(v.from) {
			v.from = cert.NotBefore
		}
		if cert.NotAfter.Before(v.until) {
			v.until = cert.NotAfter
		}
	}
	return v, nil
}

// subject returns the user of a certificate, or nil.
func subject(cert *x509.Certificate, gates *gate.Set) (*request.User, error) {
	if cert.Subject.CommonName == "" {
		return nil, nil
	}
	u := &request.User{Name: cert.Subject.CommonName, Groups: cert.Subject.Organization}
	if gates.On(gate.AllowParsingUserUIDFromCertAuth) {
		var err error
		if u.UID, err = uidOf(cert); err != nil {
			return nil, err
		}
	}
	sum := sha256.Sum256(cert.Raw)
	u.Extra = map[string][]string{request.CredentialID: {"X509SHA256=" + hex.EncodeToString(sum[:])}}
	return known(u), nil
}

// uidOf returns the UID in the subject of a certificate, if there is one.
func uidOf(cert *x509.Certificate) (string, error) {
	oid := asn1.X509UID()
	found := ""
	for _, name := range cert.Subject.Names {
		if !name.Type.Equal(oid) {
			continue
		}
		uid, ok := name.Value.(string)
		switch {
		case !ok:
			return "", errors.New("the UID in its subject is not a string")
		case found != "":
			return "", errors.New("its subject has more than one UID")
		case uid == "":
			return "", errors.New("the UID in its subject is empty")
		}
		found = uid
	}
	return found, nil
}
