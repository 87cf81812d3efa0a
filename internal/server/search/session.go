package search

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
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
	// minDead is the number of documents of earlier states for which the index is not built again.
	minDead = 10_000
)

// errOutdated ends the use of an index with too many documents of earlier states.
var errOutdated = errors.New("most documents are of earlier states")

// A session has the index while clients search. One goroutine builds it and then follows the store.
type session struct {
	options *Options
	ctx     context.Context
	end     context.CancelFunc

	// These belong to the goroutine.
	kinds map[string]*kind // by the prefix of their keys
	dead  int              // documents of earlier states

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
	number int
	loaded int64 // the revision of its first documents
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
	s.kinds, s.dead = map[string]*kind{}, 0
	if err := s.load(x, set, true); err != nil {
		return err
	}
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
func (s *session) load(x *Index, set *resource.Set, all bool) error {
	type part struct {
		*kind
		documents []uint32
	}
	var parts []part
	for _, d := range searchable(set) {
		if known := s.kinds[d.StoragePrefix]; known != nil {
			known.Definition = d
			continue
		}
		k := &kind{Definition: d, number: x.AddKind(Kind{Group: d.Group, Resource: d.Plural, Kind: d.Kind, Secret: isSecret(d)})}
		documents, err := s.names(x, k)
		if err != nil {
			return err
		}
		s.kinds[d.StoragePrefix] = k
		parts = append(parts, part{k, documents})
	}
	if all {
		x.Sorted()
	}
	for _, p := range parts {
		if err := s.texts(x, p.kind, p.documents); err != nil {
			return err
		}
	}
	return nil
}

// searchable returns the definitions of a set whose objects are searched, in the order of results. Of several that
// store the same objects, it is the one after which they are stored.
func searchable(set *resource.Set) []*resource.Definition {
	all := map[string]*resource.Definition{}
	for d := range set.All() {
		elsewhere := !d.StoredAs.Empty() && d.StoredAs.Group != d.Group
		if !d.Stored() || !d.Served() || !d.Allows("list") || elsewhere {
			continue
		}
		all[d.StoragePrefix] = d
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *resource.Definition) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Plural, b.Plural))
	})
}

func isSecret(d *resource.Definition) bool { return d.Group == "" && d.Plural == "secrets" }

// names adds the objects of a kind with their labels. They come in the order of results.
func (s *session) names(x *Index, k *kind) (documents []uint32, err error) {
	snapshot, err := s.options.Cache.Resource(k.StoragePrefix).Snapshot(s.ctx, kv.Latest)
	if err != nil {
		return nil, err
	}
	k.loaded = snapshot.Revision()
	add := func(prefix string) {
		for o := range snapshot.Scan(prefix, "") {
			if o.Err() != nil {
				continue
			}
			namespace, name := k.Split(o.Key)
			document := x.Add(k.number, namespace, name, o.Revision)
			for _, l := range *o.Labels() {
				x.Label(document, l.Key, l.Value)
			}
			documents = append(documents, document)
		}
	}
	if !k.Namespaced {
		add("")
		return documents, s.ctx.Err()
	}
	namespaces := map[string]bool{}
	for o := range snapshot.Scan("", "") {
		namespace, _ := k.Split(o.Key)
		namespaces[namespace] = true
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		if add(k.NamespacePrefix(namespace)); s.ctx.Err() != nil {
			break
		}
	}
	return documents, s.ctx.Err()
}

// texts adds the texts of documents of a kind. An object that has changed since is another document.
func (s *session) texts(x *Index, k *kind, documents []uint32) error {
	objects := s.options.Cache.Resource(k.StoragePrefix)
	for _, number := range documents {
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		document := x.Document(number)
		o, err := objects.Get(s.ctx, k.Key(document.Namespace, document.Name))
		if err != nil {
			return err
		}
		if o == nil || o.Revision != document.Revision {
			continue
		}
		if data, err := o.JSON(); err == nil { // otherwise it has changed, or cannot be read
			_ = x.Texts(number, data, false)
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
		err := s.load(s.index, set, false)
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
		case s.dead > max(minDead, x.Len()-s.dead):
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
	if e.PrevRevision != kv.Absent {
		s.dead++
	}
	if e.Value == nil || watchcache.NewObject(e.Key, e.Value, e.Revision).Err() != nil {
		return
	}
	namespace, name := k.Split(e.Key)
	_ = x.Texts(x.Add(k.number, namespace, name, e.Revision), e.Value, true)
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
