package boltkv

import (
	"bytes"
	"context"
	"encoding/binary"
	"iter"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/boltfile"
	"github.com/anykind/anykind/internal/store/kv"
)

// batchBytes limits the values of a batch that is read from the file.
const batchBytes = 2 << 20

// Watch implements kv.Backend. It reads later events from the tail, or from the file once the tail has
// dropped them.
func (s *Store) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	return kv.WatchLog(ctx, after, func(after int64) (kv.Batch, <-chan struct{}, error) { return s.eventsAfter(prefix, after) })
}

// eventsAfter returns the next events after a revision, and a channel that is closed once there may be more.
func (s *Store) eventsAfter(prefix string, after int64) (kv.Batch, <-chan struct{}, error) {
	s.mu.RLock()
	after, err := s.resolve(after)
	if err != nil {
		s.mu.RUnlock()
		return kv.Batch{}, nil, err
	}
	if after+1 >= s.tail.first {
		defer s.mu.RUnlock()
		return kv.Select(s.tail.events[after+1-s.tail.first:], prefix, after), s.changed, nil
	}
	filed, changed := s.state.newest, s.changed
	tx, err := s.db.Begin(false)
	s.mu.RUnlock()
	if err != nil {
		return kv.Batch{}, nil, s.readError(err)
	}
	defer func() { _ = tx.Rollback() }()
	batch, err := s.replay(tx, prefix, after, filed)
	return batch, changed, err
}

// replay reads events from the file, up to a revision: later records may not be acknowledged yet.
func (s *Store) replay(tx *bolt.Tx, prefix string, after, last int64) (batch kv.Batch, err error) {
	defer boltfile.RecoverDamage(s.where(after), &err)()
	batch.Revision = after
	records := tx.Bucket(recordsBucket)
	cursor := records.Cursor()
	size := 0
	for k, v := cursor.Seek(recordKey(after + 1)); batch.Revision < min(last, after+kv.BatchEvents) && size < batchBytes; k, v = cursor.Next() {
		revision := batch.Revision + 1
		if k != nil && int64(binary.BigEndian.Uint64(k)) != revision {
			v = nil
		}
		r, err := s.parse(revision, v)
		if err != nil {
			return kv.Batch{}, err
		}
		batch.Revision = revision
		if !bytes.HasPrefix(r.key, []byte(prefix)) {
			continue
		}
		e := kv.Event{Key: string(r.key), Revision: revision, Value: bytes.Clone(r.value), PrevRevision: r.prev, Note: bytes.Clone(r.note)}
		if r.prev != kv.Absent {
			if e.Prev, err = s.readValue(records, r.prev); err != nil {
				return kv.Batch{}, err
			}
		}
		size += len(e.Value) + len(e.Prev)
		batch.Events = append(batch.Events, e)
	}
	s.mapping.saw(tx, int64(size))
	return batch, nil
}

// tail is the newest events, in memory, so that watches which keep up do not
// read the file, and the writes that are not in the file yet. There is one for each revision from first on.
type tail struct {
	first  int64
	events []kv.Event
	size   int
}

// Limits of the tail.
const (
	tailEvents = 8192
	tailBytes  = 8 << 20
)

// add appends the event of the next revision. Events up to filed are in the file.
func (t *tail) add(e kv.Event, filed int64) {
	t.events = append(t.events, e)
	t.size += e.Size()
	t.trim(filed)
}

// trim drops events that are too many, up to filed.
func (t *tail) trim(filed int64) {
	drop := 0
	for t.first+int64(drop) <= filed && drop < len(t.events) && (len(t.events)-drop > tailEvents || t.size > tailBytes) {
		t.size -= t.events[drop].Size()
		drop++
	}
	clear(t.events[:drop])
	t.events = t.events[drop:]
	t.first += int64(drop)
}

// after returns the events after a revision. None of them was dropped. The caller does not change them.
func (t *tail) after(revision int64) []kv.Event {
	return t.events[min(max(revision+1-t.first, 0), int64(len(t.events))):len(t.events):len(t.events)]
}

// at returns the event of a revision, if it is here.
func (t *tail) at(revision int64) (*kv.Event, bool) {
	i := revision - t.first
	if i < 0 || i >= int64(len(t.events)) {
		return nil, false
	}
	return &t.events[i], true
}
