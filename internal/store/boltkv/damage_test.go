package boltkv_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/kv"
)

var pageSize = os.Getpagesize()

// A specimen is a closed store and its content.
type specimen struct {
	bytes   []byte // of the file, without the unused end
	content string
}

// newSpecimen creates a store with a history: records of different sizes, updates, deletions, free
// pages.
func newSpecimen(t *testing.T) specimen {
	t.Helper()
	dir := t.TempDir()
	s := openIn(t, dir)
	at := map[string]int64{}
	for i := range 600 {
		w := kv.Write{Key: fmt.Sprintf("/registry/%d", i*7%130), Value: bytes.Repeat([]byte{byte(i)}, i*37%2500)}
		if w.Expect = at[w.Key]; i%6 == 0 && w.Expect != kv.Absent {
			w.Value = nil
		}
		r, err := s.Commit(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if at[w.Key] = r; w.Value == nil {
			at[w.Key] = kv.Absent
		}
		if i == 500 {
			if err := s.Compact(t.Context(), 400); err != nil {
				t.Fatal(err)
			}
		}
	}
	content := contentOf(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, boltkv.FileName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var used int
	err = errors.Join(db.View(func(tx *bolt.Tx) error { used = int(tx.Size()); return nil }), db.Close())
	if err != nil {
		t.Fatal(err)
	}
	return specimen{data[:used], content}
}

// contentOf is everything that can be read: the oldest state, all events, and
// the newest state.
func contentOf(t *testing.T, s kv.Backend) string {
	t.Helper()
	var b strings.Builder
	newest, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range []int64{400, newest} {
		page, err := s.List(t.Context(), kv.Range{Revision: revision})
		fmt.Fprintln(&b, err)
		for _, r := range page.Records {
			fmt.Fprintln(&b, r.Key, r.Revision, digest(r.Value))
		}
	}
	for batch, err := range s.Watch(t.Context(), "", 400) {
		for _, e := range batch.Events {
			fmt.Fprintln(&b, e.Key, e.Revision, digest(e.Value), e.PrevRevision, digest(e.Prev))
		}
		if err != nil || batch.Revision >= newest {
			fmt.Fprintln(&b, err)
			break
		}
	}
	return b.String()
}

// open opens a damaged copy. It must either fail, with the place of the damage and without a change,
// or have all data and keep working.
func (s specimen) open(t *testing.T, what string, data []byte) (refused bool) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, boltkv.FileName)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := boltkv.Open(dir, boltkv.Options{Fatal: func(err error) { t.Errorf("%s: fatal: %v", what, err) }})
	if err != nil {
		var corrupt *kv.CorruptError
		if !errors.As(err, &corrupt) || !strings.HasPrefix(corrupt.Where, path) || corrupt.Reason == "" {
			t.Errorf("%s: refused with %v", what, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, data) {
			t.Errorf("%s: refused, but changed, %v", what, err)
		}
		return true
	}
	if contentOf(t, store) != s.content {
		t.Errorf("%s: opened, but not everything is there", what)
	}
	if _, err := store.Commit(t.Context(), kv.Write{Key: "/more", Value: []byte("v")}); err != nil {
		t.Errorf("%s: writing: %v", what, err)
	}
	if err := store.Close(); err != nil {
		t.Errorf("%s: closing: %v", what, err)
	}
	return false
}

// TestDamage damages a store in every way of a disk. It must fail to open, unless the damage has no
// effect.
func TestDamage(t *testing.T) {
	s := newSpecimen(t)
	t.Run("flipped bits", s.testFlippedBits)
	t.Run("flipped bits of the meta pages", s.testFlippedMetaBits)
	t.Run("overwritten pages", s.testOverwrittenPages)
	t.Run("truncated files", s.testTruncatedFiles)
	t.Run("missing records", s.testMissingRecords)
}

func (s specimen) testFlippedBits(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	flips := 150
	if testing.Short() {
		flips = 50
	}
	refused := 0
	for range flips {
		data := bytes.Clone(s.bytes)
		at, bit := r.IntN(len(s.bytes)), r.IntN(8)
		if r.IntN(3) == 0 {
			at -= at % pageSize // the headers of pages are few and matter most
			at = min(at+r.IntN(80), len(s.bytes)-1)
		}
		data[at] ^= 1 << bit
		if s.open(t, fmt.Sprintf("bit %d of byte %d", bit, at), data) {
			refused++
		}
	}
	t.Logf("seed %d: %d of %d flipped bits were found", seed, refused, flips)
	if refused < flips/10 {
		t.Error("hardly any damage was found, so the test does not show much")
	}
}

// testFlippedMetaBits flips each bit of the metas, the roots of the file. One of the two is of the
// last transaction and the other of the one before, which must never become current again.
func (s specimen) testFlippedMetaBits(t *testing.T) {
	// Steps that are prime to eight go through all bits over all bytes.
	step := 5
	if testing.Short() {
		step = 31
	}
	for i := 0; i < 2*64*8; i += step {
		data := bytes.Clone(s.bytes)
		at := i/(64*8)*pageSize + 16 + i%(64*8)/8
		data[at] ^= 1 << (i % 8)
		s.open(t, fmt.Sprintf("bit %d of byte %d", i%8, at), data)
	}
}

func (s specimen) testOverwrittenPages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	refused := 0
	for page := 0; page < len(s.bytes)/pageSize; page += 2 {
		data := bytes.Clone(s.bytes)
		what := "zeros"
		switch p := data[page*pageSize:][:pageSize]; page % 3 {
		case 0:
			clear(p)
		case 1:
			for i := range p {
				p[i] = byte(r.Uint32())
			}
			what = "noise"
		case 2:
			copy(p, s.bytes[r.IntN(len(s.bytes)/pageSize)*pageSize:][:pageSize])
			what = "another page"
		}
		if s.open(t, fmt.Sprintf("page %d is %s", page, what), data) {
			refused++
		}
	}
	if refused < 10 {
		t.Errorf("only %d of %d pages mattered", refused, len(s.bytes)/pageSize)
	}
}

