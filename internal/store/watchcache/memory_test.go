//go:build !race

// The race detector takes memory too.

package watchcache_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// labelled returns an object of about 1.7 kB with the metadata of a usual one.
func labelled(name string, i int) []byte {
	uid := fmt.Sprintf("%08x-%04x-4000-8000-%012x", rand.Uint32(), rand.IntN(1<<16), i)
	return fmt.Appendf(nil, `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"creationTimestamp":"2026-11-26T10:00:00Z","labels":{"app":"app-%d","tier":"web"},"name":%q,"namespace":"default","uid":%q},"spec":%q}`,
		i%100, name, uid, strings.Repeat("x", 1450))
}

// seed creates n objects in a store in a file, many with each write.
func seed(t testing.TB, b kv.Backend, n int) {
	t.Helper()
	for i := 0; i < n; {
		var w kv.Write
		for ; i < n && len(w.With) < 700; i++ {
			name := fmt.Sprintf("object-%07d", i)
			c := kv.Change{Key: crontabs + "default/" + name, Value: labelled(name, i)}
			if w.Key == "" {
				w.Key, w.Value = c.Key, c.Value
			} else {
				w.With = append(w.With, c)
			}
		}
		if _, err := b.Commit(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
}

// An object in a file takes little memory, also after everything was read, and the values that stay keep to the
// budget.
func TestMemoryOfObjects(t *testing.T) {
	const (
		objects = 20_000
		budget  = 2 << 20
		most    = 320 // bytes for each object: its header, its key, and its places in two trees
	)
	dir := t.TempDir()
	store, err := boltkv.Open(dir, boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seed(t, store, objects)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = nil
	before := heap()
	if store, err = boltkv.Open(dir, boltkv.Options{}); err != nil {
		t.Fatal(err)
	}
	defer func() { store.Close() }()
	f := runOver(t, store, watchcache.Options{HotBytes: budget}, nil)
	f.synced(1)
	s := f.snapshot(crontabs, kv.Latest)
	opened := heap() - before
	n := 0
	for o := range s.Scan("", "") {
		e, err := o.Read()
		if err != nil || e.Name != o.Name() || e.UID != o.UID() || e.Namespace != o.Namespace() || e.Labels.Get("app") != o.Labels().Get("app") {
			t.Fatalf("%s: %v, %+v", o.Key, err, e)
		}
		n++
	}
	read := heap() - before
	t.Logf("%d objects take %d bytes each, %d after they were read", n, (opened-budget)/objects, (read-budget)/objects)
	if n != objects || opened > objects*most+budget || read > objects*most+budget+budget/4 {
		t.Errorf("%d objects take %d bytes, %d after they were read", n, opened, read)
	}
	runtime.KeepAlive(s)
}

// BenchmarkColdList reads 5,000 objects of a store in a file whose values are not in memory.
func BenchmarkColdList(b *testing.B) {
	store, err := boltkv.Open(b.TempDir(), boltkv.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	seed(b, store, 5000)
	f := runOver(b, store, watchcache.Options{HotBytes: 1}, nil)
	s := f.snapshot(crontabs, kv.Latest)
	b.ReportAllocs()
	for b.Loop() {
		for o := range s.Scan("", "") {
			if _, err := o.Read(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
