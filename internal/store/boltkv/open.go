package boltkv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/anykind/anykind/internal/store/boltfile"
	"github.com/anykind/anykind/internal/store/kv"
)

// FileName is the name of the file in the data directory.
const FileName = "anykind.db"

// Open opens the store in a data directory, and creates both if missing. If it fails, an existing
// store is unchanged.
// Errors: ErrInUse, ErrNotWritable, *FormatError, *kv.CorruptError, and those of the operating system.
func Open(dir string, options Options) (*Store, error) {
	s, err := open(dir, options)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		err = fmt.Errorf("%w: %w", ErrNotWritable, err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening storage in %s: %w", dir, err)
	}
	if options.prepare != nil {
		options.prepare(s)
	}
	go s.settle()
	go s.run()
	return s, nil
}

func open(dir string, options Options) (*Store, error) {
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, FileName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := create(dir, path, func(db *bolt.DB) error { return db.Update(initialize) }); err != nil {
			return nil, err
		}
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	s, err := openFile(file, options)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return s, nil
}

func openFile(file *os.File, options Options) (*Store, error) {
	if err := lockFile(file); err != nil {
		return nil, err
	}
	l, err := loadFile(file)
	if err != nil {
		return nil, err
	}
	db, err := openBolt(file, false)
	if err != nil {
		return nil, err
	}
	s := &Store{
		options: options,
		log:     options.Logger,
		db:      db,
		queue:   queue{wake: newSignal()},
		settler: settler{wake: newSignal(), done: make(chan struct{})},
		newest:  l.state.newest,
		state:   l.state,
		pending: l.pending,
		index:   l.index,
		tail:    tail{first: l.state.newest + 1},
		changed: make(chan struct{}),
		space:   space{file: file, recent: l.recent},
		done:    make(chan struct{}),
		noted:   l.noted,
		format:  l.format,
		commit:  (*bolt.Tx).Commit,
		open:    openJournalFile,

		journalBytes: journalBytes,
	}
	s.mark.Store(l.mark)
	s.allocate = func(from, to int64) error { return allocateSpace(s.space.file, from, to) }
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.options.MaxValueBytes == 0 {
		s.options.MaxValueBytes = kv.DefaultMaxValueBytes
	}
	if err := s.recover(l.events); err != nil {
		_ = db.Close()
		return nil, err
	}
	if err := s.prepareSpace(); err != nil {
		_ = db.Close()
		return nil, err
	}
	return s, nil
}

// recover takes over the writes that only the journal has. It syncs them first: the process that wrote them may have
// ended before that.
func (s *Store) recover(events []kv.Event) error {
	if s.mark.Load() == 0 {
		return nil
	}
	for i := range journalFiles {
		file, err := os.OpenFile(journalName(s.db.Path(), i), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return err
		}
	}
	for _, e := range events {
		if e.PrevRevision != kv.Absent {
			var err error
			s.mu.RLock()
			if e.Prev, err = s.written(e.PrevRevision); err != nil {
				return err
			}
		}
		s.tail.add(e, s.state.newest)
		s.newest = e.Revision
	}
	return nil
}

// prepareSpace allocates the reserve, or continues without it if there is no space.
func (s *Store) prepareSpace() error {
	return s.db.View(func(tx *bolt.Tx) error {
		s.space.allocated = tx.Size()
		s.space.used.Store(tx.Size())
		return onlySync(s.extend(tx.Size() + reserve))
	})
}

// loadFile reads and checks a whole file.
func loadFile(file *os.File) (l *loaded, err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, &kv.CorruptError{Where: file.Name(), Reason: "the file is empty"}
	}
	data, unmap, err := boltfile.Map(file, info.Size())
	if err != nil {
		return nil, err
	}
	defer unmap()
	defer boltfile.RecoverDamage(file.Name(), &err)()
	f, err := boltfile.Mapped(file.Name(), data)
	if err != nil {
		return nil, err
	}
	return load(f)
}

// openBolt passes a locked file to bbolt, which will close it.
func openBolt(file *os.File, create bool) (db *bolt.DB, err error) {
	defer boltfile.RecoverDamage(file.Name(), &err)()
	options := &bolt.Options{
		// The lock is ours already, or there is no waiting for it.
		Timeout: time.Millisecond,
		// Each open finds the free pages anew. Stored with every transaction, their list would be most
		// of the written bytes of a large file.
		NoFreelistSync: true,
		FreelistType:   bolt.FreelistMapType,
		// The committer makes the file grow.
		NoGrowSync:      true,
		InitialMmapSize: initialMap,
		NoSync:          create,
		OpenFile:        func(string, int, os.FileMode) (*os.File, error) { return file, nil },
	}
	db, err = bolt.Open(file.Name(), 0o600, options)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, ErrInUse
	}
	return db, err
}

// makeDir creates the data directory durably.
func makeDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// create creates a store under a temporary name, and renames it once its content is on disk. So a crash
// leaves a complete file or none.
func create(dir, path string, fill func(*bolt.DB) error) error {
	file, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := lockFile(file); err != nil {
		return err
	}
	// Another process may have created it meanwhile, and this may even be its file.
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	db, err := openBolt(file, true)
	if err != nil {
		return err
	}
	if err := fill(db); err != nil {
		return errors.Join(err, db.Close())
	}
	return errors.Join(publish(dir, path, file), db.Close())
}

// publish renames a finished file, durably.
func publish(dir, path string, file *os.File) error {
	if err := file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// initialize writes the content of an empty store.
func initialize(tx *bolt.Tx) error {
	if _, err := tx.CreateBucket(recordsBucket); err != nil {
		return err
	}
	meta, err := tx.CreateBucket(metaBucket)
	if err != nil {
		return err
	}
	if err := meta.Put(formatKey, binary.BigEndian.AppendUint32(nil, formatWithoutNotes)); err != nil {
		return err
	}
	return meta.Put(stateKey, state{newest: 1, oldest: 1, swept: 1}.encode())
}
