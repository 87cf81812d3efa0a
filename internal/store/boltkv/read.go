package boltkv

import (
	"bytes"
	"context"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/boltfile"
	"github.com/anykind/anykind/internal/store/kv"
)

// A read has two steps. Under the lock it finds the revisions of the values and those values that are in memory, and
// begins a bbolt transaction. The transaction protects the other values from a concurrent compaction, and they are read
// without the lock.

// Get implements kv.Backend.
func (s *Store) Get(ctx context.Context, key string, revision int64) (kv.Record, error) {
	if err := ctx.Err(); err != nil {
		return kv.Record{}, err
	}
	s.mu.RLock()
	revision, err := s.resolve(revision)
	if err != nil {
		s.mu.RUnlock()
		return kv.Record{}, err
	}
	at := s.index.at(key, revision)
	if at == kv.Absent {
		s.mu.RUnlock()
		return kv.Record{}, kv.ErrNotFound
	}
	value, err := s.written(at)
	if err != nil {
		return kv.Record{}, err
	}
	return kv.Record{Key: key, Value: value, Revision: at}, nil
}

// written returns the value that was written at a revision, from memory or as a copy from the file. It needs mu for reading,
// and unlocks it.
func (s *Store) written(revision int64) (value []byte, err error) {
	if e, ok := s.tail.at(revision); ok {
		defer s.mu.RUnlock()
		return e.Value, nil
	}
	tx, err := s.db.Begin(false)
	s.mu.RUnlock()
	if err != nil {
		return nil, s.readError(err)
	}
	defer func() { _ = tx.Rollback() }()
	defer boltfile.RecoverDamage(s.where(revision), &err)()
	if value, err = s.readValue(tx.Bucket(recordsBucket), revision); err == nil {
		s.mapping.saw(tx, int64(len(value)))
	}
	return value, err
}

// List implements kv.Backend.
func (s *Store) List(ctx context.Context, r kv.Range) (page kv.Page, err error) {
	if err := ctx.Err(); err != nil {
		return kv.Page{}, err
	}
	s.mu.RLock()
	revision, err := s.resolve(r.Revision)
	if err != nil {
		s.mu.RUnlock()
		return kv.Page{}, err
	}
	records, more := s.index.list(r, revision)
	for i := range records {
		if e, ok := s.tail.at(records[i].Revision); ok {
			records[i].Value = e.Value
		}
	}
	tx, err := s.db.Begin(false)
	s.mu.RUnlock()
	if err != nil {
		return kv.Page{}, s.readError(err)
	}
	defer func() { _ = tx.Rollback() }()
	defer boltfile.RecoverDamage(s.space.file.Name(), &err)()
	bucket := tx.Bucket(recordsBucket)
	for i := range records {
		if i%256 == 0 && ctx.Err() != nil {
			return kv.Page{}, ctx.Err()
		}
		r := &records[i]
		if r.Value != nil {
			continue
		}
		if r.Value, err = s.readValue(bucket, r.Revision); err != nil {
			return kv.Page{}, err
		}
		s.mapping.saw(tx, int64(len(r.Value)))
	}
	return kv.Page{Records: records, Revision: revision, More: more}, nil
}

// readValue returns a copy of the value that was written at a revision.
func (s *Store) readValue(records *bolt.Bucket, revision int64) ([]byte, error) {
	r, err := s.parse(revision, records.Get(recordKey(revision)))
	if err != nil {
		return nil, err
	}
	return bytes.Clone(r.value), nil
}

// parse reads a stored record. It was there and whole when the store was opened,
// so if it is not now, that is damage.
func (s *Store) parse(revision int64, stored []byte) (record, error) {
	reason := "the record is missing"
	if stored != nil {
		var r record
		if r, reason = parseRecord(revision, stored); reason == "" {
			return r, nil
		}
	}
	return record{}, &kv.CorruptError{Where: s.where(revision), Reason: reason}
}

func (s *Store) where(revision int64) string {
	return fmt.Sprintf("%s, revision %d", s.space.file.Name(), revision)
}

// readError returns the error of a read of a store that is closed or has failed.
func (s *Store) readError(err error) error {
	s.log.Error("reading storage", "file", s.space.file.Name(), "error", err)
	return kv.ErrClosed
}
