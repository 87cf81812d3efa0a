package watchcache

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"
	"unique"

	"github.com/tidwall/btree"
)

// indexChunk is the number of objects indexed between two checks of the context.
const indexChunk = 256

// An Indexer defines an index over the objects of a resource.
type Indexer struct {
	// Key identifies the index among those of the resource. It is comparable, and covers everything on
	// which Value depends besides the object.
	Key any
	// Value returns the index value of an object. An error means that it is unknown for now.
	Value func(context.Context, *Object) (string, error)
	// Ahead receives the next objects before the calls of Value. It may be nil.
	Ahead func(context.Context, []*Object)
}

// An Index finds the objects of one Snapshot by their value. It is immutable, and safe for concurrent
// use.
type Index struct {
	known   *btree.Map[string, entry]
	byValue *btree.BTreeG[entry] // index of known by value
	unknown *tree                // objects with unknown values
}

// An entry is an object with its value. Many entries may share a value.
type entry struct {
	value  unique.Handle[string]
	object *Object
}

func newIndex() *Index {
	before := func(a, b entry) bool {
		if a.value != b.value {
			return a.value.Value() < b.value.Value()
		}
		return a.object.Key < b.object.Key
	}
	return &Index{
		known:   new(btree.Map[string, entry]),
		byValue: btree.NewBTreeGOptions(before, btree.Options{NoLocks: true}),
		unknown: new(tree),
	}
}

func (x *Index) copy() *Index {
	return &Index{x.known.Copy(), x.byValue.Copy(), x.unknown.Copy()}
}

// Value returns the value of the object with a key, if it is known.
func (x *Index) Value(key string) (value string, known bool) {
	if e, ok := x.known.Get(key); ok {
		return e.value.Value(), true
	}
	return "", false
}

// Scan is Scan of the Snapshot for those objects that have the value, or whose value is unknown.
func (x *Index) Scan(value, prefix, after string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		from := max(prefix, after)
		maybe := x.unknown.Iter()
		more := maybe.Seek(from)
		// until yields the possible matches before a key, or all of them without a key.
		until := func(key string) bool {
			for ; more && (key == "" || maybe.Key() < key); more = maybe.Next() {
				if maybe.Key() != after && within(prefix, maybe.Key()) && !yield(maybe.Value()) {
					return false
				}
			}
			return true
		}
		wanted := unique.Make(value)
		stopped := false
		x.byValue.Ascend(entry{wanted, &Object{Key: from}}, func(e entry) bool {
			key := e.object.Key
			if key == after && e.value == wanted {
				return true
			}
			if e.value != wanted || !within(prefix, key) {
				return false
			}
			stopped = !until(key) || !yield(e.object)
			return !stopped
		})
		if !stopped {
			until("")
		}
	}
}

// set adds an object to the index, and remove removes one.
func (x *Index) set(o *Object, value string, err error) {
	x.remove(o.Key)
	if err != nil {
		x.unknown.Set(o.Key, o)
		return
	}
	e := entry{unique.Make(value), o}
	x.known.Set(o.Key, e)
	x.byValue.Set(e)
}

func (x *Index) remove(key string) {
	x.unknown.Delete(key)
	if e, ok := x.known.Delete(key); ok {
		x.byValue.Delete(e)
	}
}

// apply applies changes, in any order, and retries unknown values. If it fails, some changes are
// applied.
func (x *Index) apply(ctx context.Context, changes []change, by Indexer) error {
	changes = append(x.doubtful(changes), changes...)
	objects := make([]*Object, 0, min(indexChunk, len(changes)))
	for chunk := range slices.Chunk(changes, indexChunk) {
		objects = objects[:0]
		for _, c := range chunk {
			if c.object != nil {
				objects = append(objects, c.object)
			} else {
				x.remove(c.key)
			}
		}
		if by.Ahead != nil {
			by.Ahead(ctx, objects)
		}
		for _, o := range objects {
			value, err := by.Value(ctx, o)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			x.set(o, value, err)
		}
	}
	return nil
}

// doubtful returns the objects with unknown values, except changed ones.
func (x *Index) doubtful(changes []change) []change {
	if x.unknown.Len() == 0 {
		return nil
	}
	changed := map[string]bool{}
	for _, c := range changes {
		changed[c.key] = true
	}
	var doubtful []change
	for key, o := range x.unknown.Scan {
		if !changed[key] {
			doubtful = append(doubtful, change{key: key, object: o})
		}
	}
	return doubtful
}

