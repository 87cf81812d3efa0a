package boltkv

import (
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/boltfile"
	"github.com/anykind/anykind/internal/store/kv"
)

// A filing is a transaction of the file: the writes that are in the journal and perhaps others, and a part of a
// compaction. It changes nothing in memory.
type filing struct {
	batch  *batch // writes that are not in the journal
	oldest int64  // the oldest revision to keep from now on, if greater
	budget int    // revisions to sweep, at most
	marks  bool   // it changes the mark
	mark   uint64

	*Store
	moved []kv.Event // from the journal
	size  int64      // of their records
	swept []sweep
	read  int64 // bytes of records that were read

	// As they will be.
	state  state
	noted  bool
	format uint32
}

// file does a filing, on disk and then in memory.
// Errors: kv.ErrFull, with nothing written; others, after which the store is not trustworthy.
func (s *Store) file(f filing) error {
	s.filing.Lock()
	defer s.filing.Unlock()
	f.Store, f.noted, f.format = s, s.noted, s.format
	if !f.marks {
		f.mark = s.mark.Load()
	}
	s.mu.RLock()
	f.state, f.moved, f.size = s.state, s.tail.after(s.state.newest), s.pending
	s.mu.RUnlock()
	err := s.update(f.write)
	if errors.Is(err, errNothing) {
		return nil
	}
	if err == nil {
		f.publish()
	}
	return err
}

// errNothing ends a transaction without a commit.
var errNothing = errors.New("nothing to write")

// update runs one bbolt transaction. Its error is that of fn; kv.ErrFull, with nothing written; or one
// after which the store is not trustworthy.
func (s *Store) update(fn func(*bolt.Tx) error) (err error) {
	var tx *bolt.Tx
	defer func() {
		if tx != nil && tx.DB() != nil {
			_ = tx.Rollback()
		}
	}()
	defer boltfile.RecoverDamage(s.space.file.Name(), &err)()
	if tx, err = s.db.Begin(true); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	err = s.commit(tx)
	if isFullWrite(err) {
		return fmt.Errorf("%w: %w", kv.ErrFull, err)
	}
	if err == nil {
		err = s.db.View(func(tx *bolt.Tx) error { s.space.used.Store(tx.Size()); return nil })
	}
	return err
}

// write writes everything to the file, without a commit.
func (f *filing) write(tx *bolt.Tx) error {
	records, meta := tx.Bucket(recordsBucket), tx.Bucket(metaBucket)
	if err := f.sweep(records); err != nil {
		return err
	}
	groups, size, frees := [][]kv.Event{f.moved}, f.size, true // what is in the journal had room
	if f.batch != nil {
		groups, size, frees = append(groups, f.batch.events), size+f.batch.size, f.batch.frees
	}
	remark := f.mark != f.Store.mark.Load()
	if size == 0 && len(f.swept) == 0 && f.oldest <= f.state.oldest && !remark {
		return errNothing
	}
	if err := f.makeRoom(tx.Size(), size, frees); err != nil {
		return err
	}
	// Records are appended, so pages need no free space inside.
	records.FillPercent = 0.9
	buffer := f.stored[:0]
	if int64(cap(buffer)) < size {
		buffer = make([]byte, 0, size)
	}
	for _, events := range groups {
		for i := range events {
			start := len(buffer)
			buffer = appendRecord(buffer, &events[i])
			if err := f.put(records, &events[i], buffer[start:len(buffer):len(buffer)]); err != nil {
				return err
			}
		}
	}
	if f.stored = buffer; cap(buffer) > 1<<20 {
		f.stored = nil
	}
	for _, sw := range f.swept {
		for _, revision := range sw.records {
			if err := records.Delete(recordKey(revision)); err != nil {
				return err
			}
		}
	}
	f.state.oldest = max(f.state.oldest, f.oldest)
	f.mapping.saw(tx, size+f.read+mappedAround)
	if remark {
		if err := setMark(meta, f.mark); err != nil {
			return err
		}
	}
	if err := f.setFormat(meta); err != nil {
		return err
	}
	return meta.Put(stateKey, f.state.encode())
}

// put writes one record.
func (f *filing) put(records *bolt.Bucket, e *kv.Event, stored []byte) error {
	f.state.newest = e.Revision
	f.state.added(storedSum(stored))
	f.noted = f.noted || e.Note != nil
	return records.Put(recordKey(e.Revision), stored)
}

// setMark sets the mark of a file that a journal continues, or removes it.
func setMark(meta *bolt.Bucket, mark uint64) error {
	if mark == 0 {
		return meta.Delete(markKey)
	}
	return meta.Put(markKey, binary.BigEndian.AppendUint64(nil, mark))
}

// setFormat sets the oldest format that describes the file.
func (f *filing) setFormat(meta *bolt.Bucket) error {
	switch {
	case f.mark != 0:
		f.format = formatWithJournal
	case f.noted:
		f.format = formatWithNotes
	default:
		f.format = formatWithoutNotes
	}
	if f.format == f.Store.format {
		return nil
	}
	return meta.Put(formatKey, binary.BigEndian.AppendUint32(nil, f.format))
}

// publish makes the result of a filing visible.
func (f *filing) publish() {
	s := f.Store
	if f.marks {
		s.mark.Store(f.mark)
	}
	s.noted, s.format = f.noted, f.format
	s.space.saw(f.moved, f.batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sw := range f.swept {
		s.index.forget(sw.key, sw.revision)
	}
	s.state = f.state
	s.pending -= f.size
	if f.batch != nil {
		s.show(f.batch.events)
	}
	s.tail.trim(s.state.newest)
}
