package serviceaccount

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/anykind/anykind/internal/store/atomicfile"
)

// Keys sign and verify tokens. The keys come from files or from an external signer.
type Keys interface {
	// sign returns the token with claims.
	sign(ctx context.Context, claims []byte) (string, error)
	// find returns the keys of an ID, or all keys for the ID "". fixed reports that the same ID
	// never finds other keys.
	find(ctx context.Context, id string) (found []key, fixed bool)
	// published returns the keys of discovery, and how long a client may cache them.
	published() ([]key, time.Duration)
	// generation changes with the set of keys.
	generation() uint64
	// maxExpiration returns the lifetime limit of the signer; 0 is unlimited.
	maxExpiration() time.Duration
}

// fileKeys are Keys from files. They never change.
type fileKeys struct {
	signer jose.Signer
	all    []key // in the order of the files
}

// A key verifies tokens.
type key struct {
	id         string
	public     crypto.PublicKey
	algorithms []jose.SignatureAlgorithm // the first is the signing algorithm
	unlisted   bool                      // left out of discovery
}

func (k *fileKeys) sign(_ context.Context, claims []byte) (string, error) {
	signed, err := k.signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

func (k *fileKeys) find(_ context.Context, id string) ([]key, bool) { return keysOf(k.all, id), true }

// publishedAge is how long clients may cache keys from files.
const publishedAge = time.Hour

func (k *fileKeys) published() ([]key, time.Duration) { return k.all, publishedAge }
func (*fileKeys) generation() uint64                  { return 0 }
func (*fileKeys) maxExpiration() time.Duration        { return 0 }

// keysOf returns the keys of an ID, or all keys for the ID "".
func keysOf(all []key, id string) []key {
	if id == "" {
		return all
	}
	var found []key
	for _, k := range all {
		if k.id == id {
			found = append(found, k)
		}
	}
	return found
}

// keyFile has the generated keys: the first private key signs, and all keys verify.
const keyFile = "sa.key"

// LoadKeys reads existing keys. The files of verifying have public or private keys; the first
// private key of the file signing signs tokens.
func LoadKeys(verifying []string, signing string) (Keys, error) {
	k := &fileKeys{}
	for _, path := range verifying {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := k.verifyBy(data); err != nil {
			return nil, fmt.Errorf("error reading public key file %s: %w", path, err)
		}
	}
	data, err := os.ReadFile(signing)
	if err != nil {
		return nil, fmt.Errorf("failed to parse service-account-issuer-key-file: %w", err)
	}
	if err := k.signBy(data); err != nil {
		return nil, fmt.Errorf("failed to parse service-account-issuer-key-file: error reading private key file %s: %w", signing, err)
	}
	return k, nil
}

// OpenKeys returns the keys in a directory. If there are none, it generates and stores one; with dir
// "" only in memory. One process at a time may use the directory.
func OpenKeys(dir string) (Keys, error) {
	path := filepath.Join(dir, keyFile)
	var data []byte
	err := fs.ErrNotExist
	if dir != "" {
		data, err = os.ReadFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if data, err = newKey(); err == nil && dir != "" {
			err = atomicfile.Replace(path, data, 0o600)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("keys of service accounts: %w", err)
	}
	k := &fileKeys{}
	if err := errors.Join(k.verifyBy(data), k.signBy(data)); err != nil {
		return nil, fmt.Errorf("the key in %s is unusable: %w; restore the file, or remove it for a new key, "+
			"which invalidates all tokens of the old one", path, err)
	}
	return k, nil
}

// Beside returns keys with a new signing key. They verify the tokens of others, too. Their own tokens are
// invalid for others.
func Beside(others Keys) (Keys, error) {
	own, err := OpenKeys("")
	if err != nil || others == nil {
		return own, err
	}
	return beside{own.(*fileKeys), others}, nil
}

// beside are keys of which only own sign.
type beside struct {
	own *fileKeys
	Keys
}

func (b beside) sign(ctx context.Context, claims []byte) (string, error) {
	return b.own.sign(ctx, claims)
}

func (b beside) find(ctx context.Context, id string) ([]key, bool) {
	if found := keysOf(b.own.all, id); id != "" && len(found) > 0 {
		return found, true
	}
	found, fixed := b.Keys.find(ctx, id)
	if id == "" {
		found = append(found[:len(found):len(found)], b.own.all...)
	}
	return found, fixed
}

func (b beside) published() ([]key, time.Duration) {
	keys, age := b.Keys.published()
	return append(keys[:len(keys):len(keys)], b.own.all...), age
}

// newKey generates an ECDSA key; RSA would slow down the first start.
func newKey() ([]byte, error) {
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(made)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

// verifyBy adds the keys in PEM data. It ignores other blocks.
func (k *fileKeys) verifyBy(data []byte) error {
	before := len(k.all)
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		public := publicKey(block.Bytes)
		if public == nil {
			continue
		}
		added, err := newVerifier(public)
		if err != nil {
			return err
		}
		k.all = append(k.all, added)
	}
	if len(k.all) == before {
		return errors.New("data does not contain any valid RSA or ECDSA public keys")
	}
	return nil
}

// signBy makes the first private key in data the signing key.
func (k *fileKeys) signBy(data []byte) error {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		private := privateKey(block.Bytes)
		if private == nil {
			continue
		}
		own, err := newVerifier(private.Public())
		if err != nil {
			return err
		}
		alg := own.algorithms[0]
		k.signer, err = jose.NewSigner(jose.SigningKey{
			Algorithm: alg,
			Key:       &jose.JSONWebKey{Algorithm: string(alg), Key: private, KeyID: own.id, Use: "sig"},
		}, nil)
		return err
	}
	return errors.New("data does not contain a valid RSA or ECDSA private key")
}

// privateKey returns the private key of a PEM block, or nil.
func privateKey(der []byte) crypto.Signer {
	if k, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return k
	}
	if k, err := x509.ParseECPrivateKey(der); err == nil {
		return k
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil
	}
	switch k := parsed.(type) {
	case *rsa.PrivateKey:
		return k
	case *ecdsa.PrivateKey:
		return k
	default:
		return nil
	}
}

// publicKey returns the public key of a PEM block: a public key, that of a private key, or that of a
// certificate. Nil if there is none.
func publicKey(der []byte) crypto.PublicKey {
	if k := privateKey(der); k != nil {
		return k.Public()
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return nil
		}
		parsed = certificate.PublicKey
	}
	switch parsed.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey:
		return parsed
	default:
		return nil
	}
}

// newVerifier returns a key that verifies signatures with algorithms for its type only.
func newVerifier(public crypto.PublicKey) (k key, err error) {
	k.public = public
	switch p := public.(type) {
	case *rsa.PublicKey:
		k.algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}
	case *ecdsa.PublicKey:
		alg := map[elliptic.Curve]jose.SignatureAlgorithm{elliptic.P256(): jose.ES256, elliptic.P384(): jose.ES384, elliptic.P521(): jose.ES512}[p.Curve]
		if alg == "" {
			return k, errors.New("unknown private key curve, must be 256, 384, or 521")
		}
		k.algorithms = []jose.SignatureAlgorithm{alg}
	}
	k.id, err = keyID(public)
	return k, err
}

// keyID returns the ID of a key, a hash of it.
func keyID(public crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("failed to serialize public key to DER format: %w", err)
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}
