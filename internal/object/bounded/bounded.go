// Package bounded is a cache with a maximum number of values, and optionally a TTL. A read
// takes a shared lock and allocates nothing.
//
// It does not compute values, and does not call the owner of an evicted one.
package bounded

import (
	"sync"
	"time"
)

// A Cache has two generations of values. A value that is added or read belongs to the recent generation.
// If that has half of the maximum, it becomes the older generation, and the values of the former older
// one are evicted. So the cache always has the last used half of the maximum. It is safe for concurrent
// use.
type Cache[K comparable, V any] struct {
	half int // of the maximum

	mu            sync.RWMutex
	recent, older map[K]entry[V]
	began         time.Time     // the recent generation
	longest       time.Duration // TTL of a value
}

type entry[V any] struct {
	value V
	until time.Time // zero for ever
}

// New returns an empty cache for at most max values. The maximum is at least 2.
func New[K comparable, V any](max int) *Cache[K, V] { return &Cache[K, V]{half: max / 2} }

// Get returns the value of a key, and whether there is one that has not expired.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.RLock()
	e, isRecent := c.recent[key]
	isOld := false
	if !isRecent {
		e, isOld = c.older[key]
	}
	c.mu.RUnlock()
	if !isRecent && !isOld || !e.until.IsZero() && !time.Now().Before(e.until) {
		return value, false
	}
	if isOld {
		c.renew(key)
	}
	return e.value, true
}

// renew moves the present entry of a key from the older generation to the recent one.
func (c *Cache[K, V]) renew(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, isRecent := c.recent[key]
	if e, isOld := c.older[key]; isOld && !isRecent {
		c.put(key, e)
	}
}

// Add adds a value that does not expire, or replaces that of the key.
func (c *Cache[K, V]) Add(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(key, entry[V]{value: value})
}

// AddFor adds a value that expires after a TTL, or replaces that of the key. It adds nothing without a TTL.
func (c *Cache[K, V]) AddFor(ttl time.Duration, key K, value V) {
	if ttl <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.longest = max(c.longest, ttl)
	// The older generation has expired if the recent one is older than the longest TTL.
	if now.Sub(c.began) >= c.longest {
		c.turn(now)
	}
	c.put(key, entry[V]{value, now.Add(ttl)})
}

// put adds an entry to the recent generation. The caller holds the lock.
func (c *Cache[K, V]) put(key K, e entry[V]) {
	if len(c.recent) >= c.half {
		c.turn(time.Now())
	}
	if c.recent == nil {
		c.recent = map[K]entry[V]{}
	}
	c.recent[key] = e
}

// turn begins a generation. The caller holds the lock.
func (c *Cache[K, V]) turn(now time.Time) { c.recent, c.older, c.began = nil, c.recent, now }

// Clear removes all values.
func (c *Cache[K, V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent, c.older = nil, nil
}

// Len returns the number of values, expired ones included.
func (c *Cache[K, V]) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.recent) + len(c.older)
}
