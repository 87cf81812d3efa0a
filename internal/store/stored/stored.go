// Package stored keeps data derived from stored objects up to date.
//
// A Follower delivers the changes of objects of some kinds, for indexes over them. A Lister reads
// objects of one kind as Go values. The first call reads the store. The package does not know the
// derived data.
package stored

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Apply receives the changes of the objects of a kind, given by its place among the followed kinds. Calls
// are sequential.
type Apply func(kind int, c Changes)

// Changes are the changes of the objects of a kind.
type Changes struct {
	events []*watchcache.Event
	whole  *watchcache.Snapshot // the state before the events; nil if it is known
}

// Anew reports whether the changes begin with the whole state. It replaces the earlier state.
func (c Changes) Anew() bool { return c.whole != nil }

// All yields the changed objects in order. A deleted one has its last state, and exists is false.
func (c Changes) All() iter.Seq2[*watchcache.Object, bool] {
	return func(yield func(o *watchcache.Object, exists bool) bool) {
		if c.whole != nil {
			for o := range c.whole.Scan("", "") {
				if !yield(o, true) {
					return
				}
			}
		}
		for _, e := range c.events {
			o := e.Object
			if o == nil {
				o = e.Prev
			}
			if !yield(o, e.Object != nil) {
				return
			}
		}
	}
}

// A Follower follows the objects of some kinds, in an order in which they can be read. A nil Follower
// has nothing to read.
type Follower struct {
	cache     *watchcache.Cache
	resources []*watchcache.Resource
	apply     Apply
	at        []atomic.Int64 // the revision of each kind
	turn      chan struct{}  // held during an update
	known     atomic.Bool    // all kinds were read
}

// Follow returns a Follower of kinds in a set, from a cache.
func Follow(cache *watchcache.Cache, set *resource.Set, kinds []schema.GroupResource, apply Apply) *Follower {
	f := &Follower{cache: cache, apply: apply, at: make([]atomic.Int64, len(kinds)), turn: make(chan struct{}, 1)}
	for _, kind := range kinds {
		f.resources = append(f.resources, cache.Resource(set.Lookup(kind.Group, kind.Resource).StoragePrefix))
	}
	return f
}

// errUnread says that nothing can be read yet.
var errUnread = errors.New("stored objects cannot be read yet")

// storeTimeout limits the wait for the store of a request that concerns no object.
const storeTimeout = time.Second

// RefreshSoon is Refresh for health checks and other requests that concern no object: if the store
// does not respond, the present data is enough.
func (f *Follower) RefreshSoon(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := f.Refresh(soon)
	if err != nil && ctx.Err() == nil && f != nil && f.known.Load() {
		return nil
	}
	return err
}

// Fresh waits until a cache has all writes acknowledged before the request of ctx arrived, or before
// the call if ctx has no request. One request reads the revision of the store only once, for its
// authentication, its authorization and its first read.
func Fresh(ctx context.Context, cache *watchcache.Cache) error {
	q := request.From(ctx)
	if q != nil {
		if revision, ok := q.Seen(); ok {
			return cache.Wait(ctx, revision)
		}
	}
	revision, err := cache.Fresh(ctx)
	if err == nil && q != nil {
		q.See(revision)
	}
	return err
}

// Refresh brings the data to the state of the store at the arrival of the request of ctx, or a later
// one.
func (f *Follower) Refresh(ctx context.Context) error {
	if f == nil {
		return errUnread
	}
	if err := Fresh(ctx, f.cache); err != nil {
		return err
	}
	return f.KeepUp(ctx)
}

// RefreshOnce is Refresh for callers that need no writes since the arrival of the request of ctx. Of
// several calls in one request, only the first reads the revision of the store.
func (f *Follower) RefreshOnce(ctx context.Context) error {
	q := request.From(ctx)
	if q == nil || q.Began() == 0 {
		return f.Refresh(ctx)
	}
	if err := f.cache.Wait(ctx, q.Began()); err != nil {
		return err
	}
	return f.KeepUp(ctx)
}

// KeepUp brings the data to the state of the cache. It reads the store only for kinds that the cache
// has not loaded.
func (f *Follower) KeepUp(ctx context.Context) error {
	if f.current() {
		return nil
	}
	return f.catchUp(ctx)
}

// KeepUpSoon is KeepUp for callers that can work with the present data: the store has a second to
// respond.
func (f *Follower) KeepUpSoon(ctx context.Context) error {
	if f.current() {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return f.catchUp(soon)
}

// current reports whether the data has the state of the cache.
func (f *Follower) current() bool {
	for i := range f.resources {
		if changed := f.resources[i].Changed(); changed == 0 || changed > f.at[i].Load() {
			return false
		}
	}
	return true
}

// catchUp reads new changes. One call does so at a time; waiting calls then find it done.
func (f *Follower) catchUp(ctx context.Context) error {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for kind := range f.resources {
		at := f.at[kind].Load()
		if f.resources[kind].Changed() == 0 {
			at = 0 // it is read for the first time, or anew
		}
		events, whole, now, err := f.resources[kind].EventsSince(ctx, at)
		if err != nil {
			return err
		}
		if len(events) > 0 || whole != nil {
			f.apply(kind, Changes{events, whole})
		}
		f.at[kind].Store(now)
	}
	f.known.Store(true)
	return nil
}
