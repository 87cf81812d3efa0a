package builtin

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// start is the origin of relative times.
var start = time.Now().UTC().Truncate(time.Second)

// A wish describes a certificate, a request or a key in a document:
//
//	{certificate: {key: ed25519, ca: true, dns: [a], email: [b], from: -1m, lifetime: 24h}}   PEM
//	{request: {key: p256, broken: true}}            a PKCS#10 request, in base64
//	{block: {key: CERTIFICATE, of: text}}           a PEM block of that type
type wish struct {
	Key            string
	DNS, Email     []string
	From, Lifetime string
	CA, Broken     bool
	Headers        bool
	Of             string
}

// wishes returns the makers of certificates, times and texts.
func wishes() map[string]maker {
	return map[string]maker{
		"certificate": wished(certificate),
		"request":     wished(func(w wish) (string, error) { return inBase64(signingRequest(w)) }),
		"block": wished(func(w wish) (string, error) {
			return string(pem.EncodeToMemory(&pem.Block{Type: w.Key, Bytes: []byte(w.Of)})), nil
		}),
		"time": func(arg any, _ Object) (any, error) {
			d, err := time.ParseDuration(arg.(string))
			return start.Add(d).Format(time.RFC3339), err
		},
		"join": func(arg any, _ Object) (any, error) {
			parts, err := made(arg)
			if err != nil {
				return nil, err
			}
			return fmt.Sprint(parts.([]any)...), nil
		},
		"base64": func(arg any, _ Object) (any, error) {
			text, err := made(arg)
			if err != nil {
				return nil, err
			}
			return inBase64([]byte(text.(string)), nil)
		},
	}
}

func inBase64(data []byte, err error) (string, error) {
	return base64.StdEncoding.EncodeToString(data), err
}

// wished returns a maker that reads a wish.
func wished(make func(wish) (string, error)) maker {
	return func(arg any, _ Object) (any, error) {
		data, err := json.Marshal(arg)
		if err != nil {
			return nil, err
		}
		var w wish
		if err := json.Unmarshal(data, &w); err != nil {
			return nil, err
		}
		return make(w)
	}
}

// keyOf returns the private key of a name, always the same one.
func keyOf(name string) (crypto.Signer, error) {
	if curve := curves[name]; curve != nil {
		one := make([]byte, curve.Params().BitSize/8)
		one[len(one)-1] = 1
		return ecdsa.ParseRawPrivateKey(curve, one)
	}
	if !strings.HasPrefix(name, "ed25519") {
		return nil, fmt.Errorf("no key %q", name)
	}
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(len(name))}, ed25519.SeedSize)), nil
}

var curves = map[string]elliptic.Curve{"p224": elliptic.P224(), "p256": elliptic.P256(), "p384": elliptic.P384()}

// publicKey returns the PKIX form of a key. RSA and x25519 keys have no private key here.
func publicKey(name string) ([]byte, error) {
	if bits, ok := strings.CutPrefix(name, "rsa"); ok {
		size, err := strconv.ParseUint(bits, 10, 16)
		if err != nil {
			return nil, err
		}
		n := new(big.Int).Lsh(big.NewInt(1), uint(size-1))
		return x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: 65537})
	}
	if name == "x25519" {
		key, err := ecdh.X25519().NewPrivateKey(bytes.Repeat([]byte{1}, 32))
		if err != nil {
			return nil, err
		}
		return x509.MarshalPKIXPublicKey(key.PublicKey())
	}
	key, err := keyOf(name)
	if err != nil {
		return nil, err
	}
	return x509.MarshalPKIXPublicKey(key.Public())
}

// signingRequest returns a PKCS#10 request. Its signature is invalid if it is broken, or if its key
// has no private key.
func signingRequest(w wish) ([]byte, error) {
	key, err := keyOf(w.Key)
	if err == nil && !w.Broken {
		return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	}
	public, err := publicKey(w.Key)
	if err != nil {
		return nil, err
	}
	type content struct {
		Version    int
		Subject    []asn1.RawValue
		PublicKey  asn1.RawValue
		Attributes []asn1.RawValue `asn1:"tag:0"`
	}
	return asn1.Marshal(struct {
		Content   content
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{
		content{PublicKey: asn1.RawValue{FullBytes: public}},
		pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 3, 101, 112}},
		asn1.BitString{Bytes: make([]byte, ed25519.SignatureSize), BitLength: 8 * ed25519.SignatureSize},
	})
}

// certificate returns a certificate signed by a CA, or a self-signed CA certificate.
func certificate(w wish) (string, error) {
	issuer, err := keyOf("ed25519 of the authority")
	if err != nil {
		return "", err
	}
	key, err := keyOf(w.Key)
	if err != nil {
		return "", err
	}
	from, lifetime := time.Duration(0), 24*time.Hour
	if w.From != "" {
		if from, err = time.ParseDuration(w.From); err != nil {
			return "", err
		}
	}
	if w.Lifetime != "" {
		if lifetime, err = time.ParseDuration(w.Lifetime); err != nil {
			return "", err
		}
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "c"},
		NotBefore: start.Add(from), NotAfter: start.Add(from + lifetime),
		DNSNames: w.DNS, EmailAddresses: w.Email, IsCA: w.CA, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), issuer)
	if err != nil {
		return "", err
	}
	block := &pem.Block{Type: "CERTIFICATE", Bytes: der}
	if w.Headers {
		block.Headers = map[string]string{"A": "b"}
	}
	return string(pem.EncodeToMemory(block)), nil
}
