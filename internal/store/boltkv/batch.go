package boltkv

import "github.com/anykind/anykind/internal/store/kv"

// A batch is the checked writes of a group, or of a part of it. It changes nothing in memory.
type batch struct {
	*Store
	what   part
	events []kv.Event
	newest int64 // the last revision of events
	// latest is which of events is the newest of a key.
	latest map[string]int
	size   int64 // of the records
	frees  bool  // it only deletes
}

// prepare checks the writes of a group in their order, so that each sees the earlier ones.
func (b *batch) prepare(g group) {
	b.newest = b.Store.newest
	for _, r := range g {
		r.revision, r.err = 0, nil
		if b.what == deletions && r.write.Value != nil {
			r.err = kv.ErrFull
			continue
		}
		made := len(b.events)
		if r.err = b.take(&r.write); r.err != nil {
			b.events = b.events[:made]
			continue
		}
		r.revision = b.newest + 1
		b.count(made)
		b.frees = b.frees && r.write.Value == nil
	}
}

// count assigns revisions to the events from one on, and shows the writes to later ones.
func (b *batch) count(from int) {
	if b.latest == nil {
		b.latest = map[string]int{}
	}
	for i := range b.events[from:] {
		e := &b.events[from+i]
		b.newest++
		e.Revision = b.newest
		b.latest[e.Key] = from + i
		b.size += int64(recordSize(e))
	}
}

// take adds the changes of a write, without revisions, or returns the error that rejects it.
func (b *batch) take(w *kv.Write) error {
	if err := b.check(w); err != nil {
		return err
	}
	was := w.Was
	for c := range w.All() {
		e := kv.Event{Key: c.Key, Value: c.Value, PrevRevision: c.Expect, Note: w.Note}
		if c.Expect != kv.Absent {
			if e.Prev = was; e.Prev == nil {
				var err error
				if e.Prev, err = b.value(c.Key, c.Expect); err != nil {
					return err
				}
			}
		}
		b.events, was = append(b.events, e), nil
	}
	return nil
}

// check returns the error that rejects a write, or nil.
func (b *batch) check(w *kv.Write) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if err := b.expect(w.First()); err != nil {
		return err
	}
	for _, g := range w.Guards {
		if at := b.current(g.Key); at != g.Revision {
			return conflict(g.Key, g.Revision, at)
		}
	}
	for _, c := range w.With {
		if err := b.expect(c); err != nil {
			return err
		}
	}
	return nil
}

// expect returns the error that rejects a change, or nil.
func (b *batch) expect(c kv.Change) error {
	if at := b.current(c.Key); at != c.Expect || !c.Possible() {
		return conflict(c.Key, c.Expect, at)
	}
	return nil
}

func conflict(key string, expected, actual int64) error {
	return &kv.ConflictError{Key: key, Expected: expected, Actual: kv.Record{Key: key, Revision: actual}}
}

// current returns where a key will be after the writes so far. It needs mu.
func (b *batch) current(key string) int64 {
	if i, ok := b.latest[key]; ok {
		if b.events[i].Value == nil {
			return kv.Absent
		}
		return b.events[i].Revision
	}
	return b.index.newest(key)
}

// value returns the value that was written to key at a revision, from memory if it is there.
func (b *batch) value(key string, revision int64) (value []byte, err error) {
	if i, ok := b.latest[key]; ok && b.events[i].Revision == revision {
		return b.events[i].Value, nil
	}
	b.mu.RLock()
	return b.written(revision)
}
