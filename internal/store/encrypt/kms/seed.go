package kms

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// A seed encrypts new values. It is immutable.
type seed struct {
	source
	derived derived
	expires time.Time
}

// rotate generates a seed, unless the present one has the key ID. If that fails, the present seed stays,
// and is valid until it expires.
func (p *Plugin) rotate(ctx context.Context, keyID string, expires time.Time) error {
	now := p.seed.Load()
	if now != nil && now.keyID == keyID {
		later := *now
		later.expires = expires
		p.seed.Store(&later)
		return nil
	}
	next := &seed{derived: p.generate(), expires: expires}
	uid := string(uuid.NewUUID())
	var err error
	if next.source, err = p.service.encrypt(ctx, uid, next.derived); err != nil {
		err = fmt.Errorf("failed to encrypt DEK, error: %w", err)
	} else {
		next.kind = kindSeed
		err = next.source.check()
	}
	if err == nil && next.keyID != keyID {
		err = errors.New("the KMS encrypts with another key than its status has")
	}
	if err != nil {
		old := ""
		if now != nil {
			old = now.keyID
		}
		return fmt.Errorf("failed to rotate DEK uid=%q, statusKeyIDHash=%q, encryptKeyIDHash=%q, stateKeyIDHash=%q: %w", uid, Sum(keyID), Sum(next.keyID), Sum(old), err)
	}
	p.seeds.put(&next.source, next.derived)
	p.seed.Store(next)
	p.options.Log.Info("a KMS plugin has encrypted a new seed", "provider", p.name, "keyIDHash", Sum(keyID), "uid", uid)
	return nil
}

func (p *Plugin) generate() derived {
	defer p.options.Metrics.generated(time.Now())
	return random(size)
}

// An opener decrypts values.
type opener interface {
	open(sealed, data []byte) ([]byte, error)
}

// newOpener returns the opener for the plain form of a source.
func newOpener(k kind, plain []byte) (opener, error) {
	if k == kindSeed {
		if len(plain) < size {
			return nil, fmt.Errorf("invalid seed length %d used for key generation", len(plain))
		}
		return derived(plain), nil
	}
	return newGCM(plain)
}

// size is the number of bytes of a seed, of a derived key, and of the random bytes that derive it.
const size = 32

// derived is a seed. Each value has a key of its own, derived from the seed and random bytes in front of
// the value.
type derived []byte

func (d derived) key(info []byte) (gcm, error) {
	key, err := hkdf.Expand(sha256.New, d, string(info), size)
	if err != nil {
		return gcm{}, err
	}
	return newGCM(key)
}

func (d derived) seal(plain, data []byte) []byte {
	info := random(size)
	g, err := d.key(info)
	if err != nil {
		panic(err) // a key of that size is no error
	}
	nonce := random(g.NonceSize())
	out := make([]byte, 0, len(info)+len(nonce)+len(plain)+g.Overhead())
	return g.Seal(append(append(out, info...), nonce...), nonce, plain, data)
}

func (d derived) open(sealed, data []byte) ([]byte, error) {
	if len(sealed) < size {
		return nil, errShort
	}
	g, err := d.key(sealed[:size])
	if err != nil {
		return nil, fmt.Errorf("failed to derive read key from KDF: %w", err)
	}
	return g.open(sealed[size:], data)
}

var errShort = errors.New("the stored data was shorter than the required size")

// gcm is AES-GCM with the nonce in front of the value.
type gcm struct{ cipher.AEAD }

func newGCM(key []byte) (gcm, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return gcm{}, err
	}
	aead, err := cipher.NewGCM(block)
	return gcm{aead}, err
}

func (g gcm) open(sealed, data []byte) ([]byte, error) {
	if len(sealed) < g.NonceSize() {
		return nil, errShort
	}
	return g.Open(nil, sealed[:g.NonceSize()], sealed[g.NonceSize():], data)
}

// random returns n random bytes. rand.Read does not fail.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}
