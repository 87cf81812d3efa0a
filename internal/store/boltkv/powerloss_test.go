package boltkv

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/journal"
	"github.com/anykind/anykind/internal/store/kv"
)

// powerLossSeedsVariable sets the number of random histories of the power loss test.
const powerLossSeedsVariable = "ANYKIND_POWER_LOSS_SEEDS"

// A frailDisk loses power at random moments: it keeps an image of what a disk may have then, and goes on. Of the sectors that are not
// synced, an image has any.
type frailDisk struct {
	mu     sync.Mutex
	random *rand.Rand
	filed  []byte // the bbolt file after its last transaction
	files  []*frailFile
	acked  map[int64]string // acknowledged writes by revision, "key value"
	images []image
}

// An image is the content of a disk after a power loss, with the writes that were acknowledged before it.
type image struct {
	where string
	filed []byte
	logs  [][]byte
	acked map[int64]string
}

// A frailFile is a file of a journal on a frailDisk.
type frailFile struct {
	disk     *frailDisk
	durable  []byte
	unsynced []sector
}

type sector struct {
	at   int64
	data []byte
}

// lose perhaps keeps an image. It needs mu.
func (d *frailDisk) lose(where string, chance float64) {
	if d.random.Float64() > chance {
		return
	}
	i := image{where: where, filed: d.filed, acked: maps.Clone(d.acked)}
	for _, f := range d.files {
		data := slices.Clone(f.durable)
		part := d.random.Float64()
		for _, s := range f.unsynced {
			if d.random.Float64() < part {
				copy(data[s.at:], s.data)
			}
		}
		i.logs = append(i.logs, data)
	}
	d.images = append(d.images, i)
}

func (f *frailFile) WriteAt(data []byte, at int64) (int, error) {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if at%journal.Sector != 0 || len(data)%journal.Sector != 0 {
		return 0, errors.New("a write that is not of whole sectors damages others when it is torn")
	}
	d.lose("before a write to the journal", 0.02)
	for i := 0; i < len(data); i += journal.Sector {
		f.unsynced = append(f.unsynced, sector{at + int64(i), slices.Clone(data[i : i+journal.Sector])})
	}
	d.lose("after a write to the journal", 0.1)
	return len(data), nil
}

func (f *frailFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	for _, s := range f.unsynced {
		copy(f.durable[s.at:], s.data)
	}
	f.unsynced = nil
	f.disk.lose("after a sync of the journal", 0.05)
	return nil
}

func (f *frailFile) Allocate(_, to int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if grown := to - int64(len(f.durable)); grown > 0 {
		f.durable = append(f.durable, make([]byte, grown)...)
	}
	return nil
}

func (f *frailFile) Close() error { return nil }

