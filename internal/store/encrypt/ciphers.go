package encrypt

import (
	"bytes"
	"crypto/aes"
	stdcipher "crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"golang.org/x/crypto/nacl/secretbox"
	"k8s.io/apiserver/pkg/apis/apiserver"
)

// A cipher encrypts with one key.
type cipher interface {
	// seal appends the encrypted value to dst. data is authenticated, if the cipher can.
	seal(dst, plain, data []byte) []byte
	// open returns the plain value; ok is false if the key or the value is wrong.
	open(sealed, data []byte) (plain []byte, ok bool)
}

// add adds the keys of a provider.
func (r *ring) add(provider string, keys []apiserver.Key, newCipher func([]byte) (cipher, error)) error {
	for _, k := range keys {
		secret, err := base64.StdEncoding.DecodeString(k.Secret)
		if err != nil {
			return fmt.Errorf("could not obtain secret for named key %s: %w", k.Name, err)
		}
		c, err := newCipher(secret)
		if err != nil {
			return fmt.Errorf("error while creating cipher for named key %s: %w", k.Name, err)
		}
		r.keys = append(r.keys, &key{prefix: marked + provider + ":v1:" + k.Name + ":", cipher: c})
	}
	return nil
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

func (c gcm) seal(dst, plain, data []byte) []byte {
	nonce := random(make([]byte, c.NonceSize()))
	return c.Seal(append(dst, nonce...), nonce, plain, data)
}

func (c gcm) open(sealed, data []byte) ([]byte, bool) {
	if len(sealed) < c.NonceSize() {
		return nil, false
	}
	plain, err := c.Open(nil, sealed[:c.NonceSize()], sealed[c.NonceSize():], data)
	return plain, err == nil
}

// cbc is AES-CBC with the padding of PKCS#7. It authenticates nothing: Kubernetes keeps it for old data.
type cbc struct{ block stdcipher.Block }

func newCBC(secret []byte) (cipher, error) {
	block, err := aes.NewCipher(secret)
	return cbc{block}, err
}

func (c cbc) seal(dst, plain, _ []byte) []byte {
	iv := random(make([]byte, aes.BlockSize))
	padding := aes.BlockSize - len(plain)%aes.BlockSize
	padded := append(append(make([]byte, 0, len(plain)+padding), plain...), bytes.Repeat([]byte{byte(padding)}, padding)...)
	stdcipher.NewCBCEncrypter(c.block, iv).CryptBlocks(padded, padded)
	return append(append(dst, iv...), padded...)
}

func (c cbc) open(sealed, _ []byte) ([]byte, bool) {
	if len(sealed) < 2*aes.BlockSize || len(sealed)%aes.BlockSize != 0 {
		return nil, false
	}
	plain := make([]byte, len(sealed)-aes.BlockSize)
	stdcipher.NewCBCDecrypter(c.block, sealed[:aes.BlockSize]).CryptBlocks(plain, sealed[aes.BlockSize:])
	padding := int(plain[len(plain)-1])
	if padding == 0 || padding > aes.BlockSize {
		return nil, false
	}
	size := len(plain) - padding
	return plain[:size], bytes.Count(plain[size:], []byte{byte(padding)}) == padding
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

func (c *box) seal(dst, plain, _ []byte) []byte {
	nonce := [boxNonce]byte(random(make([]byte, boxNonce)))
	return secretbox.Seal(append(dst, nonce[:]...), plain, &nonce, &c.key)
}

func (c *box) open(sealed, _ []byte) ([]byte, bool) {
	if len(sealed) < boxNonce+secretbox.Overhead {
		return nil, false
	}
	nonce := [boxNonce]byte(sealed[:boxNonce])
	return secretbox.Open(nil, sealed[boxNonce:], &nonce, &c.key)
}
