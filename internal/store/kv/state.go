package kv

import (
	"context"
	"fmt"
	"sync"
)

// A State is the map at one revision. It never changes.
type State interface {
	// Revision is that of the state.
	Revision() int64
	// Get returns the record of a key.
	// Errors: ErrNotFound, and those of a Backend.
	Get(ctx context.Context, key string) (Record, error)
	// List returns the records of a range. It ignores Range.Revision.
	List(ctx context.Context, r Range) (Page, error)
	// Count returns the number of keys with a prefix.
	Count(ctx context.Context, prefix string) (int64, error)
}

// A Keeper is a Backend that keeps a state for as long as a caller needs it. Not every Backend is one.
type Keeper interface {
	// Keep makes compactions stop at a revision, until release is called. A second call of release does
	// nothing. The states are kept in this process only: another process that compacts the same store may
	// remove them.
	// Errors: *CompactedError, *FutureError, ErrClosed.
	Keep(revision int64) (release func(), err error)
}

// Keep returns the state of a backend at a revision, or at Latest. The backend keeps it until release is called.
func Keep(ctx context.Context, b Backend, revision int64) (s State, release func(), err error) {
	keeper, ok := As[Keeper](b)
	if !ok {
		return nil, nil, fmt.Errorf("a store of type %T cannot keep a state", b)
	}
	if revision == Latest {
		if revision, err = b.Revision(ctx); err != nil {
			return nil, nil, err
		}
	}
	if release, err = keeper.Keep(revision); err != nil {
		return nil, nil, err
	}
	return kept{b, revision}, release, nil
}

// kept is a state of a backend that keeps it.
type kept struct {
	backend  Backend
	revision int64
}

func (k kept) Revision() int64 { return k.revision }

func (k kept) Get(ctx context.Context, key string) (Record, error) {
	return k.backend.Get(ctx, key, k.revision)
}

func (k kept) List(ctx context.Context, r Range) (Page, error) {
	r.Revision = k.revision
	return k.backend.List(ctx, r)
}

func (k kept) Count(ctx context.Context, prefix string) (int64, error) {
	counter, ok := As[Counter](k.backend)
	if !ok {
		return 0, fmt.Errorf("a store of type %T does not count", k.backend)
	}
	return counter.Count(ctx, prefix, k.revision)
}

// Kept are the revisions that a Keeper keeps for its callers. The zero value has none.
type Kept struct {
	mu    sync.Mutex
	held  map[int64]int // callers by revision
	floor int64         // a compaction to this revision was allowed
}

// Keep is the method of Keeper for a backend whose oldest and newest revisions these are.
func (k *Kept) Keep(revision, oldest, newest int64) (release func(), err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if revision, err = Resolve(revision, max(oldest, k.floor), newest); err != nil {
		return nil, err
	}
	if k.held == nil {
		k.held = map[int64]int{}
	}
	k.held[revision]++
	return sync.OnceFunc(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.held[revision]--; k.held[revision] == 0 {
			delete(k.held, revision)
		}
	}), nil
}

// Compact returns the revision to which a compaction to a revision may go. From the call on, no caller
// gets an earlier one.
func (k *Kept) Compact(revision int64) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	for held := range k.held {
		revision = min(revision, held)
	}
	k.floor = max(k.floor, revision)
	return revision
}

// Within reports whether a caller keeps a revision from one on, before another one.
func (k *Kept) Within(from, before int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for held := range k.held {
		if held >= from && held < before {
			return true
		}
	}
	return false
}
