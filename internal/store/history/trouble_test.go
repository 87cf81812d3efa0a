package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
	"github.com/anykind/anykind/internal/store/memkv"
)

func commit(t *testing.T, b kv.Backend, key, value string, expect int64) int64 {
	t.Helper()
	w := kv.Write{Key: key, Expect: expect, Note: []byte("note")}
	if value != "" {
		w.Value = []byte(value)
	}
	revision, err := b.Commit(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func settleAll(t *testing.T, s *Store) {
	t.Helper()
	if err := s.settle(); err != nil {
		t.Fatal(err)
	}
}

// turned is a Transformer that turns bytes of Secrets around. With lost, its key is lost.
type turned struct{ lost *atomic.Bool }

func (c turned) turn(key string, data []byte) []byte {
	if !strings.HasPrefix(key, "/registry/secrets/") || c.lost.Load() {
		return data
	}
	data = bytes.Clone(data)
	for i := range data {
		data[i] ^= 0x55
	}
	return data
}

func (c turned) Encode(_ context.Context, key string, plain []byte) ([]byte, error) {
	return c.turn(key, plain), nil
}
func (c turned) Decode(_ context.Context, key string, stored []byte) []byte {
	return c.turn(key, stored)
}

// Runs of covered keys are encrypted in the file. Without their key, they and only they are unreadable.
func TestSealed(t *testing.T) {
	dir, seal := t.TempDir(), turned{&atomic.Bool{}}
	s := newStore(t, memkv.New(memkv.Options{}), dir, Options{Seal: seal})
	var at []int64
	for i, text := range []string{"first", "second", "third"} {
		var expect int64
		if i > 0 {
			expect = at[len(at)-2]
		}
		secret := commit(t, s, "/registry/secrets/default/one", text+strings.Repeat("-hidden-text", 100), expect)
		var open int64
		if i > 0 {
			open = at[len(at)-1]
		}
		at = append(at, secret, commit(t, s, "/registry/configmaps/default/one", "plain text "+text, open))
	}
	settleAll(t, s)
	value := func(key string) (string, error) {
		record, err := s.Get(t.Context(), key, at[1])
		return string(record.Value), err
	}
	if got, err := value("/registry/secrets/default/one"); err != nil || !strings.HasPrefix(got, "first-hidden") {
		t.Errorf("%.40q, %v", got, err)
	}
	s.file.cache = cache{}
	seal.lost.Store(true)
	var damage *kv.CorruptError
	if got, err := value("/registry/secrets/default/one"); !errors.As(err, &damage) || !strings.Contains(err.Error(), "decrypted") {
		t.Errorf("without its key a run is %.40q, %v", got, err)
	}
	if got, err := value("/registry/configmaps/default/one"); err != nil || got != "plain text first" {
		t.Errorf("%q, %v", got, err)
	}
	// The file has no plain text of a covered key, neither compressed nor not.
	err := s.file.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(runsBucket).ForEach(func(k, v []byte) error {
			if data, err := unpack(v[4:]); err == nil && bytes.Contains(data, []byte("hidden")) {
				t.Errorf("run %x is not encrypted", k)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Damage of the past is an error of the reads that need the damaged bytes. Others, also of the present, and
// writes work, and states expire.
func TestDamagedPast(t *testing.T) {
	s := newStore(t, memkv.New(memkv.Options{}), t.TempDir(), Options{})
	var last [2]int64
	for i := range 30 {
		for j := range last {
			last[j] = commit(t, s, fmt.Sprint("/key/", j), fmt.Sprint("value ", i), last[j])
		}
	}
	settleAll(t, s)
	err := s.file.db.Update(func(tx *bolt.Tx) error {
		c := tx.Bucket(runsBucket).Cursor()
		k, v := c.First()
		v = bytes.Clone(v)
		v[len(v)/2] ^= 1
		return tx.Bucket(runsBucket).Put(bytes.Clone(k), v)
	})
	if err != nil {
		t.Fatal(err)
	}
	var damage *kv.CorruptError
	if _, err := s.Get(t.Context(), "/key/0", 20); !errors.As(err, &damage) {
		t.Errorf("a damaged state: %v", err)
	}
	if _, err := s.List(t.Context(), kv.Range{Prefix: "/key/", Revision: 20}); !errors.As(err, &damage) {
		t.Errorf("a list with a damaged state: %v", err)
	}
	for _, err := range s.Changes(t.Context(), "/key/", 2) {
		if err != nil && !errors.As(err, &damage) {
			t.Errorf("damaged changes: %v", err)
		}
	}
	if r, err := s.Get(t.Context(), "/key/1", 21); err != nil || string(r.Value) != "value 9" {
		t.Errorf("another key: %s, %v", r.Value, err)
	}
	if r, err := s.Get(t.Context(), "/key/0", kv.Latest); err != nil || string(r.Value) != "value 29" {
		t.Errorf("the present: %s, %v", r.Value, err)
	}
	// The history goes on, also that of the damaged key.
	for j := range last {
		last[j] = commit(t, s, fmt.Sprint("/key/", j), "after", last[j])
	}
	end := commit(t, s, "/key/0", "last", last[0])
	settleAll(t, s)
	for revision, want := range map[int64]string{last[0] - 1: "value 29", last[0]: "after", end: "last"} {
		if r, err := s.Get(t.Context(), "/key/0", revision); err != nil || string(r.Value) != want {
			t.Errorf("the damaged key at %d: %s, %v; want %s", revision, r.Value, err, want)
		}
	}
	if err := s.Compact(t.Context(), last[1]); err != nil {
		t.Errorf("a compaction: %v", err)
	}
}

// A file that does not fit to its store is kept under another name, and a new history begins.
func TestMisfit(t *testing.T) {
	for name, next := range map[string]func(t *testing.T) kv.Backend{
		"an earlier state": func(t *testing.T) kv.Backend { return memkv.New(memkv.Options{}) },
		"another lineage": func(t *testing.T) kv.Backend {
			b := memkv.New(memkv.Options{})
			for i := range 20 {
				commit(t, b, fmt.Sprint("/other/", i), "value", 0)
			}
			return b
		},
		"states are lost": func(t *testing.T) kv.Backend {
			b := memkv.New(memkv.Options{})
			for i := range 20 {
				commit(t, b, fmt.Sprint("/key/", i), "value", 0)
			}
			if err := b.Compact(t.Context(), 15); err != nil {
				t.Fatal(err)
			}
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := newStore(t, memkv.New(memkv.Options{}), dir, Options{})
			for i := range 10 {
				commit(t, s, fmt.Sprint("/key/", i), "value", 0)
			}
			settleAll(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = newStore(t, next(t), dir, Options{})
			if _, err := os.Stat(filepath.Join(dir, "history-until-11.db")); err != nil {
				t.Error(err)
			}
			commit(t, s, "/new", "value", 0)
			settleAll(t, s)
			if r, err := s.Get(t.Context(), "/new", kv.Latest); err != nil || string(r.Value) != "value" {
				t.Errorf("%v, %v", r, err)
			}
		})
	}
}

// An error of the store says nothing about the file, which stays.
func TestOpenOfAFailingStore(t *testing.T) {
	dir := t.TempDir()
	below := memkv.New(memkv.Options{})
	defer below.Close()
	fails := errors.New("the store fails")
	open := func(err error) error {
		s, err := Open(kvtest.NewFaulty(below, func(c kvtest.Call) kvtest.Fault {
			if c.Operation == kvtest.Get {
				return kvtest.Fault{Err: err}
			}
			return kvtest.Fault{}
		}), dir, Options{})
		if err == nil {
			s.cancel()
			s.working.Wait()
			return s.file.close()
		}
		return err
	}
	if err := open(nil); err != nil {
		t.Fatal(err)
	}
	if err := open(fails); !errors.Is(err, fails) {
		t.Errorf("got error %v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

// A file that is no history is an error that names it.
func TestForeignFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	if err := os.WriteFile(path, bytes.Repeat([]byte("text "), 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(memkv.New(memkv.Options{}), dir, Options{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, %v", s, err)
	}
}

// Forget removes a key from the past: its values, its name, and its notes. The present value stays.
func TestForget(t *testing.T) {
	s := newStore(t, memkv.New(memkv.Options{}), t.TempDir(), Options{})
	var kept, gone, other int64
	for i := range 5 {
		kept = commit(t, s, "/kept", fmt.Sprint("private ", i), kept)
		other = commit(t, s, "/other", fmt.Sprint("value ", i), other)
	}
	gone = commit(t, s, "/gone", "private", 0)
	commit(t, s, "/gone", "", gone)
	for _, key := range []string{"/kept", "/gone", "/unknown"} {
		if err := s.Forget(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	for revision := int64(1); revision < 14; revision++ {
		page, err := s.List(t.Context(), kv.Range{Prefix: "/", Revision: revision})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			if r.Key == "/gone" || r.Key == "/kept" && (string(r.Value) != "private 4" || r.Revision > revision) {
				t.Errorf("at %d there is %s=%s", revision, r.Key, r.Value)
			}
		}
	}
	if r, err := s.Get(t.Context(), "/kept", kv.Latest); err != nil || string(r.Value) != "private 4" {
		t.Errorf("%v, %v", r, err)
	}
	changes := 0
	for p, err := range s.Changes(t.Context(), "/other", 0) {
		if err != nil || p.Key != "/other" {
			t.Errorf("%v, %v", p, err)
		}
		changes++
	}
	if changes != 5 {
		t.Errorf("another key has %d changes", changes)
	}
	var watched []string
	for batch, err := range s.Watch(t.Context(), "/", 1) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			watched = append(watched, fmt.Sprintf("%s=%s", e.Key, e.Value))
		}
		if batch.Revision == 13 {
			break
		}
	}
	if got := strings.Join(watched, " "); strings.Contains(got, "gone") || strings.Count(got, "private") != 1 {
		t.Errorf("a watch of the past tells %s", got)
	}
	// It goes on as before.
	commit(t, s, "/kept", "next", kept)
	settleAll(t, s)
	if r, err := s.Get(t.Context(), "/kept", kept); err != nil || string(r.Value) != "private 4" {
		t.Errorf("%s, %v", r.Value, err)
	}
}

// States expire by time, and the oldest ones by size.
func TestExpiry(t *testing.T) {
	c := &clock{now: time.UnixMilli(1_700_000_000_000)}
	s := newStore(t, memkv.New(memkv.Options{}), t.TempDir(), Options{Keep: time.Hour, Now: c.Now})
	var last int64
	for i := range 2000 { // seven seconds each
		last = commit(t, s, "/key", fmt.Sprint("value ", i), last)
	}
	settleAll(t, s)
	if err := s.expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	age := last - s.oldest
	if age < 3600/7-5 || age > 3600/7+5 {
		t.Errorf("the oldest state is %d changes old", age)
	}
	var early *kv.TooEarlyError
	if _, err := s.At(t.Context(), c.now.Add(-2*time.Hour)); !errors.As(err, &early) {
		t.Errorf("a time before: %v", err)
	} else if ago := c.now.Sub(early.Oldest); ago < 59*time.Minute || ago > 62*time.Minute {
		t.Errorf("the oldest state is of %v ago", ago)
	}
	before := s.file.used()
	s.options.MaxBytes = before / 2
	for i := range 400 {
		last = commit(t, s, fmt.Sprint("/other/", i), strings.Repeat(fmt.Sprint(i*i), 500), 0)
	}
	settleAll(t, s)
	if err := s.expire(t.Context()); err != nil && !errors.Is(err, kv.ErrFull) {
		t.Fatal(err)
	}
	if s.oldest < last-400 {
		t.Errorf("the oldest state is %d of %d, with %d bytes of %d", s.oldest, last, s.file.used(), s.options.MaxBytes)
	}
}

// Without space the history stops, writes go on, and nothing is lost: it goes on as soon as there is space.
func TestFullDisk(t *testing.T) {
	below := memkv.New(memkv.Options{})
	s := newStore(t, below, t.TempDir(), Options{batch: 4, retry: 10 * time.Millisecond})
	full := atomic.Bool{}
	s.turn.Lock()
	s.file.commit = func(tx *bolt.Tx) error {
		if full.Load() {
			return &os.PathError{Op: "write", Path: s.file.path, Err: syscall.ENOSPC}
		}
		return tx.Commit()
	}
	s.turn.Unlock()
	var last int64
	write := func(n int) {
		for i := range n {
			last = commit(t, s, "/key", fmt.Sprint("value ", last, i), last)
		}
	}
	write(10)
	settleAll(t, s)
	archived := last
	full.Store(true)
	write(10)
	_ = s.wait(t.Context()) // until the archivist has seen them, or fails
	if err := s.flush(t.Context()); !errors.Is(err, kv.ErrFull) {
		t.Errorf("a flush without space: %v", err)
	}
	if r, err := s.Get(t.Context(), "/key", archived+3); err != nil || r.Revision != archived+3 {
		t.Errorf("a state that is not in the file: %v, %v", r, err)
	}
	full.Store(false)
	write(1)
	for {
		s.mu.RLock()
		changed := s.changed
		s.mu.RUnlock()
		if s.settle() == nil {
			break
		}
		<-changed // by the next attempt
	}
	for revision := int64(2); revision <= last; revision++ {
		if r, err := s.Get(t.Context(), "/key", revision); err != nil || r.Revision != revision {
			t.Errorf("at %d: %v, %v", revision, r, err)
		}
	}
}

// After a failed fsync the history stands still: a second attempt could succeed without the data of the first one.
// The store goes on, and keeps the states for the next start.
func TestFsyncThatFails(t *testing.T) {
	below, dir := memkv.New(memkv.Options{}), t.TempDir()
	s := newStore(t, below, dir, Options{retry: time.Millisecond})
	failures := 0
	s.turn.Lock()
	s.file.commit = func(*bolt.Tx) error { failures++; return syscall.EIO }
	s.turn.Unlock()
	var last int64
	for i := range 5 {
		last = commit(t, s, "/key", fmt.Sprint("value ", i), last)
	}
	_ = s.wait(t.Context())
	for range 3 {
		if err := s.flush(t.Context()); !errors.Is(err, syscall.EIO) {
			t.Errorf("a flush: %v", err)
		}
	}
	s.turn.Lock()
	if failures != 1 {
		t.Errorf("%d commits after a failed fsync", failures-1)
	}
	s.turn.Unlock()
	if err := s.settle(); !errors.Is(err, syscall.EIO) {
		t.Errorf("the store below is compacted: %v", err)
	}
	for revision := int64(2); revision <= last; revision++ {
		if r, err := s.Get(t.Context(), "/key", revision); err != nil || r.Revision != revision {
			t.Errorf("at %d: %v, %v", revision, r, err)
		}
	}
}
