package kvtest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"testing"
)

// SealedMore is the number of bytes that sealing adds to a value.
const SealedMore = 12 + 16

// Sealed is a transformation of values like encryption: it encodes a value differently each time, and
// a value under another key cannot be decoded.
type Sealed struct {
	cipher cipher.AEAD
	fail   func(format string, args ...any)
}

// NewSealed returns a transformation with a secret of its own. It fails the test if it decodes a value
// that it has not encoded.
func NewSealed(t testing.TB) *Sealed {
	t.Helper()
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	block, err := aes.NewCipher(secret)
	if err != nil {
		t.Fatal(err)
	}
	sealing, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	return &Sealed{cipher: sealing, fail: t.Errorf}
}

// Encode seals a value.
func (s *Sealed) Encode(_ context.Context, key string, plain []byte) ([]byte, error) {
	return s.cipher.Seal(nil, nil, plain, []byte(key)), nil
}

// Decode decodes a sealed value. It returns an invalid one unchanged.
func (s *Sealed) Decode(_ context.Context, key string, stored []byte) []byte {
	plain, err := s.cipher.Open(nil, nil, stored, []byte(key))
	if err != nil {
		s.fail("a value of %d bytes was not stored for %q: %v", len(stored), key, err)
		return stored
	}
	return plain
}
