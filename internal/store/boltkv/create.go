package boltkv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/kv"
)

// ErrExists means that a data directory has a store already.
var ErrExists = errors.New("data directory has a store")

// createPage is the number of records in a transaction of Create.
const createPage = 1000

// Create creates a store in a data directory, with the content of a state and without its past. Records keep
// their revisions, but of several with one revision all but the first get newer ones. After an error or a
// crash there is no store.
// Errors: ErrExists, ErrInUse, those of the state and of the operating system.
func Create(ctx context.Context, dir string, s kv.State) error {
	if err := makeDir(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, FileName)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(ErrExists, err)
	}
	made := false
	err := create(dir, path, func(db *bolt.DB) error {
		made = true
		return fill(ctx, db, s)
	})
	switch {
	case err != nil:
		return fmt.Errorf("creating storage in %s: %w", dir, err)
	case !made: // by another process meanwhile
		return ErrExists
	}
	return nil
}

// fill writes the content of a state into an empty file.
func fill(ctx context.Context, db *bolt.DB, s kv.State) error {
	if err := db.Update(initialize); err != nil {
		return err
	}
	has := state{newest: s.Revision()}
	r := kv.Range{Limit: createPage}
	for more := true; more; {
		page, err := s.List(ctx, r)
		if err != nil {
			return err
		}
		if more = page.More; more {
			r.After = page.Records[len(page.Records)-1].Key
		}
		if err := db.Update(func(tx *bolt.Tx) error { return has.put(tx, page.Records) }); err != nil {
			return err
		}
	}
	has.oldest, has.swept = has.newest, has.newest
	return db.Update(func(tx *bolt.Tx) error { return tx.Bucket(metaBucket).Put(stateKey, has.encode()) })
}

// put writes records without a past, and accounts for them.
func (s *state) put(tx *bolt.Tx, all []kv.Record) error {
	records := tx.Bucket(recordsBucket)
	for _, r := range all {
		if records.Get(recordKey(r.Revision)) != nil {
			s.newest++
			r.Revision = s.newest
		}
		stored := appendRecord(nil, &kv.Event{Key: r.Key, Value: r.Value, Revision: r.Revision})
		if err := records.Put(recordKey(r.Revision), stored); err != nil {
			return err
		}
		s.added(storedSum(stored))
	}
	return nil
}
