package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// served returns the certificate that a client gets.
func served(t *testing.T, p *PKI, client *tls.Config) *x509.Certificate {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	done := make(chan error, 1)
	go func() { done <- tls.Server(far, &tls.Config{GetCertificate: p.GetCertificate}).Handshake() }()
	client.RootCAs = x509.NewCertPool()
	client.RootCAs.AddCert(p.Authority())
	client.ServerName = "localhost"
	conn := tls.Client(near, client)
	if err := conn.Handshake(); err != nil {
		far.Close()
		t.Fatal(err, <-done)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return conn.ConnectionState().PeerCertificates[0]
}

// A client that supports only RSA gets an RSA certificate. Its key is created for the first such
// client, and stored.
func TestServingRSA(t *testing.T) {
	dir := t.TempDir()
	p, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c := served(t, p, &tls.Config{}); c.PublicKeyAlgorithm != x509.ECDSA {
		t.Error("a client that accepts all algorithms got", c.PublicKeyAlgorithm)
	}
	file := filepath.Join(dir, servingRSAFile)
	if _, err := os.Stat(file); err == nil {
		t.Error("the certificate with RSA was made without need")
	}
	only := &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}}
	first := served(t, p, only)
	if first.PublicKeyAlgorithm != x509.RSA {
		t.Error("a client that accepts RSA only got", first.PublicKeyAlgorithm)
	}
	if p, err = Open(dir, nil); err != nil {
		t.Fatal(err)
	}
	if again := served(t, p, only); !bytes.Equal(again.Raw, first.Raw) {
		t.Error("the certificate with RSA was not stored")
	}
}

// An unknown server name does not lead to an RSA certificate.
func TestServingOtherName(t *testing.T) {
	p, err := Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	hello := &tls.ClientHelloInfo{
		ServerName: "other.example.com", SupportedVersions: []uint16{tls.VersionTLS13}, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
		SupportedCurves: []tls.CurveID{tls.CurveP256}, CipherSuites: []uint16{tls.TLS_AES_128_GCM_SHA256},
	}
	if c, err := p.GetCertificate(hello); err != nil || c.Leaf.PublicKeyAlgorithm != x509.ECDSA || p.rsa.pair != nil {
		t.Error(err, p.rsa.pair)
	}
}
