package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"slices"
	"time"
)

// A Pair is a certificate and its key.
type Pair struct {
	Cert *x509.Certificate
	Key  crypto.Signer // of ECDSA or RSA
}

// CertPEM returns the certificate in PEM.
func (p *Pair) CertPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Cert.Raw})
}

// KeyPEM returns the key in PEM.
func (p *Pair) KeyPEM() []byte {
	if key, ok := p.Key.(*rsa.PrivateKey); ok {
		return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	}
	der, err := x509.MarshalECPrivateKey(p.Key.(*ecdsa.PrivateKey))
	if err != nil {
		panic("pki: a key of a curve that has no name: " + err.Error()) // every key is P-256, RSA or was parsed
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func (p *Pair) pem() []byte { return append(p.CertPEM(), p.KeyPEM()...) }

// TLS returns the pair as a tls.Certificate.
func (p *Pair) TLS() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{p.Cert.Raw}, PrivateKey: p.Key, Leaf: p.Cert}
}

// parsePair parses the output of pem.
func parsePair(data []byte) (*Pair, error) {
	p := &Pair{}
	var err error
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		switch block.Type {
		case "CERTIFICATE":
			p.Cert, err = x509.ParseCertificate(block.Bytes)
		case "EC PRIVATE KEY":
			p.Key, err = x509.ParseECPrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			p.Key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case p.Cert == nil:
		return nil, errors.New("the certificate is missing")
	case p.Key == nil:
		return nil, errors.New("the private key is missing")
	case !p.Key.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(p.Cert.PublicKey):
		return nil, errors.New("the private key does not match the certificate")
	}
	return p, nil
}

// newAuthority creates a CA, with a new key if key is nil.
func newAuthority(name string, now time.Time, key crypto.Signer) (*Pair, error) {
	if key == nil {
		var err error
		if key, err = newCurveKey(); err != nil {
			return nil, err
		}
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(authorityLife),
		IsCA:                  true,
		MaxPathLenZero:        true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	return sign(template, template, key, key)
}

// A leaf describes a certificate.
type leaf struct {
	name   string
	groups []string
	names  names
	usage  x509.ExtKeyUsage
	life   time.Duration
	rsa    bool // else ECDSA
}

// is reports whether a certificate matches l, is signed by authority, and is fresh.
func (l leaf) is(cert, authority *x509.Certificate, now time.Time) bool {
	return cert.Subject.CommonName == l.name &&
		sameSet(cert.Subject.Organization, l.groups) &&
		slices.Contains(cert.ExtKeyUsage, l.usage) &&
		containsAll(cert.DNSNames, l.names.dns, func(a, b string) bool { return a == b }) &&
		containsAll(cert.IPAddresses, l.names.ips, net.IP.Equal) &&
		l.fresh(cert, now) &&
		cert.CheckSignatureFrom(authority) == nil
}

// fresh reports whether a certificate has more than a quarter of its lifetime left.
func (l leaf) fresh(cert *x509.Certificate, now time.Time) bool {
	return now.After(cert.NotBefore) && cert.NotAfter.Sub(now) > l.life/4
}

func sameSet(a, b []string) bool {
	return len(a) == len(b) && containsAll(a, b, func(x, y string) bool { return x == y })
}

func containsAll[T any](have, want []T, equal func(a, b T) bool) bool {
	for _, w := range want {
		if !slices.ContainsFunc(have, func(h T) bool { return equal(h, w) }) {
			return false
		}
	}
	return true
}

// sign creates a pair with a new key.
func (p *Pair) sign(l leaf, now time.Time) (*Pair, error) {
	until := now.Add(l.life)
	if until.After(p.Cert.NotAfter) {
		until = p.Cert.NotAfter
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: l.name, Organization: l.groups},
		NotBefore:   now.Add(-time.Hour), // clock skew
		NotAfter:    until,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{l.usage},
		DNSNames:    l.names.dns,
		IPAddresses: l.names.ips,
	}
	if !l.rsa {
		return Sign(p, template)
	}
	template.KeyUsage |= x509.KeyUsageKeyEncipherment
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	return sign(template, p.Cert, key, p.Key)
}

func newCurveKey() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// Sign creates a pair with a new key and a certificate by template, with a random serial number.
// It is signed by another pair, or self-signed without one.
func Sign(by *Pair, template *x509.Certificate) (*Pair, error) {
	key, err := newCurveKey()
	if err != nil {
		return nil, err
	}
	if by == nil {
		return sign(template, template, key, key)
	}
	return sign(template, by.Cert, key, by.Key)
}

func sign(template, parent *x509.Certificate, key, signer crypto.Signer) (*Pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Pair{Cert: cert, Key: key}, nil
}
