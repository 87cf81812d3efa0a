// Package stored keeps what is made of stored objects up to date.
//
// A Follower tells what has happened to objects of some kinds, for who keeps an index of them. A
// Lister reads objects of one kind as Go values. Nothing is read before somebody asks. The package
// does not know what is made of the objects.
package stored

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Apply is told what has happened to the objects of a kind, which is its place among those that
// are followed. If whole is not nil, it is all that there is, and what was known before is gone.
// It is called by one at a time.
type Apply func(kind int, events []*watchcache.Event, whole *watchcache.Snapshot)

// A Follower follows the objects of some kinds, in an order in which they can be read. It may be
// nil, which is one that has nothing to read.
type Follower struct {
	cache     *watchcache.Cache
	resources []*watchcache.Resource
	apply     Apply
	at        []atomic.Int64 // how far each is
	turn      chan struct{}  // held by whoever brings it up to date
	known     atomic.Bool    // all kinds were read
}

// Follow returns a Follower of kinds in a set, by what a cache has of them.
func Follow(cache *watchcache.Cache, set *resource.Set, kinds []schema.GroupResource, apply Apply) *Follower {
	f := &Follower{cache: cache, apply: apply, at: make([]atomic.Int64, len(kinds)), turn: make(chan struct{}, 1)}
	for _, kind := range kinds {
		f.resources = append(f.resources, cache.Resource(set.Lookup(kind.Group, kind.Resource).StoragePrefix))
	}
	return f
}

// errUnread says that nothing can be read yet.
var errUnread = errors.New("stored objects cannot be read yet")

// patience is how long a request that is about no object waits for the store.
const patience = time.Second

// RefreshSoon is Refresh for whoever asks how the server is, or for anything else that is not in
// the store: what is known is enough if the store does not answer.
func (f *Follower) RefreshSoon(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := f.Refresh(soon)
	if err != nil && ctx.Err() == nil && f != nil && f.known.Load() {
		return nil
	}
	return err
}

// Fresh waits until a cache has all that was acknowledged before the request of ctx came, or
// before the call where ctx is of no request. The store is asked once for all who decide about a
// request: by its token, by roles, by what it reads first.
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

// Refresh brings what is known to where the store was when the request of ctx came, or later.
func (f *Follower) Refresh(ctx context.Context) error {
	if f == nil {
		return errUnread
	}
	if err := Fresh(ctx, f.cache); err != nil {
		return err
	}
	return f.KeepUp(ctx)
}

// RefreshOnce is Refresh for whoever need not know what has happened since the request of the
// context came. Of several in one request, only the first asks the store.
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

// KeepUp brings what is known to where the cache is. It asks no store.
func (f *Follower) KeepUp(ctx context.Context) error {
	for i := range f.resources {
		if changed := f.resources[i].Changed(); changed == 0 || changed > f.at[i].Load() {
			return f.catchUp(ctx)
		}
	}
	return nil
}

// catchUp reads what has happened. One does it at a time; the others find that it is done.
func (f *Follower) catchUp(ctx context.Context) error {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for kind := range f.resources {
		events, whole, now, err := f.resources[kind].Since(ctx, f.at[kind].Load())
		if err != nil {
			return err
		}
		if len(events) > 0 || whole != nil {
			f.apply(kind, events, whole)
		}
		f.at[kind].Store(now)
	}
	f.known.Store(true)
	return nil
}
