package serviceaccount

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A Signer is an external signer. It holds the keys. Calls return when ctx ends.
type Signer interface {
	// Sign returns the header and the signature of the token with the encoded claims.
	Sign(ctx context.Context, claims string) (header, signature string, err error)
	// FetchKeys returns the verification keys.
	FetchKeys(ctx context.Context) (SignerKeys, error)
	// MaxExpiration returns the maximum lifetime of a token in seconds.
	MaxExpiration(ctx context.Context) (seconds int64, err error)
}

// SignerKeys are the verification keys of a Signer.
type SignerKeys struct {
	Keys           []SignerKey
	At             time.Time // time of the Signer's data
	RefreshSeconds int64     // refresh interval
}

// A SignerKey is a public key.
type SignerKey struct {
	ID       string
	PKIX     []byte
	Unlisted bool // left out of discovery, and not used for new tokens
}

// Timeouts and intervals of calls to a Signer.
const (
	fetchTimeout    = 60 * time.Second
	metadataTimeout = 10 * time.Second
	fetchRetry      = 10 * time.Second // after a failure
	fetchAgain      = time.Second      // between fetches for unknown key IDs
)

// fewestExternalSeconds is the lowest maximum lifetime that a Signer may set.
const fewestExternalSeconds = 600

// External implements Keys with a Signer.
type External struct {
	signer Signer
	max    time.Duration
	log    *slog.Logger

	now     atomic.Pointer[externalKeys]
	fetches sync.Mutex // one fetch at a time; guards tried
	tried   time.Time
}

// externalKeys are the keys of one fetch.
type externalKeys struct {
	all        []key
	at         time.Time
	refresh    time.Time
	generation uint64
}

// Connect returns the Keys of a Signer after the first fetch.
func Connect(ctx context.Context, o Options, s Signer, log *slog.Logger) (*External, error) {
	k := &External{signer: s, log: log}
	first, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if err := k.fetch(first); err != nil {
		return nil, fmt.Errorf("while setting up external-jwt-signer: while initially filling key cache: while performing initial cache fill: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	seconds, err := s.MaxExpiration(limited)
	if err != nil {
		return nil, fmt.Errorf("while setting up external-jwt-signer: %w", err)
	}
	if seconds < fewestExternalSeconds {
		return nil, fmt.Errorf("max token life supported by external-jwt-signer (%ds) is less than acceptable (min %ds)", seconds, fewestExternalSeconds)
	}
	k.max = time.Duration(seconds) * time.Second
	if o.MaxExpiration > k.max {
		return nil, fmt.Errorf("service-account-max-token-expiration cannot be set longer than the token expiration supported by service-account-signing-endpoint: %s > %s", o.MaxExpiration, k.max)
	}
	k.warn(o)
	return k, nil
}

// warn logs that the Signer limits extended tokens of pods to less than Kubernetes' default.
func (k *External) warn(o Options) {
	most := k.max
	if o.MaxExpiration != 0 {
		most = o.MaxExpiration
	}
	if o.ExactExpiration {
		return
	}
	if most < warningExpiration*time.Second {
		k.log.Warn(fmt.Sprintf("service-account-extend-token-expiration is true, in order to correctly trigger safe transition logic, token lifetime supported by external-jwt-signer must be longer than %d seconds (currently %s)", warningExpiration, most))
	}
	if most < extendedExpiration*time.Second {
		k.log.Warn(fmt.Sprintf("service-account-extend-token-expiration is true, tokens validity will be caped at the smaller of %d seconds and maximum token lifetime supported by external-jwt-signer (%s)", extendedExpiration, most))
	}
}

// Refresh fetches the keys at the intervals of the Signer until ctx ends.
func (k *External) Refresh(ctx context.Context) error {
	timer := time.NewTimer(time.Until(k.now.Load().refresh))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		limited, cancel := context.WithTimeout(ctx, fetchTimeout)
		err := k.fetch(limited)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				k.log.Error("Could not fetch the keys of the external signer. The keys of the last fetch stay in use.", "error", err)
			}
			timer.Reset(fetchRetry)
			continue
		}
		timer.Reset(time.Until(k.now.Load().refresh))
	}
}

// fetch replaces the keys with those of the Signer. After an error the old ones stay.
func (k *External) fetch(ctx context.Context) error {
	k.fetches.Lock()
	defer k.fetches.Unlock()
	k.tried = time.Now()
	return k.fetchLocked(ctx)
}

func (k *External) fetchLocked(ctx context.Context) error {
	response, err := k.signer.FetchKeys(ctx)
	if err != nil {
		return fmt.Errorf("while fetching token verification keys: while getting externally supported jwt signing keys: %w", err)
	}
	all, err := verifiersOf(response)
	if err != nil {
		return fmt.Errorf("while fetching token verification keys: %w", err)
	}
	next := &externalKeys{all: all, at: response.At, refresh: time.Now().Add(time.Duration(response.RefreshSeconds) * time.Second), generation: 1}
	if old := k.now.Load(); old != nil {
		next.generation = old.generation
		if !next.equal(old) {
			next.generation++
		}
	}
	k.now.Store(next)
	return nil
}

