package kms

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// keep is the time for which a decrypted source is cached, and a failed one is tried again.
const keep = 24 * time.Hour

// A cache has the sources that values of the store needed.
type cache struct {
	service decrypter
	metrics *Metrics
	// count is called with the number of sources.
	count func(n int)
	// limit is the number of decrypted sources that are kept, and failed ones are not; negative to keep all.
	limit int

	mu  sync.Mutex
	all map[id]*cached
	// down is the end of a pause after a call without an answer, and why its error. Until then, unknown
	// sources fail at once: a list does not wait for each of them.
	down time.Time
	why  error

	failed chan struct{} // a source has failed
	healed chan struct{} // the plugin is healthy again
}

// A cached source is decrypted, failed, or being decrypted for the first time.
type cached struct {
	source source
	tried  chan struct{} // closed after the first call

	opener opener    // nil if the last call failed; needs the mutex of the cache
	err    error     // likewise
	since  time.Time // likewise
}

// A decrypter is the part of a KMS that a cache calls.
type decrypter interface {
	decrypt(ctx context.Context, uid string, s *source) ([]byte, error)
}

func newCache(s decrypter, m *Metrics, limit int, count func(int)) cache {
	return cache{service: s, metrics: m, limit: limit, count: count, all: map[id]*cached{}, failed: make(chan struct{}, 1), healed: make(chan struct{}, 1)}
}

// get returns the opener of a source. An unknown source takes a call of the KMS. Concurrent callers share
// the call.
func (c *cache) get(ctx context.Context, s *source) (opener, error) {
	key := s.id()
	c.mu.Lock()
	found := c.all[key]
	first := found == nil
	if first {
		found = &cached{source: s.clone(), tried: make(chan struct{}), since: time.Now()}
		c.all[key] = found
	}
	c.mu.Unlock()
	if first {
		c.metrics.misses.Inc()
		c.try(context.WithoutCancel(ctx), found)
		close(found.tried)
	}
	select {
	case <-found.tried:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if found.err != nil && c.limit >= 0 {
		delete(c.all, key)
	}
	return found.opener, found.err
}

// try decrypts a source for the first time.
func (c *cache) try(ctx context.Context, s *cached) {
	c.mu.Lock()
	s.err = c.why
	down := time.Now().Before(c.down)
	c.mu.Unlock()
	if !down {
		c.decrypt(ctx, s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.err != nil {
		signal(c.failed)
	}
}

// decrypt calls the KMS. It reports whether there was an answer.
func (c *cache) decrypt(ctx context.Context, s *cached) (answered bool) {
	plain, err := c.service.decrypt(ctx, string(uuid.NewUUID()), &s.source)
	var o opener
	if err == nil {
		o, err = newOpener(s.source.kind, plain)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.err = err; err == nil {
		s.opener, s.since = o, time.Now()
		c.prune()
		return true
	}
	switch grpcstatus.Code(err) {
	case codes.DeadlineExceeded, codes.Unavailable:
		c.down, c.why = time.Now().Add(freshIll), err
		return false
	}
	return true
}

// put adds a source with its plain form.
func (c *cache) put(s *source, o opener) {
	done := make(chan struct{})
	close(done)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[s.id()] = &cached{source: *s, tried: done, opener: o, since: time.Now()}
	c.prune()
}

// prune drops old sources, and the oldest decrypted ones above the limit. It needs the mutex.
func (c *cache) prune() {
	for {
		n, oldest := 0, id{}
		for key, s := range c.all {
			switch {
			case time.Since(s.since) > keep:
				delete(c.all, key)
			case s.opener != nil:
				if n == 0 || s.since.Before(c.all[oldest].since) {
					oldest = key
				}
				n++
			}
		}
		if c.limit < 0 || n <= c.limit {
			break
		}
		delete(c.all, oldest)
	}
	c.count(len(c.all))
}

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// retryUntil tries failed sources again until ctx ends. It calls readable when some have succeeded.
func (c *cache) retryUntil(ctx context.Context, readable func()) {
	for {
		select {
		case <-c.failed:
		case <-ctx.Done():
			return
		}
		for pause := retryFirst; ; pause = min(2*pause, retryMost) {
			select {
			case <-time.After(pause):
			case <-c.healed:
			case <-ctx.Done():
				return
			}
			some, all := c.retry(ctx)
			if some {
				readable()
			}
			if all {
				break
			}
		}
	}
}

// retry tries the failed sources once, until a call has no answer. It reports whether some succeeded, and
// whether none is left.
func (c *cache) retry(ctx context.Context) (some, all bool) {
	c.mu.Lock()
	c.prune()
	var failed []*cached
	for _, s := range c.all {
		if s.err != nil {
			failed = append(failed, s)
		}
	}
	c.mu.Unlock()
	left := len(failed)
	for _, s := range failed {
		if ctx.Err() != nil || !c.decrypt(ctx, s) {
			break
		}
		c.mu.Lock()
		if s.err == nil {
			left--
		}
		c.mu.Unlock()
	}
	return left < len(failed), left == 0
}
