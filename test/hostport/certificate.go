package hostport

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"time"

	"github.com/anykind/anykind/internal/network/pki"
)

// certificateFor creates a self-signed certificate for names, and also returns it as PEM.
func certificateFor(names []string) (*tls.Config, []byte, error) {
	now := time.Now()
	p, err := pki.Sign(nil, &x509.Certificate{
		DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	})
	if err != nil {
		return nil, nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{*p.TLS()}}, p.CertPEM(), nil
}
