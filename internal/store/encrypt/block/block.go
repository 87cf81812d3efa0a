// Package block has the ciphers of AES for stored values: GCM and CBC, in the forms of kube-apiserver.
package block

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
)

var (
	// ErrShort is the error for a value that is too short.
	ErrShort = errors.New("the stored data was shorter than the required size")
	// ErrDecrypt is the error for a value that a key does not decrypt.
	ErrDecrypt = errors.New("the stored data is damaged, or has another key")
)

// Random fills b with random bytes, and returns it. rand.Read does not fail.
func Random(b []byte) []byte {
	_, _ = rand.Read(b)
	return b
}

// GCM is AES-GCM with a random nonce in front of the value.
type GCM struct{ cipher.AEAD }

// NewGCM returns the GCM of a key.
func NewGCM(key []byte) (GCM, error) {
	b, err := aes.NewCipher(key)
	if err != nil {
		return GCM{}, err
	}
	aead, err := cipher.NewGCM(b)
	return GCM{aead}, err
}

// Encrypt appends the encrypted value to dst, and authenticates data.
func (g GCM) Encrypt(dst, plain, data []byte) []byte {
	nonce := Random(make([]byte, g.NonceSize()))
	return g.Seal(append(dst, nonce...), nonce, plain, data)
}

// Decrypt returns the plain value.
func (g GCM) Decrypt(sealed, data []byte) ([]byte, error) {
	if len(sealed) < g.NonceSize() {
		return nil, ErrShort
	}
	return g.Open(nil, sealed[:g.NonceSize()], sealed[g.NonceSize():], data)
}

// CBC is AES-CBC with the padding of PKCS#7. It authenticates nothing: Kubernetes keeps it for old data.
type CBC struct{ block cipher.Block }

// NewCBC returns the CBC of a key.
func NewCBC(key []byte) (CBC, error) {
	b, err := aes.NewCipher(key)
	return CBC{b}, err
}

// Encrypt appends the encrypted value to dst.
func (c CBC) Encrypt(dst, plain []byte) []byte {
	iv := Random(make([]byte, aes.BlockSize))
	padding := aes.BlockSize - len(plain)%aes.BlockSize
	padded := append(append(make([]byte, 0, len(plain)+padding), plain...), bytes.Repeat([]byte{byte(padding)}, padding)...)
	cipher.NewCBCEncrypter(c.block, iv).CryptBlocks(padded, padded)
	return append(append(dst, iv...), padded...)
}

// Decrypt returns the plain value.
func (c CBC) Decrypt(sealed []byte) ([]byte, error) {
	if len(sealed) < 2*aes.BlockSize || len(sealed)%aes.BlockSize != 0 {
		return nil, ErrShort
	}
	plain := make([]byte, len(sealed)-aes.BlockSize)
	cipher.NewCBCDecrypter(c.block, sealed[:aes.BlockSize]).CryptBlocks(plain, sealed[aes.BlockSize:])
	padding := int(plain[len(plain)-1])
	if padding == 0 || padding > aes.BlockSize || bytes.Count(plain[len(plain)-padding:], []byte{byte(padding)}) != padding {
		return nil, ErrDecrypt
	}
	return plain[:len(plain)-padding], nil
}
