package boltkv

import (
	"encoding/binary"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/kv"
)

// A transaction is prepared by the committer: the checked writes of a group, and a part of a
// compaction. It changes nothing in memory.
type transaction struct {
	*Store
	what   part
	state  state // as it will be
	events []kv.Event
	// latest is which of events is the newest of a key.
	latest map[string]int
	swept  []sweep
	size   int64 // of the records to write
	read   int64 // bytes of records that were read
	frees  bool  // it only writes deletions and sweeps
}

// prepare checks the writes of a group in their order, so that each sees the earlier ones.
func (t *transaction) prepare(tx *bolt.Tx, g *group) error {
	records := tx.Bucket(recordsBucket)
	t.frees = true
	for _, r := range g.writes {
		r.revision, r.err = 0, nil
		if t.what == deletions && r.write.Value != nil {
			r.err = kv.ErrFull
			continue
		}
		made := len(t.events)
		if r.err = t.take(records, &r.write); r.err != nil {
			t.events = t.events[:made]
			continue
		}
		r.revision = t.state.newest + 1
		t.count(made)
		t.frees = t.frees && r.write.Value == nil
	}
	if g.compact > t.state.oldest {
		t.state.oldest = g.compact
	}
	budget := sweepAside + 2*len(t.events)
	if t.what == deletions || (len(t.events) == 0 && t.state.oldest == t.Store.state.oldest) {
		budget = 0
	}
	return t.sweep(records, budget)
}

func (t *transaction) empty() bool {
	return len(t.events) == 0 && len(t.swept) == 0 && t.state == t.Store.state
}

// count assigns revisions to the events from one on, and shows the writes to later ones.
func (t *transaction) count(from int) {
	if t.latest == nil {
		t.latest = map[string]int{}
	}
	for i := range t.events[from:] {
		e := &t.events[from+i]
		t.state.newest++
		e.Revision = t.state.newest
		t.latest[e.Key] = from + i
		t.size += int64(recordSize(e))
	}
}

// take adds the changes of a write, without revisions, or returns the error that rejects it.
func (t *transaction) take(records *bolt.Bucket, w *kv.Write) error {
	if err := t.check(w); err != nil {
		return err
	}
	was := w.Was
	for c := range w.All() {
		e := kv.Event{Key: c.Key, Value: c.Value, PrevRevision: c.Expect, Note: w.Note}
		if c.Expect != kv.Absent {
			if e.Prev = was; e.Prev == nil {
				var err error
				if e.Prev, err = t.value(records, c.Key, c.Expect); err != nil {
					return err
				}
			}
		}
		t.events, was = append(t.events, e), nil
	}
	return nil
}

// check returns the error that rejects a write, or nil.
func (t *transaction) check(w *kv.Write) error {
	if err := t.expect(w.First()); err != nil {
		return err
	}
	for _, g := range w.Guards {
		if at := t.current(g.Key); at != g.Revision {
			return conflict(g.Key, g.Revision, at)
		}
	}
	for _, c := range w.With {
		if err := t.expect(c); err != nil {
			return err
		}
	}
	return nil
}

// expect returns the error that rejects a change, or nil.
func (t *transaction) expect(c kv.Change) error {
	if at := t.current(c.Key); at != c.Expect || !c.Possible() {
		return conflict(c.Key, c.Expect, at)
	}
	return nil
}

func conflict(key string, expected, actual int64) error {
	return &kv.ConflictError{Key: key, Expected: expected, Actual: kv.Record{Key: key, Revision: actual}}
}

// current returns where a key will be after the writes so far.
func (t *transaction) current(key string) int64 {
	if i, ok := t.latest[key]; ok {
		if t.events[i].Value == nil {
			return kv.Absent
		}
		return t.events[i].Revision
	}
	return t.index.newest(key)
}

// value returns the value that was written to key at a revision, from memory if
// it is there.
func (t *transaction) value(records *bolt.Bucket, key string, revision int64) ([]byte, error) {
	if i, ok := t.latest[key]; ok && t.events[i].Revision == revision {
		return t.events[i].Value, nil
	}
	if e, ok := t.tail.at(revision); ok {
		return e.Value, nil
	}
	return t.readValue(records, revision)
}

// write writes everything to the file, without a commit.
func (t *transaction) write(tx *bolt.Tx) error {
	if err := t.makeRoom(tx, t.size, t.frees); err != nil {
		return err
	}
	records := tx.Bucket(recordsBucket)
	// Records are appended, so pages need no free space inside.
	records.FillPercent = 0.9
	if int64(cap(t.buffer)) < t.size {
		t.buffer = make([]byte, 0, t.size)
	}
	buffer, noted := t.buffer[:0], false
	for _, e := range t.events {
		start := len(buffer)
		noted = noted || e.Note != nil
		buffer = appendRecord(buffer, &e)
		stored := buffer[start:len(buffer):len(buffer)]
		if err := records.Put(recordKey(e.Revision), stored); err != nil {
			return err
		}
		t.state.added(storedSum(stored))
	}
	if cap(t.buffer) > 1<<20 {
		t.buffer = nil
	}
	for _, sw := range t.swept {
		for _, revision := range sw.records {
			if err := records.Delete(recordKey(revision)); err != nil {
				return err
			}
		}
	}
	t.mapping.saw(tx, t.size+t.read+mappedAround)
	meta := tx.Bucket(metaBucket)
	if noted && !t.noted {
		if err := meta.Put(formatKey, binary.BigEndian.AppendUint32(nil, formatWithNotes)); err != nil {
			return err
		}
	}
	return meta.Put(stateKey, t.state.encode())
}
