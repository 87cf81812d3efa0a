package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// maxKey is how many bytes there may be of a key.
const maxKey = 10 * 1024

func rangeOf(from, to int) string { return fmt.Sprintf("must be in the range [%d, %d]", from, to) }

// validateKey checks the key that a certificate is asked for, and that who asks has it. c
// looks at the spec.
func validateKey(c *rule.Check, spec *certificatesv1.PodCertificateRequestSpec) {
	if len(spec.StubPKCS10Request) == 0 {
		c.Invalid(field.OmitValueType{}, "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set")
		return
	}
	validateStub(c.At("stubPKCS10Request"), spec.StubPKCS10Request)
}

func validateStub(c *rule.Check, text []byte) {
	if len(text) > maxKey {
		c.TooLong(maxKey)
		return
	}
	stub, err := x509.ParseCertificateRequest(text)
	if err != nil {
		c.Invalid(field.OmitValueType{}, "must be a valid PKCS#10 CSR")
		return
	}
	if isGoodKey(c, stub.PublicKey) && stub.CheckSignature() != nil {
		c.Invalid(field.OmitValueType{}, "invalid signature")
	}
}

// isGoodKey finds what is wrong with a key, and reports whether nothing is.
func isGoodKey(c *rule.Check, key any) bool {
	switch key := key.(type) {
	case ed25519.PublicKey:
		return true
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() || key.Curve == elliptic.P384() || key.Curve == elliptic.P521() {
			return true
		}
		c.Invalid("curve "+key.Curve.Params().Name, "elliptic public keys must use curve P256, P384, or P521")
	case *rsa.PublicKey:
		bits := key.Size() * 8
		if bits == 3072 || bits == 4096 {
			return true
		}
		c.Invalid(fmt.Sprintf("%d-bit modulus", bits), "RSA keys must have modulus size 3072 or 4096")
	default:
		c.Invalid(field.OmitValueType{}, "unknown public key type; supported types are Ed25519, ECDSA, and RSA")
	}
	return false
}

// keyOf returns the key that a certificate is asked for, or says what is wrong with it.
func keyOf(c *rule.Check, spec *certificatesv1.PodCertificateRequestSpec) (crypto.PublicKey, bool) {
	if len(spec.StubPKCS10Request) > 0 {
		stub, err := x509.ParseCertificateRequest(spec.StubPKCS10Request)
		if err != nil {
			c.At("stubPKCS10Request").Invalid(field.OmitValueType{}, "must be a valid PKCS#10 CSR")
			return nil, false
		}
		return stub.PublicKey, true
	}
	c.At("pkixPublicKey").Invalid(field.OmitValueType{}, "must be a valid PKIX-serialized public key")
	return nil, false
}
