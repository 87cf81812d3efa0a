package authn

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/asn1"

	"github.com/anykind/anykind/internal/request"
)

// ClientCertificates knows users by their client certificates: the common name
// is the user's, the organizations are their groups.
type ClientCertificates struct {
	roots func() *x509.CertPool

	mu       sync.RWMutex
	by       *x509.CertPool // the roots by which all in verified are so
	verified map[[sha256.Size]byte]verified
}

// verified is what came of a certificate, and for how long that is so.
type verified struct {
	user        *request.User
	from, until time.Time
}

// maxVerified bounds how many verified certificates are remembered.
const maxVerified = 4096

// NewClientCertificates returns a ClientCertificates that trusts what roots returns,
// which is another pool when it has changed.
func NewClientCertificates(roots func() *x509.CertPool) *ClientCertificates {
	return &ClientCertificates{roots: roots, verified: map[[sha256.Size]byte]verified{}}
}

// Authenticate implements Authenticator. The TLS layer has seen that the client
// has the key; that the certificate is one to trust is seen here, once.
func (c *ClientCertificates) Authenticate(r *http.Request) (*request.User, bool, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, false, nil
	}
	sent := r.TLS.PeerCertificates
	now := time.Now()
	key, roots := digest(sent), c.roots()
	c.mu.RLock()
	v, ok := c.verified[key]
	ok = ok && c.by == roots
	c.mu.RUnlock()
	if ok && !now.Before(v.from) && !now.After(v.until) {
		return v.user, true, nil
	}

	v, err := verify(sent, roots, now)
	if err != nil {
		return nil, false, fmt.Errorf("client certificate of %q, serial number %d: %w", sent[0].Subject.CommonName, sent[0].SerialNumber, err)
	}
	if v.user == nil {
		return nil, false, nil
	}
	c.mu.Lock()
	if len(c.verified) >= maxVerified || c.by != roots {
		clear(c.verified)
	}
	c.by = roots
	c.verified[key] = v
	c.mu.Unlock()
	return v.user, true, nil
}

// digest tells apart what clients send.
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

func verify(sent []*x509.Certificate, roots *x509.CertPool, now time.Time) (verified, error) {
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
		return verified{}, err
	}
	u, err := subject(sent[0])
	if u == nil || err != nil {
		return verified{}, err
	}
	v := verified{user: known(u), from: sent[0].NotBefore, until: sent[0].NotAfter}
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

// subject returns the user that a certificate names, or nil.
func subject(cert *x509.Certificate) (*request.User, error) {
	if cert.Subject.CommonName == "" {
		return nil, nil
	}
	u := &request.User{Name: cert.Subject.CommonName, Groups: cert.Subject.Organization}
	oid := asn1.X509UID()
	seen := false
	for _, name := range cert.Subject.Names {
		if !name.Type.Equal(oid) {
			continue
		}
		uid, ok := name.Value.(string)
		switch {
		case !ok:
			return nil, errors.New("the UID in its subject is not a string")
		case seen:
			return nil, errors.New("its subject has more than one UID")
		case uid == "":
			return nil, errors.New("the UID in its subject is empty")
		}
		u.UID, seen = uid, true
	}
	sum := sha256.Sum256(cert.Raw)
	u.Extra = map[string][]string{credentialID: {"X509SHA256=" + hex.EncodeToString(sum[:])}}
	return u, nil
}
