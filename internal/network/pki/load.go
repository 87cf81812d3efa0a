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

// LoadCertificate reads a certificate, with those that lead to its authority, and the key of
// somebody who has them.
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

// Authorities are those whose certificates count for something.
type Authorities struct {
	Certificates []*x509.Certificate
	Pool         *x509.CertPool
}

// NewAuthorities returns those with the certificates.
func NewAuthorities(certificates ...*x509.Certificate) *Authorities {
	a := &Authorities{Certificates: certificates, Pool: x509.NewCertPool()}
	for _, c := range certificates {
		a.Pool.AddCert(c)
	}
	return a
}

// Shares reports whether two have an authority in common: one that signs with the same key
// is the same one, though it may have several certificates.
func (a *Authorities) Shares(b *Authorities) bool {
	return slices.ContainsFunc(a.Certificates, func(c *x509.Certificate) bool {
		return slices.ContainsFunc(b.Certificates, func(d *x509.Certificate) bool {
			return bytes.Equal(c.RawSubjectPublicKeyInfo, d.RawSubjectPublicKeyInfo)
		})
	})
}

// WatchAuthorities reads a file of certificates of authorities, which count after others.
func WatchAuthorities(file string, log *slog.Logger, others ...*x509.Certificate) (*Reloaded[*Authorities], error) {
	return reload(log, []string{file}, func(contents [][]byte) (*Authorities, error) {
		certs, err := ParseAuthorities(file, contents[0])
		if err != nil {
			return nil, err
		}
		return NewAuthorities(append(slices.Clip(others), certs...)...), nil
	})
}

// LoadAuthorities reads a file of certificates of authorities.
func LoadAuthorities(file string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("CA certificates: %w", err)
	}
	return ParseAuthorities(file, data)
}

// ParseAuthorities reads certificates of authorities in PEM. Errors call the data file.
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

// Trust returns certificates in PEM that make a client trust a server that shows
// cert.
func Trust(cert *tls.Certificate) []byte {
	var out bytes.Buffer
	for _, der := range cert.Certificate {
		// A bytes.Buffer takes everything.
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	return out.Bytes()
}
