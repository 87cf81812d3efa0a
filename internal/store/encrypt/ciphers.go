package encrypt

import (
	"bytes"
	"context"
	"crypto/aes"
	stdcipher "crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"golang.org/x/crypto/nacl/secretbox"
	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/anykind/anykind/internal/store/encrypt/kms"
)

// A cipher encrypts values.
type cipher interface {
	// seal appends the encrypted value to dst. data is authenticated, if the cipher can.
	seal(dst, plain, data []byte) ([]byte, error)
	// open returns the plain value. stale reports that seal would use another key.
	open(ctx context.Context, sealed, data []byte) (plain []byte, stale bool, err error)
}

var (
	errShort   = errors.New("the stored data was shorter than the required size")
	errDecrypt = errors.New("the stored data is damaged, or has another key")
)

// keysOf returns the keys of a provider.
func keysOf(provider string, keys []apiserver.Key, newCipher func([]byte) (cipher, error)) (all []*key, err error) {
	kind := marked + provider + ":v1:"
	for _, k := range keys {
		secret, err := base64.StdEncoding.DecodeString(k.Secret)
		if err != nil {
			return nil, fmt.Errorf("could not obtain secret for named key %s: %w", k.Name, err)
		}
		c, err := newCipher(secret)
		if err != nil {
			return nil, fmt.Errorf("error while creating cipher for named key %s: %w", k.Name, err)
		}
		all = append(all, &key{prefix: kind + k.Name + ":", kind: kind, cipher: c})
	}
	return all, nil
}

// random fills b with random bytes. rand.Read does not fail.
func random(b []byte) []byte {
	_, _ = rand.Read(b)
	return b
}

type gcm struct{ stdcipher.AEAD }

func newGCM(secret []byte) (cipher, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	aead, err := stdcipher.NewGCM(block)
	return gcm{aead}, err
}

func (c gcm) seal(dst, plain, data []byte) ([]byte, error) {
	nonce := random(make([]byte, c.NonceSize()))
	return c.Seal(append(dst, nonce...), nonce, plain, data), nil
}

func (c gcm) open(_ context.Context, sealed, data []byte) ([]byte, bool, error) {
	if len(sealed) < c.NonceSize() {
		return nil, false, errShort
	}
	plain, err := c.Open(nil, sealed[:c.NonceSize()], sealed[c.NonceSize():], data)
	return plain, false, err
}

// cbc is AES-CBC with the padding of PKCS#7. It authenticates nothing: Kubernetes keeps it for old data.
type cbc struct{ block stdcipher.Block }

func newCBC(secret []byte) (cipher, error) {
	block, err := aes.NewCipher(secret)
	return cbc{block}, err
}

func (c cbc) seal(dst, plain, _ []byte) ([]byte, error) {
	iv := random(make([]byte, aes.BlockSize))
	padding := aes.BlockSize - len(plain)%aes.BlockSize
	padded := append(append(make([]byte, 0, len(plain)+padding), plain...), bytes.Repeat([]byte{byte(padding)}, padding)...)
	stdcipher.NewCBCEncrypter(c.block, iv).CryptBlocks(padded, padded)
	return append(append(dst, iv...), padded...), nil
}

func (c cbc) open(_ context.Context, sealed, _ []byte) ([]byte, bool, error) {
	if len(sealed) < 2*aes.BlockSize || len(sealed)%aes.BlockSize != 0 {
		return nil, false, errShort
	}
	plain := make([]byte, len(sealed)-aes.BlockSize)
	stdcipher.NewCBCDecrypter(c.block, sealed[:aes.BlockSize]).CryptBlocks(plain, sealed[aes.BlockSize:])
	padding := int(plain[len(plain)-1])
	if padding == 0 || padding > aes.BlockSize || bytes.Count(plain[len(plain)-padding:], []byte{byte(padding)}) != padding {
		return nil, false, errDecrypt
	}
	return plain[:len(plain)-padding], false, nil
}

type box struct{ key [32]byte }

const boxNonce = 24

func newSecretbox(secret []byte) (cipher, error) {
	c := &box{}
	if len(secret) != len(c.key) {
		return nil, fmt.Errorf("expected key size %d for secretbox provider, got %d", len(c.key), len(secret))
	}
	copy(c.key[:], secret)
	return c, nil
}

func (c *box) seal(dst, plain, _ []byte) ([]byte, error) {
	nonce := [boxNonce]byte(random(make([]byte, boxNonce)))
	return secretbox.Seal(append(dst, nonce[:]...), plain, &nonce, &c.key), nil
}

func (c *box) open(_ context.Context, sealed, _ []byte) ([]byte, bool, error) {
	if len(sealed) < boxNonce+secretbox.Overhead {
		return nil, false, errShort
	}
	nonce := [boxNonce]byte(sealed[:boxNonce])
	plain, ok := secretbox.Open(nil, sealed[boxNonce:], &nonce, &c.key)
	if !ok {
		return nil, false, errDecrypt
	}
	return plain, false, nil
}

// external is a cipher whose key is in a KMS.
type external struct{ *kms.Plugin }

func (e external) seal(dst, plain, data []byte) ([]byte, error) { return e.Seal(dst, plain, data) }

func (e external) open(ctx context.Context, sealed, data []byte) ([]byte, bool, error) {
	return e.Open(ctx, sealed, data)
}
