package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
)

// LoadServing reads the serving certificate, with those that lead to its
// authority, and the key of somebody who has them.
func LoadServing(certFile, keyFile string) (*tls.Certificate, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("key of the serving certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil && strings.Contains(err.Error(), "does not match") {
		return nil, fmt.Errorf("the key in %s is not that of the certificate in %s: name the file with its key, or the certificate that was made for the key", keyFile, certFile)
	}
	if err != nil {
		return nil, fmt.Errorf("serving certificate in %s with its key in %s: %w", certFile, keyFile, err)
	}
	return &pair, nil
}

// LoadAuthorities reads a file of certificates of authorities.
func LoadAuthorities(file string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("certificates of authorities: %w", err)
	}
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
