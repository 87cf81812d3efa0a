package history

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/anykind/anykind/internal/store/boltfile"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/transform"
)

// FileName is the name of the file in the data directory.
const FileName = "history.db"

// The buckets of the file. An id is the number of a key, eight bytes like a revision.
var (
	metaBucket = []byte("anykind-history")
	keysBucket = []byte("keys")  // key → id
	nameBucket = []byte("names") // id → key
	runsBucket = []byte("runs")  // id, revision of the first version → run
	logBucket  = []byte("log")   // revision of the first event → block of events
	stateKey   = []byte("state")
)

// format is the version of the format. A file of a higher version is rejected.
const format = 1

// A state describes the content of the file.
type state struct {
	oldest   int64 // the oldest kept revision
	archived int64 // all events up to here are in the file
	trimmed  int64 // events up to here, and what only older states need, are removed
	time     int64 // of the last event
	began    int64 // the time of the oldest kept state
	ids      int64 // the last id
	// The last event: its key, and the checksum of its value.
	key []byte
	sum uint32
}

func (s *state) encode() []byte {
	out := []byte{format}
	for _, n := range []int64{s.oldest, s.archived, s.trimmed, s.time, s.began, s.ids, int64(s.sum)} {
		out = binary.AppendVarint(out, n)
	}
	return summed(stateKey, append(out, s.key...))
}

// A file is the bbolt file of a history.
type file struct {
	db    *bolt.DB
	path  string
	seal  transform.Transformer
	cache cache
	// commit is (*bolt.Tx).Commit, unless a test replaces it.
	commit func(*bolt.Tx) error
	// broken is the error of an fsync. The content of the file is unknown after it until a restart.
	broken error
}

func (f *file) close() error { return f.db.Close() }

// size returns the size of the file.
func (f *file) size() (size int64) {
	_ = f.db.View(func(tx *bolt.Tx) error { size = tx.Size(); return nil })
	return size
}

// damage returns the error for bytes in the file that are not as they were written.
func (f *file) damage(revision int64, reason string) error {
	return &kv.CorruptError{Where: fmt.Sprintf("%s, revision %d", f.path, revision), Reason: reason}
}

// recover turns a panic of bbolt on damaged pages into an error.
func (f *file) recover(err *error) func() { return boltfile.RecoverDamage(f.path, err) }

// view reads the file.
func (f *file) view(ctx context.Context, read func(*reading) error) (err error) {
	defer f.recover(&err)()
	err = f.db.View(func(tx *bolt.Tx) error {
		r, err := f.reading(ctx, tx)
		if err != nil {
			return err
		}
		return read(r)
	})
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return kv.ErrClosed
	}
	return err
}

// update changes the file. Its changes are on disk when it returns. Calls are not concurrent.
func (f *file) update(ctx context.Context, change func(*reading) error) (err error) {
	if f.broken != nil {
		return f.broken
	}
	var tx *bolt.Tx
	defer func() {
		if tx != nil && tx.DB() != nil {
			_ = tx.Rollback()
		}
	}()
	defer f.recover(&err)()
	if tx, err = f.db.Begin(true); errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return kv.ErrClosed
	} else if err != nil {
		return err
	}
	r, err := f.reading(ctx, tx)
	if err != nil {
		return err
	}
	if err := change(r); err != nil {
		return err
	}
	if err := tx.Bucket(metaBucket).Put(stateKey, r.state.encode()); err != nil {
		return err
	}
	err = f.commit(tx)
	// A failed write of bbolt is an error of os.File, and leaves the file as it was. A failed fsync is a bare error number.
	if write := (*fs.PathError)(nil); err != nil && !errors.As(err, &write) {
		f.broken = fmt.Errorf("the outcome of a write to %s is unknown, and the history stands still until a restart: %w", f.path, err)
		return f.broken
	}
	return err
}

// A reading is a transaction on the file.
type reading struct {
	*file
	ctx                    context.Context
	state                  state
	keys, names, runs, log *bolt.Bucket
}

func (f *file) reading(ctx context.Context, tx *bolt.Tx) (*reading, error) {
	r := &reading{file: f, ctx: ctx, keys: tx.Bucket(keysBucket), names: tx.Bucket(nameBucket), runs: tx.Bucket(runsBucket), log: tx.Bucket(logBucket)}
	return r, r.load(tx.Bucket(metaBucket))
}

