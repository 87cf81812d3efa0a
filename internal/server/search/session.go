package search

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

const (
	// patience limits the wait of a search for the index. A small store is indexed in less.
	patience = 250 * time.Millisecond
	// retryAfter is the time between a failure to follow the store and the next attempt.
	retryAfter = time.Second
	// minChanges is the number of changes for which the index is not built again.
	minChanges = 10_000
)

// errOutdated ends the use of an index of which more than a half is changes since it was built.
var errOutdated = errors.New("most documents may be of earlier states")

// A session has the index while clients search. One goroutine builds it and then follows the store.
type session struct {
	options *Options
	ctx     context.Context
	end     context.CancelFunc

	// These belong to the goroutine.
	kinds   map[string]*kind // by the prefix of their keys
	changes uint32           // since the index was built

	used time.Time // needs the lock of the Searcher

	mu      sync.Mutex
	index   *Index
	reached int64         // the revision that the index has; 0 while it is built
	set     *resource.Set // the kinds that the index has
	changed chan struct{} // closed when one of these changes
	again   func()        // makes the goroutine look for new kinds; nil while the index is built
}

// A kind is a resource in the index.
type kind struct {
	*resource.Definition
	number     int
	loaded     int64  // the revision of the first documents
	first, end uint32 // their numbers
}

func newSession(o *Options) *session {
	s := &session{options: o, index: NewIndex(), changed: make(chan struct{})}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// run builds the index and follows the store until the session ends.
func (s *session) run() {
	for s.ctx.Err() == nil {
		err := s.build()
		if err == nil {
			err = s.follow()
		}
		if s.ctx.Err() != nil || errors.Is(err, errOutdated) {
			continue
		}
		s.options.Log.Warn("the index of a search was interrupted", "error", err)
		select {
		case <-time.After(retryAfter):
		case <-s.ctx.Done():
		}
	}
}

// build builds an index. The first one is searched while it grows, and others replace it when they are complete.
func (s *session) build() error {
	x := NewIndex()
	s.publish(func() {
		if s.reached = 0; s.set == nil {
			s.index = x
		}
	})
	revision, err := s.options.Cache.Fresh(s.ctx)
	if err != nil {
		return err
	}
	set := s.options.Catalog.Set()
	s.kinds, s.changes = map[string]*kind{}, 0
	if err := s.load(x, set); err != nil {
		return err
	}
	x.Sorted()
	s.publish(func() { s.index, s.set, s.reached = x, set, revision })
	return nil
}

// publish makes a change of the shared fields.
func (s *session) publish(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// load adds the kinds of a set that are not in the index, with their objects: all names and labels, and then all
// texts, one object at a time.
func (s *session) load(x *Index, set *resource.Set) error {
	var added []*kind
	for _, g := range set.Groups() {
		for _, d := range g.Definitions {
			known := s.kinds[d.StoragePrefix]
			switch {
			case !searchable(d):
			case known != nil:
				known.Definition = d
			default:
				k := &kind{Definition: d, number: x.AddKind(&Kind{d.Group, d.Plural, d.Kind, isSecret(d)})}
				if err := s.names(x, k); err != nil {
					return err
				}
				s.kinds[d.StoragePrefix] = k
				added = append(added, k)
			}
		}
	}
	for _, k := range added {
		if err := s.texts(x, k); err != nil {
			return err
		}
	}
	return nil
}

// searchable reports whether objects are stored that clients may list. Those in the store of another kind are not
// searched twice.
func searchable(d *resource.Definition) bool {
	return d.Stored() && d.Allows("list") && (d.StoredAs.Empty() || d.StoredAs.Group == d.Group)
}

func isSecret(d *resource.Definition) bool { return d.Group == "" && d.Plural == "secrets" }

// names adds the objects of a kind with their labels.
func (s *session) names(x *Index, k *kind) error {
	snapshot, err := s.options.Cache.Resource(k.StoragePrefix).Snapshot(s.ctx, kv.Latest)
	if err != nil {
		return err
	}
	k.loaded, k.first = snapshot.Revision(), x.len
	for o := range snapshot.Scan("", "") {
		if s.ctx.Err() != nil {
			break
		}
		s.add(x, k, o)
	}
	k.end = x.len
	return s.ctx.Err()
}

// add adds an object with its labels, and returns false if it cannot be decoded.
func (s *session) add(x *Index, k *kind, o *watchcache.Object) bool {
	if o.Err() != nil {
		return false
	}
	namespace, name := k.Split(o.Key)
	x.Add(k.number, namespace, name, o.Revision, *o.Labels())
	return true
}

// texts adds the texts of the objects of a kind. An object that has changed since is another document.
func (s *session) texts(x *Index, k *kind) error {
	objects, r := s.options.Cache.Resource(k.StoragePrefix), x.reading()
	for number := k.first; number < k.end; number++ {
		document := r.at(number)
		o, err := objects.Get(s.ctx, k.Key(document.Namespace, document.Name))
		if err == nil {
			err = s.ctx.Err()
		}
		if err != nil {
			return err
		}
		if o != nil && o.Revision == document.Revision {
			if data, err := o.JSON(); err == nil { // otherwise it has changed, or cannot be read
				x.Texts(number, data)
			}
		}
	}
	return nil
}

// follow brings the index to each state of the store until it is outdated.
func (s *session) follow() error {
	for {
		ctx, cancel := context.WithCancel(s.ctx)
		s.publish(func() { s.again = cancel })
		set := s.options.Catalog.Set()
		err := s.load(s.index, set)
		if err == nil {
			s.publish(func() { s.set = set })
			err = s.apply(ctx, s.index)
		}
		interrupted := ctx.Err() != nil || err == nil
		cancel()
		if s.ctx.Err() != nil || !interrupted {
			s.publish(func() { s.again = nil })
			return err
		}
	}
}

// apply adds changes of the store to the index, until the catalog has changed.
func (s *session) apply(ctx context.Context, x *Index) error {
	for batch, err := range s.options.Cache.Follow(ctx, "", s.reached) {
		if err != nil {
			return err
		}
		for i := range batch.Events {
			s.change(x, &batch.Events[i])
		}
		s.publish(func() { s.reached = batch.Revision })
		switch {
		case s.changes > max(minChanges, x.len/2):
			return errOutdated
		case s.options.Catalog.Set() != s.set:
			return nil
		}
	}
	return nil
}

// change adds the document of a changed object.
func (s *session) change(x *Index, e *kv.Event) {
	k := s.kindOf(e.Key)
	if k == nil || e.Revision <= k.loaded {
		return
	}
	s.changes++
	if e.Value != nil && s.add(x, k, watchcache.NewObject(e.Key, e.Value, e.Revision)) {
		x.Texts(x.len-1, e.Value)
	}
}

// kindOf returns the kind of the object with a key; nil if it is not searched.
func (s *session) kindOf(key string) *kind {
	for end := len(key) - 1; end > 0; end-- {
		if key[end] == '/' {
			if k := s.kinds[key[:end+1]]; k != nil {
				return k
			}
		}
	}
	return nil
}

// current returns the index, and whether it has the state of the store at a revision. It waits for that for a
// while.
func (s *session) current(ctx context.Context, revision int64) (x *Index, complete bool) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		set := s.options.Catalog.Set()
		s.mu.Lock()
		x, complete = s.index, s.reached >= revision && s.set == set
		changed := s.changed
		if s.set != set && s.again != nil {
			s.again()
		}
		s.mu.Unlock()
		if complete {
			return x, true
		}
		select {
		case <-changed:
		case <-late.C:
			return x, false
		case <-ctx.Done():
			return x, false
		}
	}
}