// difference returns the changes from the index to the objects of a tree.
func (x *Index) difference(t *tree) []change {
	had := make([]change, 0, x.known.Len()+x.unknown.Len())
	for key, e := range x.known.Scan {
		had = append(had, change{key: key, object: e.object})
	}
	for key, o := range x.unknown.Scan {
		had = append(had, change{key: key, object: o})
	}
	slices.SortStableFunc(had, func(a, b change) int { return cmp.Compare(a.key, b.key) })

	var changes []change
	for key, o := range t.Scan {
		for len(had) > 0 && had[0].key < key {
			changes, had = append(changes, change{key: had[0].key}), had[1:]
		}
		if len(had) > 0 && had[0].key == key {
			same := had[0].object == o
			if had = had[1:]; same {
				continue
			}
		}
		changes = append(changes, change{key: key, object: o})
	}
	for _, h := range had {
		changes = append(changes, change{key: h.key})
	}
	return changes
}

// A keptIndex is a used index of a resource. The feed does not update it. Each user brings it from the
// state of the previous use to the state that it reads, at the cost of the changes in between.
type keptIndex struct {
	turn chan struct{} // held by the user of the following fields
	idle *time.Timer   // drops the index

	index *Index
	// tree and revision are the state of the index; none if tree is nil.
	tree     *tree
	revision int64
}

// keep returns the index of a key, created if missing. It needs s.mu.
func (s *state) keep(key any) *keptIndex {
	x := s.indexes[key]
	if x == nil {
		x = &keptIndex{turn: make(chan struct{}, 1), index: newIndex()}
		x.idle = time.AfterFunc(keepFor, func() { s.drop(key, x) })
		if s.indexes == nil {
			s.indexes = map[any]*keptIndex{}
		}
		s.indexes[key] = x
	}
	return x
}

// drop drops an unused index, and the older snapshots that were read with it.
func (s *state) drop(key any, x *keptIndex) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.indexes[key] == x {
		delete(s.indexes, key)
	}
	s.kept.expire(time.Now())
}

// at returns the index of a snapshot.
func (x *keptIndex) at(ctx context.Context, s *state, of *Snapshot, by Indexer) (*Index, error) {
	select {
	case x.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	x.idle.Stop()
	defer func() {
		x.idle.Reset(keepFor)
		<-x.turn
	}()
	if x.tree != nil && of.revision < x.revision {
		older := x.index.copy()
		return older, older.apply(ctx, x.changes(s, of), by)
	}
	changes := x.changes(s, of)
	x.tree = nil
	if err := x.index.apply(ctx, changes, by); err != nil {
		return nil, err
	}
	x.tree, x.revision = of.tree, of.revision
	return x.index.copy(), nil
}

// changes returns the changes from the index to a snapshot, older or newer.
func (x *keptIndex) changes(s *state, of *Snapshot) []change {
	if x.tree == of.tree {
		return nil
	}
	events, ok := x.between(s, of)
	if !ok {
		return x.index.difference(of.tree)
	}
	// The last one of each object counts.
	last := map[string]int{}
	var changes []change
	add := func(key string, o *Object) {
		if i, ok := last[key]; ok {
			changes[i].object = o
			return
		}
		last[key] = len(changes)
		changes = append(changes, change{key: key, object: o})
	}
	if of.revision < x.revision {
		for _, e := range slices.Backward(events) {
			add(e.Key(), e.Prev)
		}
	} else {
		for _, e := range events {
			add(e.Key(), e.Object)
		}
	}
	return changes
}

// between returns the events between the state of the index and a snapshot, if
// the history has them all.
func (x *keptIndex) between(s *state, of *Snapshot) ([]*Event, bool) {
	from, to := min(x.revision, of.revision), max(x.revision, of.revision)
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.tree == nil || s.tree == nil || from < s.history.floor {
		return nil, false
	}
	events := s.history.after(from)
	n, _ := slices.BinarySearchFunc(events, to+1, func(e *Event, revision int64) int { return cmp.Compare(e.Revision, revision) })
	return slices.Clone(events[:n]), true
}

// Index returns an index of a snapshot of the resource. The first call for a key reads every object.
// Later calls read the objects changed since, until the index is dropped as unused.
func (r *Resource) Index(ctx context.Context, of *Snapshot, by Indexer) (*Index, error) {
	if x, ok := of.indexes.Load(by.Key); ok {
		return x.(*Index), nil
	}
	s, err := r.acquire(ctx)
	if err != nil {
		return nil, err
	}
	kept := s.keep(by.Key)
	s.mu.Unlock()
	x, err := kept.at(ctx, s, of, by)
	if err != nil {
		return nil, err
	}
	if x.unknown.Len() == 0 {
		of.indexes.Store(by.Key, x)
	}
	return x, nil
}
