package pki

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"
)

// A Named is a serving certificate for some server names (SNI).
type Named struct {
	CertFile, KeyFile string
	// Names may begin with "*.". The default are the names in the certificate.
	Names []string
}

// LoadNamed loads certificates, and returns a function that chooses one for a handshake, or nil
// if none matches. Configured names precede names of certificates, and earlier certificates
// precede later ones.
func LoadNamed(all []Named, log *slog.Logger) (func(*tls.ClientHelloInfo) *tls.Certificate, error) {
	type loaded = *Reloaded[*tls.Certificate]
	certificates := make([]loaded, len(all))
	for i, n := range all {
		var err error
		if certificates[i], err = LoadCertificate(n.CertFile, n.KeyFile, log); err != nil {
			return nil, err
		}
	}
	return func(hello *tls.ClientHelloInfo) *tls.Certificate {
		host := strings.ToLower(hello.ServerName)
		if host == "" {
			return nil
		}
		_, rest, _ := strings.Cut(host, ".")
		for _, name := range []string{host, strings.TrimSuffix("*."+rest, ".")} {
			for i, n := range all {
				if isAmong(name, n.Names) {
					return certificates[i].Get()
				}
			}
			for i, n := range all {
				if got := certificates[i].Get(); len(n.Names) == 0 && isAmong(name, hosts(got)) {
					return got
				}
			}
		}
		return nil
	}, nil
}

func isAmong(name string, names []string) bool {
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// hosts returns the DNS names of a certificate. IP addresses never occur in SNI.
func hosts(c *tls.Certificate) []string {
	leaf := c.Leaf
	if leaf == nil {
		var err error
		if leaf, err = x509.ParseCertificate(c.Certificate[0]); err != nil {
			return nil
		}
	}
	names := leaf.DNSNames
	common := leaf.Subject.CommonName
	isHost := common == "*" || len(validation.IsDNS1123Subdomain(strings.TrimPrefix(common, "*."))) == 0
	if isHost && netutils.ParseIPSloppy(common) == nil {
		names = append([]string{common}, names...)
	}
	return names
}
