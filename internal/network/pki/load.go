package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
)

// LoadCertificate loads a certificate with its chain, and its key, from the user's files.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Reloaded[*tls.Certificate], error) {
	return reload(log, []string{certFile, keyFile}, func(contents [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		if err != nil && strings.Contains(err.Error(), "does not match") {
			return nil, fmt.Errorf("the private key in %s does not match the certificate in %s", keyFile, certFile)
		}
		if err != nil {
			return nil, fmt.Errorf("certificate in %s with its key in %s: %w", certFile, keyFile, err)
		}
		return &pair, nil
	})
}

// Authorities is a set of CAs.
type Authorities struct {
	Certificates []*x509.Certificate
	Pool         *x509.CertPool
}

// NewAuthorities returns the CAs with these certificates.
func NewAuthorities(certificates ...*x509.Certificate) *Authorities {
	a := &Authorities{Certificates: certificates, Pool: x509.NewCertPool()}
	for _, c := range certificates {
		a.Pool.AddCert(c)
	}
	return a
}

// Shares reports whether two sets have a CA in common. CAs with the same key are the same, even
// with different certificates.
func (a *Authorities) Shares(b *Authorities) bool {
	return slices.ContainsFunc(a.Certificates, func(c *x509.Certificate) bool {
		return slices.ContainsFunc(b.Certificates, func(d *x509.Certificate) bool {
			return bytes.Equal(c.RawSubjectPublicKeyInfo, d.RawSubjectPublicKeyInfo)
		})
	})
}

// WatchAuthorities loads CA certificates from a file, and appends them to others.
func WatchAuthorities(file string, log *slog.Logger, others ...*x509.Certificate) (*Reloaded[*Authorities], error) {
	return reload(log, []string{file}, func(contents [][]byte) (*Authorities, error) {
		certs, err := ParseAuthorities(file, contents[0])
		if err != nil {
			return nil, err
		}
		return NewAuthorities(append(slices.Clip(others), certs...)...), nil
	})
}

// LoadAuthorities reads a file of CA certificates.
func LoadAuthorities(file string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("CA certificates: %w", err)
	}
	return ParseAuthorities(file, data)
}

// ParseAuthorities parses CA certificates in PEM. Errors name the file.
func ParseAuthorities(file string, data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d in %s: %w", len(certs)+1, file, err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, fmt.Errorf("%s has no PEM certificate", file)
	}
	return certs, nil
}

// Trust returns certificates in PEM with which a client trusts a server with cert.
func Trust(cert *tls.Certificate) []byte {
	var out bytes.Buffer
	for _, der := range cert.Certificate {
		// Writes to a bytes.Buffer do not fail.
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	return out.Bytes()
}
