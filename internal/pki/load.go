package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"strings"
)

// LoadServing reads the serving certificate, with those that lead to its
// authority, and the key of somebody who has them.
func LoadServing(certFile, keyFile string, log *slog.Logger) (*Reloaded[*tls.Certificate], error) {
	return reload(log, []string{certFile, keyFile}, func(contents [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		if err != nil && strings.Contains(err.Error(), "does not match") {
			return nil, fmt.Errorf("the key in %s is not that of the certificate in %s: name the file with its key, or the certificate that was made for the key", keyFile, certFile)
		}
		if err != nil {
			return nil, fmt.Errorf("serving certificate in %s with its key in %s: %w", certFile, keyFile, err)
		}
		return &pair, nil
	})
}

// LoadClientCAs reads a file of certificates of authorities, whose client certificates
// count besides those of the PKI.
func (p *PKI) LoadClientCAs(file string, log *slog.Logger) (*Reloaded[*x509.CertPool], error) {
	return reload(log, []string{file}, func(contents [][]byte) (*x509.CertPool, error) {
		certs, err := parseAuthorities(file, contents[0])
		if err != nil {
			return nil, err
		}
		return p.ClientCAs(certs...), nil
	})
}

// LoadAuthorities reads a file of certificates of authorities.
func LoadAuthorities(file string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("certificates of authorities: %w", err)
	}
	return parseAuthorities(file, data)
}

func parseAuthorities(file string, data []byte) ([]*x509.Certificate, error) {
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
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
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
