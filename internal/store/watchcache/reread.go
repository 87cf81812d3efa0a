package watchcache

import (
	"context"
	"slices"

	"github.com/anykind/anykind/internal/store/kv"
)

// Reread is called when values that could not be decoded may be decodable now. It forgets each resource
// with such an object, so that the next use reads it again. It ends all followers, whose events may have
// such values, with *kv.CompactedError.
func (c *Cache) Reread() {
	// The feed may be about to apply a batch that was decoded before. It looks again after its next one.
	c.again.Store(true)
	c.reread(isUndecodable)
}

func (c *Cache) reread(matches func(*Object) bool) {
	wake(c.forgetWith(matches))
	f := &c.followers
	f.mu.Lock()
	defer f.mu.Unlock()
	for q := range f.all {
		q.End(&kv.CompactedError{Asked: c.Revision(), Oldest: c.Revision()})
	}
	clear(f.all)
}

// forgetWith forgets the resources with an object that matches, and those that are being loaded.
func (c *Cache) forgetWith(matches func(*Object) bool) (woken []*group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for prefix, s := range c.states {
		s.mu.Lock()
		if s.load != nil || s.has(matches) {
			delete(c.states, prefix)
			s.gone = true
			woken = append(woken, s.reset(c)...)
		}
		s.mu.Unlock()
	}
	return woken
}

// Verify is called after values of affected prefixes may have become undecodable, such as after a change of keys. It reads
// the values of the resources in use. An object has an error from now on if its value cannot be decoded and lost confirms that
// it is not for a while only. Watchers go on: an object that becomes undecodable is no event.
func (c *Cache) Verify(ctx context.Context, affected func(prefix string) bool, lost func(ctx context.Context, key string) bool) error {
	for _, s := range c.loaded(affected) {
		r := kv.Range{Prefix: s.prefix, Limit: loadPage}
		for more := true; more; {
			page, err := c.backend.List(ctx, r)
			if err != nil {
				return err
			}
			if more = page.More; more { // each page has its own revision: none needs the state of another
				r.After = page.Records[len(page.Records)-1].Key
			}
			s.spoil(c, slices.DeleteFunc(page.Records, func(r kv.Record) bool {
				return newContent(r.Value, r.Revision).err == nil || !lost(ctx, r.Key)
			}))
		}
	}
	return nil
}

// loaded returns the resources in use with an affected prefix.
func (c *Cache) loaded(affected func(prefix string) bool) (all []*state) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for prefix, s := range c.states {
		if affected(prefix) {
			all = append(all, s)
		}
	}
	return all
}

// spoil gives the objects of undecodable records their errors.
func (s *state) spoil(c *Cache, records []kv.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tree == nil {
		return
	}
	for i := range records {
		r := &records[i]
		was, ok := s.tree.Get(r.Key)
		if !ok || was.Revision != r.Revision || was.Err() != nil {
			continue
		}
		o, v := newObject(&c.shapes, r.Key, r.Value, r.Revision)
		o.marks |= verified
		o.keep(v)
		s.tree.Set(r.Key, o)
		s.bytes += o.size() - was.size()
		s.snapshot, s.indexes, s.portions, s.kept = nil, nil, nil, keptSnapshots{}
	}
}

// has reports whether an object of the resource or of its recent events matches. It needs s.mu.
func (s *state) has(matches func(*Object) bool) (found bool) {
	if s.tree == nil {
		return false
	}
	s.tree.Scan(func(_ string, o *Object) bool {
		found = matches(o)
		return !found
	})
	return found || slices.ContainsFunc(s.history.events, func(e *Event) bool {
		return matches(e.Object) || matches(e.Prev)
	})
}
