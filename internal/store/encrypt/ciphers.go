package encrypt

import (
	"context"
	"encoding/base64"
	"fmt"

	"golang.org/x/crypto/nacl/secretbox"
	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/anykind/anykind/internal/store/encrypt/block"
)

// A cipher encrypts values.
type cipher interface {
	// seal appends the encrypted value to dst. data is authenticated, if the cipher can.
	seal(dst, plain, data []byte) ([]byte, error)
	// open returns the plain value. stale reports that seal would use another key.
	open(ctx context.Context, sealed, data []byte) (plain []byte, stale bool, err error)
}

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

type gcm struct{ block.GCM }

func newGCM(secret []byte) (cipher, error) {
	c, err := block.NewGCM(secret)
	return gcm{c}, err
}

func (c gcm) seal(dst, plain, data []byte) ([]byte, error) { return c.Encrypt(dst, plain, data), nil }

func (c gcm) open(_ context.Context, sealed, data []byte) ([]byte, bool, error) {
	plain, err := c.Decrypt(sealed, data)
	return plain, false, err
}

type cbc struct{ block.CBC }

func newCBC(secret []byte) (cipher, error) {
	c, err := block.NewCBC(secret)
	return cbc{c}, err
}

func (c cbc) seal(dst, plain, _ []byte) ([]byte, error) { return c.Encrypt(dst, plain), nil }

func (c cbc) open(_ context.Context, sealed, _ []byte) ([]byte, bool, error) {
	plain, err := c.Decrypt(sealed)
	return plain, false, err
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
	nonce := [boxNonce]byte(block.Random(make([]byte, boxNonce)))
	return secretbox.Seal(append(dst, nonce[:]...), plain, &nonce, &c.key), nil
}

func (c *box) open(_ context.Context, sealed, _ []byte) ([]byte, bool, error) {
	if len(sealed) < boxNonce+secretbox.Overhead {
		return nil, false, block.ErrShort
	}
	nonce := [boxNonce]byte(sealed[:boxNonce])
	plain, ok := secretbox.Open(nil, sealed[boxNonce:], &nonce, &c.key)
	if !ok {
		return nil, false, block.ErrDecrypt
	}
	return plain, false, nil
}

// external is a cipher whose key is in a KMS.
type external struct{ plugin }

func (e external) seal(dst, plain, data []byte) ([]byte, error) { return e.Seal(dst, plain, data) }

func (e external) open(ctx context.Context, sealed, data []byte) ([]byte, bool, error) {
	return e.Open(ctx, sealed, data)
}
