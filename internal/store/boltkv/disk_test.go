package boltkv

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/journal"
	"github.com/anykind/anykind/internal/store/kv"
)

// The disk of these tests fails on demand.
type disk struct {
	commit   atomic.Pointer[error]
	allocate atomic.Pointer[error]
	during   atomic.Pointer[func()] // is called before each commit
	fatal    chan error
}

func openOnDisk(t *testing.T, dir string) (*Store, *disk) {
	t.Helper()
	d := &disk{fatal: make(chan error, 10)}
	s, err := Open(dir, Options{
		Fatal:   func(err error) { d.fatal <- err },
		prepare: d.connect,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, d
}

func (d *disk) connect(s *Store) {
	allocate := s.allocate
	s.allocate = func(from, to int64) error {
		if err := d.allocate.Load(); err != nil {
			return *err
		}
		return allocate(from, to)
	}
	s.commit = func(tx *bolt.Tx) error {
		if during := d.during.Load(); during != nil {
			(*during)()
		}
		if err := d.commit.Load(); err != nil {
			return errors.Join(*err, tx.Rollback())
		}
		return tx.Commit()
	}
}

func fails(to *atomic.Pointer[error], err error) { to.Store(&err) }

func mustCommit(t *testing.T, s *Store, w kv.Write) int64 {
	t.Helper()
	r, err := s.Commit(t.Context(), w)
	if err != nil {
		t.Fatalf("commit %q: %v", w.Key, err)
	}
	return r
}

// noSpace is the error of a write to a full disk.
var noSpace = &fs.PathError{Op: "write", Path: FileName, Err: syscall.ENOSPC}

func TestWriteThatFindsNoSpace(t *testing.T) {
	dir := t.TempDir()
	s, d := openOnDisk(t, dir)
	r := mustCommit(t, s, kv.Write{Key: "/a", Value: []byte("1")})
	fails(&d.commit, noSpace)
	for range 3 {
		if _, err := s.Commit(t.Context(), kv.Write{Key: "/a", Value: []byte("2"), Expect: r}); !errors.Is(err, kv.ErrFull) {
			t.Errorf("got error %v, want %v", err, kv.ErrFull)
		}
		if _, err := s.Commit(t.Context(), kv.Write{Key: "/a", Expect: r}); !errors.Is(err, kv.ErrFull) {
			t.Errorf("a deletion for which there is really no space: %v, want %v", err, kv.ErrFull)
		}
		if err := s.Compact(t.Context(), r); !errors.Is(err, kv.ErrFull) {
			t.Errorf("compact: %v, want %v", err, kv.ErrFull)
		}
		if got, err := s.Get(t.Context(), "/a", kv.Latest); err != nil || got.Revision != r {
			t.Errorf("reading goes on: %+v, %v", got, err)
		}
		if now, err := s.Revision(t.Context()); err != nil || now != r {
			t.Errorf("revision %d, %v; want %d", now, err, r)
		}
	}
	d.commit.Store(nil)
	if next := mustCommit(t, s, kv.Write{Key: "/a", Value: []byte("3"), Expect: r}); next != r+1 {
		t.Errorf("after the failed writes comes revision %d, want %d", next, r+1)
	}
	if len(d.fatal) != 0 {
		t.Errorf("fatal: %v", <-d.fatal)
	}
}

// TestGroupThatFindsNoSpace has writes of one transaction depend on each other.
func TestGroupThatFindsNoSpace(t *testing.T) {
	s, d := openOnDisk(t, t.TempDir())
	s.unable = true // to have a journal: the group is one transaction
	a := mustCommit(t, s, kv.Write{Key: "/a", Value: []byte("1")})
	b := mustCommit(t, s, kv.Write{Key: "/b", Value: []byte("1")})
	reached, goOn := make(chan struct{}), make(chan struct{})
	hold := func() {
		d.during.Store(nil)
		close(reached)
		<-goOn
		s.space.allocated = 0 // the reserve is used up, as far as the store knows
		fails(&d.allocate, syscall.ENOSPC)
	}
	d.during.Store(&hold)
	go func() { _, _ = s.Commit(t.Context(), kv.Write{Key: "/hold", Value: []byte("v")}) }()
	<-reached
	var requests []*request
	for _, w := range []kv.Write{
		{Key: "/a", Value: []byte("2"), Expect: a},
		{Key: "/a", Expect: a}, // would conflict if that one had space
		{Key: "/b", Expect: b},
		{Key: "/b", Expect: b},
		{Key: "/c", Value: []byte("new")},
	} {
		r, _ := s.queue.add(w)
		requests = append(requests, r)
	}
	close(goOn)
	var conflict *kv.ConflictError
	for i, want := range []func(*request) bool{
		func(r *request) bool { return errors.Is(r.err, kv.ErrFull) },
		func(r *request) bool { return r.err == nil && r.revision == b+2 },
		func(r *request) bool { return r.err == nil && r.revision == b+3 },
		func(r *request) bool { return errors.As(r.err, &conflict) && conflict.Actual.Revision == kv.Absent },
		func(r *request) bool { return errors.Is(r.err, kv.ErrFull) },
	} {
		<-requests[i].done
		if !want(requests[i]) {
			t.Errorf("write %d of the group: revision %d, error %v", i, requests[i].revision, requests[i].err)
		}
	}
}

// TestReserveIsForDeletions has a disk that becomes full.
func TestReserveIsForDeletions(t *testing.T) {
	s, d := openOnDisk(t, t.TempDir())
	at := map[string]int64{}
	for i := 0; ; i++ {
		if i == 500 {
			fails(&d.allocate, syscall.ENOSPC)
		}
		key := fmt.Sprintf("/%d", i)
		r, err := s.Commit(t.Context(), kv.Write{Key: key, Value: make([]byte, 2000)})
		if i > 500 && errors.Is(err, kv.ErrFull) {
			break
		}
		if err != nil || i > 5000 {
			t.Fatalf("write %d: %v", i, err)
		}
		at[key] = r
	}
	for key, r := range at {
		mustCommit(t, s, kv.Write{Key: key, Expect: r})
	}
	if _, err := s.Commit(t.Context(), kv.Write{Key: "/again", Value: []byte("v")}); !errors.Is(err, kv.ErrFull) {
		t.Errorf("the reserve was used for something else: %v", err)
	}
	d.allocate.Store(nil)
	mustCommit(t, s, kv.Write{Key: "/again", Value: []byte("v")})
}

// TestFsyncThatFails tests the one error that a store does not survive: the state of the disk is
// unknown after it.
func TestFsyncThatFails(t *testing.T) {
	for name, err := range map[string]error{
		"fdatasync":               syscall.EIO,
		"fdatasync for no space":  syscall.ENOSPC,
		"write for another cause": &fs.PathError{Op: "write", Path: FileName, Err: syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, d := openOnDisk(t, dir)
			r := mustCommit(t, s, kv.Write{Key: "/a", Value: []byte("1")})
			fails(&d.commit, err)
			if _, err := s.Commit(t.Context(), kv.Write{Key: "/a", Value: []byte("2"), Expect: r}); !errors.Is(err, kv.ErrUncertain) {
				t.Errorf("the write: %v, want %v", err, kv.ErrUncertain)
			}
			if got := <-d.fatal; !errors.Is(got, err) {
				t.Errorf("fatal was called with %v, want %v", got, err)
			}
			d.commit.Store(nil)
			if _, err := s.Commit(t.Context(), kv.Write{Key: "/b", Value: []byte("2")}); !errors.Is(err, kv.ErrClosed) {
				t.Errorf("a write after it: %v, want %v", err, kv.ErrClosed)
			}
			if _, err := s.Get(t.Context(), "/a", kv.Latest); !errors.Is(err, kv.ErrClosed) {
				t.Errorf("a read after it: %v, want %v", err, kv.ErrClosed)
			}
			for _, err := range s.Watch(t.Context(), "/", r) {
				if !errors.Is(err, kv.ErrClosed) {
					t.Errorf("a watch after it: %v, want %v", err, kv.ErrClosed)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			again, _ := openOnDisk(t, dir)
			if got, err := again.Get(t.Context(), "/a", kv.Latest); err != nil || got.Revision < r {
				t.Errorf("the next start finds %+v, %v", got, err)
			}
			if len(d.fatal) != 0 {
				t.Errorf("fatal was called again: %v", <-d.fatal)
			}
		})
	}
}

func TestFsyncOfTheReserveThatFails(t *testing.T) {
	s, d := openOnDisk(t, t.TempDir())
	fails(&d.allocate, &journal.SyncError{Err: syscall.EIO})
	s.space.allocated = 0
	if _, err := s.Commit(t.Context(), kv.Write{Key: "/a", Value: []byte("v")}); !errors.Is(err, kv.ErrUncertain) {
		t.Errorf("the write: %v, want %v", err, kv.ErrUncertain)
	}
	if err := <-d.fatal; !errors.Is(err, syscall.EIO) {
		t.Errorf("fatal was called with %v", err)
	}
}

// expectNewest reads the newest write in every way but a watch. Its key is /a, the first one.
func expectNewest(t *testing.T, s *Store, r int64) {
	t.Helper()
	if got, err := s.Get(t.Context(), "/a", kv.Latest); err != nil || got.Revision != r {
		t.Errorf("get sees %+v, %v", got, err)
	}
	if page, err := s.List(t.Context(), kv.Range{}); err != nil || page.Revision != r || page.Records[0].Revision != r {
		t.Errorf("list sees %+v, %v", page, err)
	}
	if now, err := s.Revision(t.Context()); err != nil || now != r {
		t.Errorf("revision says %d, %v", now, err)
	}
}

// TestNothingIsSeenBeforeItIsDurable stops the disk in the middle of a commit.
func TestNothingIsSeenBeforeItIsDurable(t *testing.T) {
	s, _ := openOnDisk(t, t.TempDir())
	r := mustCommit(t, s, kv.Write{Key: "/a", Value: []byte("1")})
	reached, goOn := make(chan struct{}), make(chan struct{})
	s.commit = func(tx *bolt.Tx) error {
		// On disk, but the commit has not returned yet.
		err := tx.Commit()
		close(reached)
		<-goOn
		return err
	}
	done := make(chan int64)
	go func() {
		r, _ := s.Commit(t.Context(), kv.Write{Key: "/a", Value: []byte("2"), Expect: r})
		done <- r
	}()
	<-reached
	expectNewest(t, s, r)
	for batch, err := range s.Watch(t.Context(), "/", 1) {
		if err != nil || batch.Revision != r || len(batch.Events) != 1 {
			t.Errorf("watch sees %+v, %v", batch, err)
		}
		break
	}
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
