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

// indexChunk is how many objects are looked into between two looks at whether
// anybody still wants to know.
const indexChunk = 256

// An Indexer says by what the objects of a resource are to be found.
type Indexer struct {
	// Key names the index among those of the resource. It is comparable, and
	// says all that Value depends on besides the object.
	Key any
	// Value returns by what an object is to be found. An error says that nobody
	// can tell now.
	Value func(context.Context, *Object) (string, error)
	// Ahead is told which objects Value is about to be asked for. It may be nil.
	Ahead func(context.Context, []*Object)
}

// An Index finds the objects of one Snapshot by their value. It does not change,
// and may be kept and read by anyone.
type Index struct {
	known   *btree.Map[string, entry]
	byValue *btree.BTreeG[entry] // of what known has
	unknown *tree                // objects whose value nobody could tell
}

// An entry is an object with its value, which many may share.
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

// Scan is Scan of the Snapshot for those objects that have the value, or might:
// those whose value is not known are among them.
func (x *Index) Scan(value, prefix, after string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		from := max(prefix, after)
		maybe := x.unknown.Iter()
		more := maybe.Seek(from)
		// until yields what may have the value and comes before a key, or all of
		// it where there is none.
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

// set makes the index know an object, and remove forget one.
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

// apply makes the changes, in any order, and asks again for what is not known.
// When it fails some of them are made.
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

// doubtful returns the objects whose value is not known, but for those that are
// changed anyway.
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

// difference returns what makes the index one of the objects of a tree.
func (x *Index) difference(t *tree) []change {
	had := make([]change, 0, x.known.Len()+x.unknown.Len())
	for key, e := range x.known.Scan {
		had = append(had, change{key: key, object: e.object})
	}
	for key, o := range x.unknown.Scan {
		had = append(had, change{key: key, object: o})
	}
	slices.SortFunc(had, func(a, b change) int { return cmp.Compare(a.key, b.key) })

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

// A keptIndex is an index of a resource that somebody uses. The feed knows
// nothing of it: who uses it brings it to the state that he reads, from the one
// that the last one did, which costs as much as was changed in between.
type keptIndex struct {
	turn chan struct{} // holds one while somebody uses what follows
	idle *time.Timer   // drops the index

	index *Index
	// tree and revision say which state the index is of; none if tree is nil.
	tree     *tree
	revision int64
}

// keep returns the index of a key, made if there is none. It needs s.mu.
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

// drop forgets an index that nobody has used for a while, and with it the older
// snapshots that were read with it.
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

// changes returns what makes the index one of a snapshot, older or newer.
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

// Index returns an index of a snapshot of the resource. The first one of its
// key takes a look into every object, and the next, until nobody has asked for a
// while, one into those that were changed since.
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