// connect is Options.prepare.
func (d *frailDisk) connect(s *Store) {
	s.journalBytes = 64 << 10 // so that its files are used in turn several times
	s.open = func(string) (journalFile, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		f := &frailFile{disk: d}
		d.files = append(d.files, f)
		return f, nil
	}
	s.commit = func(tx *bolt.Tx) error {
		name := tx.DB().Path()
		d.mu.Lock()
		d.lose("before a transaction of the file", 0.3)
		d.mu.Unlock()
		if err := tx.Commit(); err != nil {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.lose("in a transaction of the file", 0.3)
		var err error
		d.filed, err = os.ReadFile(name)
		d.lose("after a transaction of the file", 0.3)
		return err
	}
}

// write commits random writes to keys of one writer.
func (d *frailDisk) write(t *testing.T, s *Store, writer, seed uint64) {
	r := rand.New(rand.NewPCG(seed, writer))
	at := map[string]int64{}
	for range 150 {
		w := kv.Write{Key: fmt.Sprintf("/%d/%d", writer, r.IntN(10))}
		if w.Expect = at[w.Key]; w.Expect == kv.Absent || r.IntN(4) > 0 {
			w.Value = slices.Repeat([]byte(fmt.Sprintf("%d ", r.Uint32())), 1+r.IntN(300))
		}
		if r.IntN(3) == 0 {
			other := fmt.Sprintf("/%d/other", writer)
			w.With = []kv.Change{{Key: other, Value: w.Value, Expect: at[other]}}
			if w.Value == nil {
				w.With[0].Value = []byte("none")
			}
		}
		revision, err := s.Commit(t.Context(), w)
		if err != nil {
			t.Error(err)
			return
		}
		d.mu.Lock()
		for c := range w.All() {
			d.acked[revision] = shown(c.Key, c.Value)
			if at[c.Key] = revision; c.Value == nil {
				at[c.Key] = kv.Absent
			}
			revision++
		}
		d.mu.Unlock()
	}
}

func shown(key string, value []byte) string {
	if value == nil {
		return key + " deleted"
	}
	return fmt.Sprintf("%s %.20q of %d", key, value, len(value))
}

// TestPowerLoss opens what a disk has after a power loss at random moments, with any of the sectors that were written and not
// synced. All acknowledged writes are there, writes without an acknowledgement are there whole or not at all, and the store
// goes on.
func TestPowerLoss(t *testing.T) {
	seeds := 4
	if testing.Short() {
		seeds = 2
	}
	if n, err := strconv.Atoi(os.Getenv(powerLossSeedsVariable)); err == nil {
		seeds = n
	}
	found := map[string]int{}
	for range seeds {
		seed := rand.Uint64()
		d := &frailDisk{random: rand.New(rand.NewPCG(seed, 0)), acked: map[int64]string{}}
		d.run(t, seed)
		for _, i := range d.images {
			found[i.where]++
			i.check(t)
			if t.Failed() {
				t.Fatalf("seed %d, %s", seed, i.where)
			}
		}
	}
	t.Log(found)
	if len(found) < 6 {
		t.Errorf("power was only lost %v", found)
	}
}

// run writes, compacts and rests.
func (d *frailDisk) run(t *testing.T, seed uint64) {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(dir, Options{prepare: d.connect})
	if err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	d.filed, err = os.ReadFile(filepath.Join(dir, FileName))
	d.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for writer := range uint64(3) {
		writers.Go(func() { d.write(t, s, writer, seed) })
	}
	writers.Go(func() {
		for range 5 {
			now, err := s.Revision(t.Context())
			if err == nil && now > 100 {
				err = s.Compact(t.Context(), now-100)
			}
			if err = errors.Join(err, s.rest()); err != nil {
				t.Error(err)
			}
		}
	})
	writers.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// check opens an image.
func (i *image) check(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	err := os.WriteFile(path, i.filed, 0o600)
	for n, data := range i.logs {
		err = errors.Join(err, os.WriteFile(journalName(path, n), data, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		i.checkWrites(t, s)
		revision := mustCommit(t, s, kv.Write{Key: fmt.Sprint("/after/", s.newest), Value: []byte("v")})
		i.acked[revision] = shown(fmt.Sprint("/after/", revision-1), []byte("v"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("a closed store has %v, %v", left, err)
	}
}

// checkWrites compares the past and the present of a store with what was acknowledged.
func (i *image) checkWrites(t *testing.T, s *Store) {
	t.Helper()
	oldest, last := s.state.oldest, s.newest
	page, err := s.List(t.Context(), kv.Range{Revision: oldest})
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]string{}
	for _, r := range page.Records {
		has[r.Key] = shown(r.Key, r.Value)
	}
	for revision := range i.acked {
		if revision > last {
			t.Fatalf("it is at %d, but %d was acknowledged", last, revision)
		}
	}
	for batch, err := range s.Watch(t.Context(), "", oldest) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			if acked, ok := i.acked[e.Revision]; ok && acked != shown(e.Key, e.Value) {
				t.Errorf("write %d was %s, and is %s", e.Revision, acked, shown(e.Key, e.Value))
			}
			if e.Prev != nil && has[e.Key] != shown(e.Key, e.Prev) {
				t.Errorf("write %d replaced %s, which was %s", e.Revision, shown(e.Key, e.Prev), has[e.Key])
			}
			if has[e.Key] = shown(e.Key, e.Value); e.Value == nil {
				delete(has, e.Key)
			}
		}
		if batch.Revision == last {
			break
		}
	}
	if page, err = s.List(t.Context(), kv.Range{}); err != nil || len(page.Records) != len(has) {
		t.Fatalf("%d records, should be %d, %v", len(page.Records), len(has), err)
	}
	for _, r := range page.Records {
		if has[r.Key] != shown(r.Key, r.Value) {
			t.Errorf("it has %s, and should have %s", shown(r.Key, r.Value), has[r.Key])
		}
	}
}