func (s specimen) testTruncatedFiles(t *testing.T) {
	for _, size := range []int{0, 1, 100, pageSize, 2 * pageSize, 3 * pageSize, len(s.bytes) / 2, len(s.bytes) - pageSize, len(s.bytes) - 1} {
		if !s.open(t, fmt.Sprintf("cut to %d of %d bytes", size, len(s.bytes)), s.bytes[:size]) {
			t.Errorf("a file cut to %d of %d bytes was opened", size, len(s.bytes))
		}
	}
	// The rest was never used.
	for _, more := range []int{0, 1, pageSize} {
		if s.open(t, fmt.Sprintf("%d bytes more", more), append(bytes.Clone(s.bytes), make([]byte, more)...)) {
			t.Errorf("a file with %d bytes after its data was refused", more)
		}
	}
}

func TestForeignFiles(t *testing.T) {
	s := specimen{}
	if !s.open(t, "text", bytes.Repeat([]byte("not a database "), 5000)) {
		t.Error("a text file was opened")
	}
	dir := t.TempDir()
	db, err := bolt.Open(filepath.Join(dir, "foreign"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("key"))
		return err
	}), db.Close())
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "foreign"))
	if err != nil {
		t.Fatal(err)
	}
	if !s.open(t, "a bbolt file of another program", data) {
		t.Error("a bbolt file of another program was opened")
	}
}

// testMissingRecords removes records whose absence only the rest of the file reveals.
func (s specimen) testMissingRecords(t *testing.T) {
	for _, nth := range []int{0, 1, 50, 200, -1} {
		dir := t.TempDir()
		path := filepath.Join(dir, boltkv.FileName)
		if err := os.WriteFile(path, s.bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		editBolt(t, dir, func(tx *bolt.Tx) error {
			records := tx.Bucket([]byte("records"))
			c := records.Cursor()
			k, _ := c.First()
			for range nth {
				k, _ = c.Next()
			}
			if nth < 0 {
				k, _ = c.Last()
			}
			return records.Delete(k)
		})
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !s.open(t, fmt.Sprintf("without record %d", nth), data) {
			t.Errorf("a store without record %d was opened", nth)
		}
	}
}

// TestDamageWhileOpen damages the file of an open store. Only reads of damaged data fail.
func TestDamageWhileOpen(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	defer func() { _ = s.Close() }()
	for _, key := range []string{"/good", "/bad"} {
		if _, err := s.Commit(t.Context(), kv.Write{Key: key, Value: bytes.Repeat([]byte(key), 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	// A new start has no values in memory.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openIn(t, dir)
	path := filepath.Join(dir, boltkv.FileName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	value := bytes.Repeat([]byte("/bad"), 1000)
	for at := bytes.Index(data, value); at >= 0; at = bytes.Index(data, value) {
		data[at+50] = '!'
		if _, err := file.WriteAt([]byte("!"), int64(at+50)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Get(t.Context(), "/good", kv.Latest); err != nil {
		t.Errorf("what is not damaged: %v", err)
	}
	expectCorrupt(t, s)
	// Pages that are not in the file any more are a fault of memory to read.
	if err := file.Truncate(int64(2 * pageSize)); err != nil {
		t.Fatal(err)
	}
	expectCorrupt(t, s)
}

// expectCorrupt reads a damaged key in every way.
func expectCorrupt(t *testing.T, s kv.Backend) {
	t.Helper()
	var corrupt *kv.CorruptError
	if got, err := s.Get(t.Context(), "/bad", kv.Latest); !errors.As(err, &corrupt) {
		t.Errorf("get: %+v, %v", got, err)
	}
	if got, err := s.List(t.Context(), kv.Range{}); !errors.As(err, &corrupt) {
		t.Errorf("list: %+v, %v", got, err)
	}
}
