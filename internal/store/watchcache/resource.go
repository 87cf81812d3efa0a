package watchcache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/anykind/anykind/internal/store/kv"
)

// Resource is the objects whose keys start with a prefix.
//
// Where a method takes a prefix, one that ends in '/' names every key that
// starts with it, and any other one key.
type Resource struct {
	cache  *Cache
	prefix string
	held   atomic.Pointer[state]
}

// Prefix returns what all keys of the resource start with.
func (r *Resource) Prefix() string { return r.prefix }

// acquire returns the state of the resource, loaded and locked.
func (r *Resource) acquire(ctx context.Context) (*state, error) {
	if !strings.HasSuffix(r.prefix, "/") {
		return nil, fmt.Errorf("the storage prefix %q of a resource does not end in a slash", r.prefix)
	}
	for {
		s := r.held.Load()
		if s == nil {
			s = r.cache.state(r.prefix)
			r.held.Store(s)
		}
		err := r.cache.acquire(ctx, s)
		if err != ErrGone {
			return s, err
		}
		r.held.CompareAndSwap(s, nil)
	}
}

// Get returns the present object with the key from the cache, nil if there is none.
func (r *Resource) Get(ctx context.Context, key string) (*Object, error) {
	s, err := r.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	o, _ := s.tree.Get(key)
	return o, nil
}

// Empty reports whether the cache has no objects of the resource now.
func (r *Resource) Empty(ctx context.Context) (bool, error) {
	s, err := r.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	return s.tree.Len() == 0, nil
}

// Snapshot returns the resource at a revision of the store, or its present state for kv.Latest. States
// beyond the history of the cache are read from the backend, and kept briefly.
// Errors: *kv.FutureError for a revision that the cache has not reached, see Wait; *kv.CompactedError.
func (r *Resource) Snapshot(ctx context.Context, revision int64) (*Snapshot, error) {
	s, err := r.acquire(ctx)
	if err != nil {
		return nil, err
	}
	current := s.current(r.cache)
	switch {
	case revision == kv.Latest || revision == current.revision:
		s.mu.Unlock()
		return current, nil
	case revision > current.revision:
		s.mu.Unlock()
		return nil, &kv.FutureError{Asked: revision, Newest: current.revision}
	}
	older, undo := s.older(revision, current)
	s.mu.Unlock()
	switch {
	case older == current:
		return &Snapshot{tree: current.tree, revision: revision}, nil
	case older == nil:
		t, err := r.cache.past(ctx, r.prefix, revision, current.tree)
		if err != nil {
			return nil, err
		}
		older = &Snapshot{tree: t, revision: revision}
	}
	revert(older.tree, undo)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone {
		s.kept.add(older)
	}
	return older, nil
}

// Watch returns a watcher of keys with the prefix at revisions greater than after, which may be in the
// future; kv.Latest is now. Events beyond the history of the cache are read from the backend.
// Errors: *kv.CompactedError.
func (r *Resource) Watch(ctx context.Context, prefix string, after int64) (*Watcher, error) {
	if prefix == "" {
		prefix = r.prefix
	}
	if !strings.HasPrefix(prefix, r.prefix) {
		return nil, fmt.Errorf("%q is not in resource %q", prefix, r.prefix)
	}
	s, err := r.acquire(ctx)
	if err != nil {
		return nil, err
	}
	floor, newest := s.history.floor, s.view(r.cache)
	s.mu.Unlock()
	switch {
	case after == kv.Latest:
		after = newest
	case after > newest && after <= r.cache.options.Undone:
		return nil, &kv.CompactedError{Asked: after, Oldest: newest}
	}
	if after < floor {
		// Any read at a revision tells whether it is compacted.
		_, err := r.cache.backend.Get(ctx, r.prefix, after)
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return nil, err
		}
	}
	r.cache.watchers.Add(1)
	return &Watcher{cache: r.cache, state: s, prefix: prefix, seen: after}, nil
}

// Changed returns a revision at or after the last change of the resource in the cache, and 0 while the
// resource is not loaded. It takes no lock.
func (r *Resource) Changed() int64 {
	if s := r.held.Load(); s != nil {
		return s.changed.Load()
	}
	return 0
}

// EventsSince returns the events of the resource after a revision, and the revision of the last one. If the
// history of the cache does not reach so far, whole is the present state.
func (r *Resource) EventsSince(ctx context.Context, revision int64) (events []*Event, whole *Snapshot, now int64, err error) {
	s, err := r.acquire(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	defer s.mu.Unlock()
	if now = s.view(r.cache); revision < s.history.floor {
		return nil, s.current(r.cache), now, nil
	}
	return slices.Clone(s.history.after(revision)), nil, now, nil
}
