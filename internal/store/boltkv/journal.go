package boltkv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/internal/store/journal"
	"github.com/anykind/anykind/internal/store/kv"
)

// journalFiles is the number of files of a journal.
const journalFiles = 2

// journalName returns the name of a file of the journal that continues a file.
func journalName(file string, i int) string { return fmt.Sprintf("%s.log%d", file, i+1) }

type journalFile interface {
	journal.File
	io.Closer
}

// A diskFile is a journalFile of the operating system.
type diskFile struct{ *os.File }

// Allocate implements journal.File.
func (f diskFile) Allocate(from, to int64) error { return allocateSpace(f.File, from, to) }

// Sync implements journal.File.
func (f diskFile) Sync() error { return syncData(f.File) }

// openJournalFile opens a file of a journal, and creates it if missing, durably.
func openJournalFile(path string) (journalFile, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return nil, errors.Join(&journal.SyncError{Err: err}, file.Close())
	}
	return diskFile{file}, nil
}

// newJournal returns a new journal and its nonce, or nil if there cannot be one now. It needs appending.
// Errors: *journal.SyncError.
func (s *Store) newJournal() (*journal.Journal, uint64, error) {
	if s.unable {
		return nil, 0, nil
	}
	for i := len(s.files); i < journalFiles; i++ {
		file, err := s.open(journalName(s.db.Path(), i))
		if err != nil {
			return nil, 0, s.withoutJournal(err)
		}
		s.files = append(s.files, file)
	}
	nonce := rand.Uint64() | 1
	j, err := journal.New(nonce, s.journalBytes, s.files[0], s.files[1])
	if err != nil {
		return nil, 0, s.withoutJournal(err)
	}
	return j, nonce, nil
}

// withoutJournal decides about an error of the creation of a journal.
func (s *Store) withoutJournal(err error) error {
	if !isFull(err) {
		s.unable = true
		s.log.Warn("storage has no journal, so each write takes longer", "file", s.db.Path(), "error", err)
	}
	return onlySync(err)
}

// leaveOneFile makes the file complete without a journal, and removes that.
func (s *Store) leaveOneFile() error {
	err := s.rest()
	if errors.Is(err, kv.ErrFull) {
		return nil // the next Open reads the journal
	}
	for i := range journalFiles {
		if removed := os.Remove(journalName(s.db.Path(), i)); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}

// readJournal visits the records that a journal has after a revision of the file. see returns the defect of a record;
// "" is none.
func readJournal(file string, nonce uint64, after int64, see func(stored) (reason string)) error {
	contents := make([]journal.Content, journalFiles)
	for i := range contents {
		name := journalName(file, i)
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return &kv.CorruptError{Where: name, Reason: "the file is missing; it has the last writes of " + filepath.Base(file)}
		}
		if err != nil {
			return err
		}
		contents[i] = journal.Content{Name: name, Data: data}
	}
	frames, err := journal.Read(nonce, after, contents...)
	if err != nil {
		return err
	}
	for _, f := range frames {
		next := f.First
		for rest := f.Content; len(rest) > 0; next++ {
			r, reason := parseFramed(next, rest)
			if reason == "" {
				reason = see(r)
			}
			if reason != "" {
				return &kv.CorruptError{Where: f.Where, Reason: reason}
			}
			rest = rest[framedHeader+r.size:]
		}
		if next != f.Last+1 {
			return &kv.CorruptError{Where: f.Where, Reason: fmt.Sprintf("the writes from %d to %d are missing", next, f.Last)}
		}
	}
	return nil
}

// parseFramed parses the first record in the content of a frame.
func parseFramed(revision int64, content []byte) (r stored, reason string) {
	if len(content) < framedHeader || len(content)-framedHeader < int(binary.BigEndian.Uint32(content)) {
		return stored{}, "the record is too short"
	}
	r.revision, r.size = revision, int(binary.BigEndian.Uint32(content))
	r.record, reason = parseRecord(revision, content[framedHeader:framedHeader+r.size])
	return r, reason
}
