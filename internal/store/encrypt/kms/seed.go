package kms

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/anykind/anykind/internal/store/encrypt/block"
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
	return random()
}

// An opener decrypts values. old reports that new values have another cipher.
type opener interface {
	open(sealed, data []byte) (plain []byte, old bool, err error)
}

// newOpener returns the opener for the plain form of a source.
func newOpener(k kind, plain []byte) (opener, error) {
	switch {
	case k == kindEnvelope:
		return newEnvelopeKey(plain)
	case k == kindKey:
		g, err := block.NewGCM(plain)
		return oldKey{g}, err
	case len(plain) < size:
		return nil, fmt.Errorf("invalid seed length %d used for key generation", len(plain))
	}
	return derived(plain), nil
}

// An oldKey is a key of AES-GCM for several values.
type oldKey struct{ block.GCM }

func (k oldKey) open(sealed, data []byte) ([]byte, bool, error) {
	plain, err := k.Decrypt(sealed, data)
	return plain, false, err
}

// size is the number of bytes of a seed, of a derived key, and of the random bytes that derive it.
const size = 32

// derived is a seed. Each value has a key of its own, derived from the seed and random bytes in front of
// the value.
type derived []byte

func (d derived) key(info []byte) (block.GCM, error) {
	key, err := hkdf.Expand(sha256.New, d, string(info), size)
	if err != nil {
		return block.GCM{}, err
	}
	return block.NewGCM(key)
}

func (d derived) seal(plain, data []byte) []byte {
	info := random()
	g, err := d.key(info)
	if err != nil {
		panic(err) // a key of that size is no error
	}
	out := make([]byte, 0, len(info)+g.NonceSize()+len(plain)+g.Overhead())
	return g.Encrypt(append(out, info...), plain, data)
}

func (d derived) open(sealed, data []byte) ([]byte, bool, error) {
	if len(sealed) < size {
		return nil, false, block.ErrShort
	}
	g, err := d.key(sealed[:size])
	if err != nil {
		return nil, false, fmt.Errorf("failed to derive read key from KDF: %w", err)
	}
	plain, err := g.Decrypt(sealed[size:], data)
	return plain, false, err
}

// random returns a random seed or key.
func random() []byte { return block.Random(make([]byte, size)) }
