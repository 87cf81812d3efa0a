package watchcache

import (
	"slices"

	"github.com/anykind/anykind/internal/store/kv"
)

// Reread is called when values that could not be decoded may be decodable now. It forgets each resource
// with such an object, so that the next use reads it again. It ends all followers, whose events may have
// such values, with *kv.CompactedError.
func (c *Cache) Reread() {
	// The feed may be about to apply a batch that was decoded before. It looks again after its next one.
	c.again.Store(true)
	c.reread()
}

func (c *Cache) reread() {
	wake(c.forgetUnreadable())
	f := &c.followers
	f.mu.Lock()
	defer f.mu.Unlock()
	for q := range f.all {
		q.End(&kv.CompactedError{Asked: c.Revision(), Oldest: c.Revision()})
	}
	clear(f.all)
}

// forgetUnreadable forgets the resources that have an unreadable object, or may load one now.
func (c *Cache) forgetUnreadable() (woken []*group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for prefix, s := range c.states {
		s.mu.Lock()
		if s.load != nil || s.hasUnreadable() {
			delete(c.states, prefix)
			s.gone = true
			woken = append(woken, s.reset(c)...)
		}
		s.mu.Unlock()
	}
	return woken
}

// hasUnreadable reports whether an object or a recent event cannot be decoded. It needs s.mu.
func (s *state) hasUnreadable() (found bool) {
	if s.tree == nil {
		return false
	}
	s.tree.Scan(func(_ string, o *Object) bool {
		found = o.Err() != nil
		return !found
	})
	return found || slices.ContainsFunc(s.history.events, func(e *Event) bool {
		return e.Object != nil && e.Object.Err() != nil || e.Prev != nil && e.Prev.Err() != nil
	})
}
