package boltkv

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

// A heldFile calls a function before each operation of a file. An error of the function fails the operation.
type heldFile struct {
	journalFile
	sync, allocate func() error
}

func (f *heldFile) Sync() error { return errors.Join(f.sync(), f.journalFile.Sync()) }

func (f *heldFile) Allocate(from, to int64) error {
	if err := f.allocate(); err != nil {
		return err
	}
	return f.journalFile.Allocate(from, to)
}

// openBusy opens a store that uses its journal. Its operations fail on demand.
func openBusy(t *testing.T, dir string) (s *Store, sync, allocate *atomic.Pointer[func() error], fatal chan error) {
	t.Helper()
	sync, allocate, fatal = new(atomic.Pointer[func() error]), new(atomic.Pointer[func() error]), make(chan error, 1)
	call := func(p *atomic.Pointer[func() error]) func() error {
		return func() error {
			if fn := p.Load(); fn != nil {
				return (*fn)()
			}
			return nil
		}
	}
	s, err := Open(dir, Options{Fatal: func(err error) { fatal <- err }, prepare: func(s *Store) {
		s.open = func(path string) (journalFile, error) {
			file, err := openJournalFile(path)
			return &heldFile{file, call(sync), call(allocate)}, err
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for i := 0; !s.busy(); i++ {
		mustCommit(t, s, kv.Write{Key: fmt.Sprint("/busy/", i), Value: []byte("v")})
	}
	return s, sync, allocate, fatal
}

func (s *Store) busy() bool {
	s.appending.Lock()
	defer s.appending.Unlock()
	return s.journal != nil
}

// TestJournalSyncThatFails ends the store: the state of the disk is unknown.
func TestJournalSyncThatFails(t *testing.T) {
	dir := t.TempDir()
	s, sync, _, fatal := openBusy(t, dir)
	r := mustCommit(t, s, kv.Write{Key: "/a", Value: []byte("1")})
	fails := func() error { return syscall.ENOSPC }
	sync.Store(&fails)
	if _, err := s.Commit(t.Context(), kv.Write{Key: "/a", Value: []byte("2"), Expect: r}); !errors.Is(err, kv.ErrUncertain) {
		t.Errorf("the write: %v", err)
	}
	if err := <-fatal; !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("fatal was called with %v", err)
	}
	if err := s.Compact(t.Context(), r); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("a compaction after it: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	again, _ := openOnDisk(t, dir)
	if got, err := again.Get(t.Context(), "/a", kv.Latest); err != nil || got.Revision < r {
		t.Errorf("the next start finds %+v, %v", got, err)
	}
}

// TestNothingIsSeenBeforeItsSync stops the disk in a sync of the journal.
func TestNothingIsSeenBeforeItsSync(t *testing.T) {
	s, sync, _, _ := openBusy(t, t.TempDir())
	r := mustCommit(t, s, kv.Write{Key: "/a", Value: []byte("1")})
	reached, goOn := make(chan struct{}), make(chan struct{})
	hold := func() error {
		sync.Store(nil)
		close(reached)
		<-goOn
		return nil
	}
	sync.Store(&hold)
	done := make(chan int64)
	go func() {
		r, _ := s.Commit(t.Context(), kv.Write{Key: "/a", Value: []byte("2"), Expect: r})
		done <- r
	}()
	<-reached
	expectNewest(t, s, r)
	select {
	case <-done:
		t.Error("the write was acknowledged")
	default:
	}
	close(goOn)
	if got := <-done; got != r+1 {
		t.Errorf("the write happened at %d, want %d", got, r+1)
	}
}

// TestJournalWithoutSpace files each group at once while the journal cannot grow.
func TestJournalWithoutSpace(t *testing.T) {
	s, _, allocate, fatal := openBusy(t, t.TempDir())
	full := func() error { return syscall.ENOSPC }
	allocate.Store(&full)
	value := bytes.Repeat([]byte("v"), 100<<10)
	at := map[string]int64{}
	for i := range 40 {
		key := fmt.Sprint("/", i)
		at[key] = mustCommit(t, s, kv.Write{Key: key, Value: value})
	}
	for key, r := range at {
		if got, err := s.Get(t.Context(), key, kv.Latest); err != nil || got.Revision != r || len(got.Value) != len(value) {
			t.Errorf("%s is %d, %v; want %d", key, got.Revision, err, r)
		}
	}
	if len(fatal) > 0 {
		t.Error(<-fatal)
	}
}

// crashed returns a directory as a kill leaves it, with some writes that only the journal has.
func crashed(t *testing.T) (dir string, at map[string]int64) {
	t.Helper()
	from := t.TempDir()
	s, _, _, _ := openBusy(t, from)
	at = map[string]int64{}
	for i := range 50 {
		key := fmt.Sprint("/", i)
		at[key] = mustCommit(t, s, kv.Write{Key: key, Value: []byte(key)})
	}
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return dir, at
}

// TestMappedAfterACrash reads the file and its journal.
func TestMappedAfterACrash(t *testing.T) {
	dir, at := crashed(t)
	m, err := Mapped(filepath.Join(dir, FileName), "/")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	found := 0
	for _, r := range m.Records {
		if at[r.Key] == r.Revision && string(r.Value) == r.Key {
			found++
		}
	}
	if found != len(at) {
		t.Errorf("%d of %d writes were found in %d records", found, len(at), len(m.Records))
	}
}

// TestFileWithoutItsJournal refuses a file of which a part is missing, with the name of that.
func TestFileWithoutItsJournal(t *testing.T) {
	dir, _ := crashed(t)
	missing := journalName(filepath.Join(dir, FileName), 1)
	if err := os.Remove(missing); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	var corrupt *kv.CorruptError
	if _, err := Open(dir, Options{}); !errors.As(err, &corrupt) || corrupt.Where != missing || !strings.Contains(corrupt.Reason, FileName) {
		t.Errorf("open: %v", err)
	}
	if _, err := Mapped(filepath.Join(dir, FileName), "/"); !errors.As(err, &corrupt) {
		t.Errorf("mapped: %v", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, FileName)); err != nil || !bytes.Equal(before, after) {
		t.Errorf("refused, but changed, %v", err)
	}
}

// TestRest has a store without a write for some time: the file needs no journal then, and the next busy time has another one.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s, _, _, _ := openBusy(t, dir)
		path := filepath.Join(dir, FileName)
		for range 2 {
			if s.mark.Load() == 0 {
				t.Error("a busy store has no mark")
			}
			mustCommit(t, s, kv.Write{Key: fmt.Sprint("/", time.Now().UnixNano()), Value: []byte("v")})
			time.Sleep(3 * settleAfter)
			synctest.Wait()
			if s.busy() || s.mark.Load() != 0 {
				t.Error("a store at rest needs its journal")
			}
			alone := filepath.Join(t.TempDir(), FileName)
			data, err := os.ReadFile(path)
			if err := errors.Join(err, os.WriteFile(alone, data, 0o600)); err != nil {
				t.Fatal(err)
			}
			m, err := Mapped(alone, "/")
			if err != nil || m.Revision != s.newest {
				t.Fatalf("the file alone: %v", err)
			}
			m.Release()
			for i := 0; !s.busy(); i++ {
				mustCommit(t, s, kv.Write{Key: fmt.Sprint("/again/", time.Now().UnixNano(), i), Value: []byte("v")})
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(journalName(path, 0)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a closed store has a journal: %v", err)
		}
	})
}