// load reads the state.
func (r *reading) load(meta *bolt.Bucket) error {
	data, ok := unsummed(stateKey, meta.Get(stateKey))
	if !ok || len(data) == 0 {
		return r.damage(0, "the state of the history does not match its checksum")
	}
	if data[0] > format {
		return fmt.Errorf("%s has format %d, this version reads formats up to %d: use a newer version", r.path, data[0], format)
	}
	in, s := reader{rest: data[1:]}, &r.state
	var sum int64
	for _, n := range []*int64{&s.oldest, &s.archived, &s.trimmed, &s.time, &s.began, &s.ids, &sum} {
		*n = in.varint()
	}
	if in.err != nil {
		return r.damage(0, "the state of the history makes no sense")
	}
	s.sum, s.key = uint32(sum), append([]byte{}, in.rest...)
	return nil
}

// open opens the file of a backend. It begins a new one if there is none, or if it does not fit.
func open(ctx context.Context, below kv.Backend, dir string, o Options) (*file, state, error) {
	path := filepath.Join(dir, FileName)
	f, err := openFile(path, o)
	if err != nil {
		return nil, state{}, err
	}
	now, reason, err := f.check(ctx, below)
	switch {
	case err != nil:
		return nil, state{}, errors.Join(err, f.close())
	case now != nil && reason == "":
		return f, *now, nil
	case now != nil:
		aside := filepath.Join(dir, fmt.Sprintf("history-until-%d.db", now.archived))
		o.Logger.Warn("a new history begins: the old one does not fit to the store", "reason", reason, "old", aside)
		if err := errors.Join(f.close(), os.Rename(path, aside)); err != nil {
			return nil, state{}, err
		}
		if f, err = openFile(path, o); err != nil {
			return nil, state{}, err
		}
	}
	if now, err = begin(ctx, below, o.Now()); err == nil {
		err = f.begin(now)
	}
	if err != nil {
		return nil, state{}, errors.Join(err, f.close())
	}
	return f, *now, nil
}

// check returns the state of the file, nil if it is new, and the reason for which it does not fit to the backend.
func (f *file) check(ctx context.Context, below kv.Backend) (now *state, reason string, err error) {
	defer f.recover(&err)()
	isNew := false
	err = f.db.View(func(tx *bolt.Tx) error {
		isNew = tx.Bucket(metaBucket) == nil
		return nil
	})
	if err != nil || isNew {
		return nil, "", err
	}
	err = f.view(ctx, func(r *reading) error {
		now = &r.state
		reason, err = misfit(ctx, below, now)
		return err
	})
	return now, reason, err
}

func openFile(path string, o Options) (f *file, err error) {
	f = &file{path: path, seal: o.Seal, commit: (*bolt.Tx).Commit}
	defer f.recover(&err)()
	f.db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType, NoSync: o.fast})
	if err != nil {
		return nil, fmt.Errorf("opening the history %s: %w; move the file away to begin a new history", path, err)
	}
	return f, nil
}

// misfit returns the reason for which a file does not fit to the backend, or "".
func misfit(ctx context.Context, below kv.Backend, now *state) (reason string, err error) {
	record, err := below.Get(ctx, cmp.Or(string(now.key), "/"), now.archived)
	var future *kv.FutureError
	var compacted *kv.CompactedError
	switch {
	case errors.As(err, &future):
		return fmt.Sprintf("the store ends at revision %d, before the history: it was restored from a backup", future.Newest), nil
	case errors.As(err, &compacted):
		return fmt.Sprintf("the store keeps states from revision %d on, after the history: it was served without it", compacted.Oldest), nil
	case err != nil && !errors.Is(err, kv.ErrNotFound):
		return "", err
	case sumOf(record.Value) != now.sum:
		return "the store has another write at the last revision of the history: it was restored from a backup", nil
	}
	return "", nil
}

// sumOf returns a checksum of a value, or of its absence.
func sumOf(value []byte) uint32 { return crc32.Checksum(value, castagnoli) }

// oldestOf returns the oldest revision that a backend keeps.
func oldestOf(ctx context.Context, below kv.Backend) (int64, error) {
	_, err := below.Get(ctx, "/", 1)
	var compacted *kv.CompactedError
	switch {
	case errors.As(err, &compacted):
		return compacted.Oldest, nil
	case err != nil && !errors.Is(err, kv.ErrNotFound):
		return 0, err
	}
	return 1, nil
}

// begin returns the state of a new history. It begins with the oldest state of the backend.
func begin(ctx context.Context, below kv.Backend, now time.Time) (*state, error) {
	oldest, err := oldestOf(ctx, below)
	if err != nil {
		return nil, err
	}
	at := now.UnixMilli()
	return &state{oldest: oldest, archived: oldest, trimmed: oldest, time: at, began: at}, nil
}

// begin writes the state of a new history.
func (f *file) begin(now *state) (err error) {
	defer f.recover(&err)()
	return f.db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{keysBucket, nameBucket, runsBucket, logBucket} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		meta, err := tx.CreateBucketIfNotExists(metaBucket)
		if err != nil {
			return err
		}
		return meta.Put(stateKey, now.encode())
	})
}