// equal reports whether two sets have the same keys.
func (e *externalKeys) equal(other *externalKeys) bool {
	if len(e.all) != len(other.all) {
		return false
	}
	for i, k := range e.all {
		o := other.all[i]
		public, ok := k.public.(interface{ Equal(x crypto.PublicKey) bool })
		if k.id != o.id || k.unlisted != o.unlisted || !ok || !public.Equal(o.public) {
			return false
		}
	}
	return true
}

// maxKeyID bounds the length of a key ID.
const maxKeyID = 1024

// verifiersOf validates the keys of a Signer.
func verifiersOf(said SignerKeys) ([]key, error) {
	if said.RefreshSeconds <= 0 {
		return nil, fmt.Errorf("found invalid refresh hint (%ds)", said.RefreshSeconds)
	}
	if len(said.Keys) == 0 {
		return nil, errors.New("found no keys")
	}
	var all []key
	for _, k := range said.Keys {
		if k.ID == "" || len(k.ID) > maxKeyID {
			return nil, fmt.Errorf("found invalid public key id %q", k.ID)
		}
		if len(k.PKIX) == 0 {
			return nil, errors.New("found empty public key")
		}
		public, err := x509.ParsePKIXPublicKey(k.PKIX)
		if err != nil {
			return nil, fmt.Errorf("while parsing external public keys: %w", err)
		}
		added, err := newVerifier(public)
		if err != nil {
			return nil, fmt.Errorf("while parsing external public keys: %w", err)
		}
		added.id, added.unlisted = k.ID, k.Unlisted
		all = append(all, added)
	}
	return all, nil
}

// sign lets the Signer sign claims.
func (k *External) sign(ctx context.Context, claims []byte) (string, error) {
	payload := base64.RawURLEncoding.EncodeToString(claims)
	header, signature, err := k.signer.Sign(ctx, payload)
	if err != nil {
		return "", fmt.Errorf("while signing jwt: %w", err)
	}
	if err := k.checkHeader(ctx, header); err != nil {
		return "", fmt.Errorf("while validating header: %w", err)
	}
	if signature == "" {
		return "", errors.New("empty signature returned")
	}
	return header + "." + payload + "." + signature, nil
}

// checkHeader validates the header of a token from the Signer.
func (k *External) checkHeader(ctx context.Context, header string) error {
	data, err := base64.RawURLEncoding.DecodeString(header)
	if err != nil {
		return fmt.Errorf("while unwrapping header: %w", err)
	}
	var said struct {
		Algorithm jose.SignatureAlgorithm `json:"alg"`
		KeyID     string                  `json:"kid"`
		Type      string                  `json:"typ"`
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields()
	if err := d.Decode(&said); err != nil {
		return fmt.Errorf("while parsing header JSON: %w", err)
	}
	switch {
	case said.Type != "JWT":
		return errors.New("bad type")
	case said.KeyID == "":
		return errors.New("key id missing")
	case len(said.KeyID) > maxKeyID:
		return errors.New("key id longer than 1 kb")
	}
	switch said.Algorithm {
	case jose.RS256, jose.ES256, jose.ES384, jose.ES512:
	default:
		return fmt.Errorf("bad signing algorithm %q", said.Algorithm)
	}
	found, _ := k.search(ctx, said.KeyID, 0)
	for _, key := range found {
		if key.unlisted {
			return fmt.Errorf("key used for signing JWT (kid: %s) is excluded from OIDC discovery docs", said.KeyID)
		}
	}
	return nil
}

// find returns the keys of an ID. For an unknown ID it fetches the keys, at most once a second:
// clients choose the ID.
func (k *External) find(ctx context.Context, id string) ([]key, bool) {
	return k.search(ctx, id, fetchAgain)
}

// search returns the keys of an ID. For an unknown ID it fetches the keys, unless the last fetch is
// younger than age.
func (k *External) search(ctx context.Context, id string, age time.Duration) (found []key, fixed bool) {
	if found := keysOf(k.now.Load().all, id); len(found) > 0 {
		return found, true
	}
	k.fetches.Lock()
	defer k.fetches.Unlock()
	if found := keysOf(k.now.Load().all, id); len(found) > 0 {
		return found, true
	}
	if time.Since(k.tried) >= age {
		k.tried = time.Now()
		limited, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		if err := k.fetchLocked(limited); err != nil {
			k.log.Error("Could not fetch the keys of the external signer for an unknown key ID", "error", err)
		}
	}
	return keysOf(k.now.Load().all, id), false
}

// published returns the keys of discovery, and the time until the next fetch.
func (k *External) published() ([]key, time.Duration) {
	now := k.now.Load()
	var listed []key
	for _, key := range now.all {
		if !key.unlisted {
			listed = append(listed, key)
		}
	}
	return listed, max(0, time.Until(now.refresh))
}

func (k *External) generation() uint64           { return k.now.Load().generation }
func (k *External) maxExpiration() time.Duration { return k.max }
