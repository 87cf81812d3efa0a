package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"fmt"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// maxKey limits the bytes of a key.
const maxKey = 10 * 1024

func rangeOf(from, to int) string { return fmt.Sprintf("must be in the range [%d, %d]", from, to) }

// validateKey validates the requested key and its proof of possession. c is at the spec.
func validateKey(c *rule.Check, spec *certificatesv1beta1.PodCertificateRequestSpec) {
	key, signature := withoutStub(spec)
	stub, hasKey, hasSignature := len(spec.StubPKCS10Request) > 0, len(key) > 0, len(signature) > 0
	switch {
	case stub && !hasKey && !hasSignature:
		validateStub(c.At("stubPKCS10Request"), spec.StubPKCS10Request)
	case !stub && hasKey && hasSignature:
		validateProof(c, spec)
	default:
		c.Invalid(field.OmitValueType{}, "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set")
	}
}

// withoutStub returns the public key and the proof of possession of a request without a stub.
func withoutStub(spec *certificatesv1beta1.PodCertificateRequestSpec) (key, signature []byte) {
	//lint:ignore SA1019 old clients send it
	return spec.PKIXPublicKey, spec.ProofOfPossession
}

// validateProof validates a key and its signature of the pod's UID.
func validateProof(c *rule.Check, spec *certificatesv1beta1.PodCertificateRequestSpec) {
	at := c.At("pkixPublicKey")
	text, signature := withoutStub(spec)
	if len(text) > maxKey {
		at.TooLong(maxKey)
		return
	}
	if len(signature) > maxKey {
		c.At("proofOfPossession").TooLong(maxKey)
		return
	}
	key, err := x509.ParsePKIXPublicKey(text)
	if err != nil {
		at.Invalid(text, "must be a valid PKIX-serialized public key")
		return
	}
	if isGoodKey(at, key, text, "elliptic public keys must use curve P256 or P384") && !signed(key, []byte(spec.PodUID), signature) {
		c.At("proofOfPossession").Invalid(field.OmitValueType{}, "could not verify proof-of-possession signature")
	}
}

// signed reports whether a key made the signature of a text.
func signed(key any, text, signature []byte) bool {
	sum := sha256.Sum256(text)
	switch key := key.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(key, text, signature)
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, sum[:], signature)
	case *rsa.PublicKey:
		return rsa.VerifyPSS(key, crypto.SHA256, sum[:], signature, nil) == nil
	}
	return false
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
	if isGoodKey(c, stub.PublicKey, field.OmitValueType{}, "elliptic public keys must use curve P256, P384, or P521") && stub.CheckSignature() != nil {
		c.Invalid(field.OmitValueType{}, "invalid signature")
	}
}

// isGoodKey reports whether a key is valid, and adds errors. shown is the value in errors about the
// type of a key, and curves the supported curves.
func isGoodKey(c *rule.Check, key, shown any, curves string) bool {
	switch key := key.(type) {
	case ed25519.PublicKey:
		return true
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() || key.Curve == elliptic.P384() || key.Curve == elliptic.P521() {
			return true
		}
		c.Invalid("curve "+key.Curve.Params().Name, curves)
	case *rsa.PublicKey:
		bits := key.Size() * 8
		if bits == 3072 || bits == 4096 {
			return true
		}
		c.Invalid(fmt.Sprintf("%d-bit modulus", bits), "RSA keys must have modulus size 3072 or 4096")
	default:
		c.Invalid(shown, "unknown public key type; supported types are Ed25519, ECDSA, and RSA")
	}
	return false
}

// keyOf returns the requested key, or adds an error.
func keyOf(c *rule.Check, spec *certificatesv1beta1.PodCertificateRequestSpec) (crypto.PublicKey, bool) {
	if len(spec.StubPKCS10Request) > 0 {
		stub, err := x509.ParseCertificateRequest(spec.StubPKCS10Request)
		if err != nil {
			c.At("stubPKCS10Request").Invalid(field.OmitValueType{}, "must be a valid PKCS#10 CSR")
			return nil, false
		}
		return stub.PublicKey, true
	}
	text, _ := withoutStub(spec)
	key, err := x509.ParsePKIXPublicKey(text)
	if err != nil {
		c.At("pkixPublicKey").Invalid(field.OmitValueType{}, "must be a valid PKIX-serialized public key")
		return nil, false
	}
	return key, true
}
