package boltkv

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/kv"
)

// swept waits until a store has nothing to sweep. Conflicting writes keep the committer running
// meanwhile, and write nothing.
func swept(t *testing.T, s *Store) state {
	t.Helper()
	for {
		now := s.stateNow()
		if now.swept == now.oldest {
			return now
		}
		_, _ = s.Commit(t.Context(), kv.Write{Key: "/conflict", Value: []byte("v"), Expect: 1})
	}
}

// update writes to each of some keys several times, and notes their revisions.
func update(t *testing.T, s *Store, at map[string]int64, times, keys int) {
	t.Helper()
	value := bytes.Repeat([]byte("value "), 250)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range keys {
		key := fmt.Sprintf("/key/%03d", i)
		wg.Go(func() {
			mu.Lock()
			r := at[key]
			mu.Unlock()
			for range times {
				next, err := s.Commit(t.Context(), kv.Write{Key: key, Value: value, Expect: r})
				if err != nil {
					t.Error(err)
					return
				}
				r = next
			}
			mu.Lock()
			defer mu.Unlock()
			at[key] = r
		})
	}
	wg.Wait()
}

// TestFileStaysSmall updates the same objects for long, with a compaction now
// and then.
func TestFileStaysSmall(t *testing.T) {
	dir := t.TempDir()
	s, _ := openOnDisk(t, dir)
	at := map[string]int64{}
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, FileName))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	var early int64
	const rounds = 30
	for round := range rounds {
		update(t, s, at, 3, 100)
		now, err := s.Revision(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Compact(t.Context(), max(1, now-200)); err != nil {
			t.Fatal(err)
		}
		if round == 5 {
			early = size()
		}
	}
	if late := size(); late > early+early/2 {
		t.Errorf("the file grew from %d to %d bytes in %d rounds of the same", early, late, rounds)
	}
	if got := swept(t, s); got.count > 100+200+1 {
		t.Errorf("it has %d records for 100 keys and 200 revisions of history", got.count)
	}
	indexed := int64(0)
	s.index.keys.Scan(func(key string, _ version) bool {
		indexed += 1 + int64(len(s.index.older[key]))
		return true
	})
	if count := s.stateNow().count; indexed != count {
		t.Errorf("the index has %d versions, the file %d records", indexed, count)
	}
}

func TestCompactionInterruptedIsFinishedAtTheNextOpen(t *testing.T) {
	dir := t.TempDir()
	s, _ := openOnDisk(t, dir)
	at := map[string]int64{}
	update(t, s, at, 100, 10)
	// Every transaction that only sweeps fails from now on, so the compaction is
	// begun and not finished when the store is closed.
	var commits atomic.Int64
	s.commit = func(tx *bolt.Tx) error {
		if commits.Add(1) > 1 {
			return noSpaceAfter(tx)
		}
		return tx.Commit()
	}
	if err := s.Compact(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s.state.swept >= s.state.oldest {
		t.Fatal("the compaction was finished, so this shows nothing")
	}
	left := s.state
	synctest.Test(t, func(t *testing.T) {
		again, _ := openOnDisk(t, dir)
		time.Sleep(settleAfter)
		synctest.Wait()
		now := again.stateNow()
		if now.swept != now.oldest || now.oldest != 1000 || now.count >= left.count || now.count != 10+now.newest-now.oldest {
			t.Errorf("it went from %+v to %+v", left, now)
		}
		for key, r := range at {
			if got, err := again.Get(t.Context(), key, kv.Latest); err != nil || got.Revision != r {
				t.Errorf("%s is %d, %v; want %d", key, got.Revision, err, r)
			}
		}
	})
}

func noSpaceAfter(tx *bolt.Tx) error {
	_ = tx.Rollback()
	return noSpace
}

// TestSweepDoesNotDisturbReaders reads an old state while it is compacted away
// under the reader's hands: it has begun before, so it gets all of it.
func TestSweepDoesNotDisturbReaders(t *testing.T) {
	s, _ := openOnDisk(t, t.TempDir())
	at := map[string]int64{}
	update(t, s, at, 10, 50)
	if err := s.rest(); err != nil {
		t.Fatal(err)
	}
	s.mu.RLock()
	places, _ := s.index.list(kv.Range{}, 100)
	tx, err := s.db.Begin(false)
	s.mu.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(t.Context(), 501); err != nil {
		t.Fatal(err)
	}
	swept(t, s)
	for _, p := range places {
		if _, err := s.readValue(tx.Bucket(recordsBucket), p.Revision); err != nil {
			t.Errorf("%s at %d: %v", p.Key, p.Revision, err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
}

// TestWritersGoOnWhileSweeping has a large compaction and writes at once.
func TestWritersGoOnWhileSweeping(t *testing.T) {
	s, _ := openOnDisk(t, t.TempDir())
	at := map[string]int64{}
	update(t, s, at, 6, 500)
	if err := s.Compact(t.Context(), 3000); err != nil {
		t.Fatal(err)
	}
	before := s.stateNow()
	if before.swept == before.oldest {
		t.Fatal("the compaction swept everything at once")
	}
	update(t, s, at, 1, 5)
	if now := s.stateNow(); now.swept == now.oldest {
		t.Error("writes had to wait until everything was swept")
	}
	swept(t, s)
}

func (s *Store) stateNow() state {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state
}
