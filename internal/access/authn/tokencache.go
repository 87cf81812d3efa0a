package authn

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/object/bounded"
)

const (
	// maxCached bounds the cached answers. Valid and invalid tokens are counted apart, so that
	// invalid ones evict no valid ones.
	maxCached = 16384
	// sharedTimeout bounds a lookup that several requests wait for.
	sharedTimeout = 30 * time.Second
)

// A TokenCache caches the answers of another TokenAuthenticator. Concurrent requests share one
// lookup. It keeps keyed hashes, not tokens.
type TokenCache struct {
	tokens  TokenAuthenticator
	options TokenCacheOptions
	hashers sync.Pool // of *hasher, keyed

	good, bad *bounded.Cache[cacheKey, *outcome]

	mu      sync.Mutex
	waiting map[cacheKey]*lookup
}

// TokenCacheOptions are the TTLs of answers; 0 disables caching.
type TokenCacheOptions struct {
	Success, Failure time.Duration
	// Errors caches errors as failures.
	Errors  bool
	Metrics *TokenCacheMetrics // nil counts nothing
	Log     *slog.Logger
}

var errPanicked = errors.New("authentication failed unexpectedly")

type cacheKey [sha256.Size]byte

// An outcome is a result of AuthenticateToken.
type outcome struct {
	answer *TokenAnswer
	ok     bool
	err    error
}

// A lookup is a running lookup.
type lookup struct {
	done chan struct{} // closed when outcome is set
	outcome
}

// NewTokenCache returns a cache in front of tokens.
func NewTokenCache(tokens TokenAuthenticator, o TokenCacheOptions) *TokenCache {
	key := make([]byte, sha256.Size)
	rand.Read(key) // never fails
	return &TokenCache{
		tokens: tokens, options: o, hashers: sync.Pool{New: func() any { return &hasher{Hash: hmac.New(sha256.New, key)} }},
		good: bounded.New[cacheKey, *outcome](maxCached), bad: bounded.New[cacheKey, *outcome](maxCached), waiting: map[cacheKey]*lookup{},
	}
}

// AuthenticateToken implements TokenAuthenticator.
func (c *TokenCache) AuthenticateToken(ctx context.Context, token string, audiences []string) (*TokenAnswer, bool, error) {
	begun := time.Now()
	key := c.key(token, audiences)
	c.mu.Lock()
	if found, ok := c.find(key); ok {
		c.mu.Unlock()
		c.options.Metrics.looked(begun, true)
		return found.answer, found.ok, found.err
	}
	defer c.options.Metrics.looked(begun, false)
	defer c.options.Metrics.begin(blocked)()
	l := c.waiting[key]
	if l == nil {
		l = &lookup{done: make(chan struct{})}
		c.waiting[key] = l
		// The lookup outlives this request: others wait for it.
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedTimeout)
		go func() {
			defer cancel()
			c.ask(shared, l, key, token, audiences)
		}()
	}
	c.mu.Unlock()
	select {
	case <-l.done:
		return l.answer, l.ok, l.err
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

// find returns the cached outcome.
func (c *TokenCache) find(key cacheKey) (*outcome, bool) {
	if found, ok := c.good.Get(key); ok {
		return found, true
	}
	return c.bad.Get(key)
}

// ask runs the lookup and caches its outcome. It turns a panic into an error for this token. The
// panic value may contain the token; the stack does not.
func (c *TokenCache) ask(ctx context.Context, l *lookup, key cacheKey, token string, audiences []string) {
	l.err = errPanicked
	asked := c.options.Metrics.begin(asking)
	defer func() {
		if recover() != nil {
			c.options.Log.Error("authentication of a token panicked", "stack", string(debug.Stack()))
		}
		asked()
		c.options.Metrics.fetched(l.err)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, key)
		c.keep(key, &l.outcome)
		close(l.done)
	}()
	var o outcome
	o.answer, o.ok, o.err = c.tokens.AuthenticateToken(ctx, token, audiences)
	l.outcome = o
}

// keep caches an outcome.
func (c *TokenCache) keep(key cacheKey, o *outcome) {
	into, ttl := c.good, c.options.Success
	if !o.ok {
		into, ttl = c.bad, c.options.Failure
	}
	if o.err == nil || c.options.Errors {
		into.AddFor(ttl, key, o)
	}
}

// A hasher computes keys without an allocation.
type hasher struct {
	hash.Hash
	part [256]byte // of the input; zero between uses
}

// key returns the cache key of a token and audiences. Lengths keep the parts apart.
func (c *TokenCache) key(token string, audiences []string) (key cacheKey) {
	h := c.hashers.Get().(*hasher)
	defer c.hashers.Put(h)
	h.Reset()
	h.write(token)
	if audiences == nil {
		h.Write(h.part[:1]) // nil audiences differ from empty ones
	}
	for _, audience := range audiences {
		h.write(audience)
	}
	h.Sum(h.part[:0])
	copy(key[:], h.part[:])
	clear(h.part[:])
	return key
}

func (h *hasher) write(s string) {
	binary.BigEndian.PutUint32(h.part[:], uint32(len(s)))
	h.Write(h.part[:4])
	for len(s) > 0 {
		n := copy(h.part[:], s)
		h.Write(h.part[:n])
		s = s[n:]
	}
	clear(h.part[:])
}
