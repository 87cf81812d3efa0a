package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
	"github.com/anykind/anykind/internal/store/memkv"
)

// hasty compacts the backend below after each write, so that all earlier states come from the file.
type hasty struct{ *Store }

func (h hasty) Commit(ctx context.Context, w kv.Write) (int64, error) {
	revision, err := h.Store.Commit(ctx, w)
	if err == nil {
		_ = h.settle() // it fails when the store is closed
	}
	return revision, err
}

// settle moves all states but the newest to the file.
func (s *Store) settle() error {
	if err := s.wait(context.Background()); err != nil {
		return err
	}
	return settled{s}.Compact(context.Background(), s.now().seen)
}

func newStore(t testing.TB, below kv.Backend, dir string, o Options) *Store {
	t.Helper()
	o.fast = true
	s, err := Open(below, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newBolt(t testing.TB, dir string) kv.Backend {
	t.Helper()
	b, err := boltkv.Open(dir, boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A store with a history is a kv.Backend, also when its states come from the file.
func TestContract(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		kvtest.Run(t, func(t testing.TB) kv.Backend {
			return hasty{newStore(t, memkv.New(memkv.Options{}), t.TempDir(), Options{batch: 3})}
		}, kvtest.ValueLimit(kv.DefaultMaxValueBytes))
	})
	if testing.Short() {
		return
	}
	t.Run("bolt", func(t *testing.T) {
		t.Parallel()
		kvtest.Run(t, func(t testing.TB) kv.Backend {
			dir := t.TempDir()
			return hasty{newStore(t, newBolt(t, dir), dir, Options{batch: 3})}
		}, kvtest.ValueLimit(kv.DefaultMaxValueBytes))
	})
}

// Changes are yielded once and in order while they move from the backend to the file.
func TestChangesWhileArchiving(t *testing.T) {
	s := newStore(t, memkv.New(memkv.Options{}), t.TempDir(), Options{batch: 2})
	ended := make(chan error, 1)
	go func() {
		var last int64
		for i := range 20_000 {
			w := kv.Write{Key: "/keys/one", Value: fmt.Append(nil, i), Expect: last}
			var err error
			if last, err = s.Commit(context.Background(), w); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	seen := map[string]int64{"/keys/one": 1, "/keys/": 1}
	for working := true; working; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			working = false
		default:
		}
		for keys, last := range seen {
			for p, err := range s.Changes(t.Context(), keys, last) {
				if err != nil {
					t.Fatal(err)
				}
				if seen[keys]++; p.Revision != seen[keys] {
					t.Fatalf("the change of %s after %d is %d", keys, seen[keys]-1, p.Revision)
				}
			}
		}
	}
}

// A model has every state of a store.
type model struct {
	states  map[int64]map[string]kv.Record // by revision
	times   []kv.Past                      // the changes, in order
	newest  int64
	current map[string]kv.Record
	extra   int // see checkIntervals
}

func (m *model) change(key string, value []byte, revision int64, at time.Time, note string) {
	p := kv.Past{Event: kv.Event{Key: key, Revision: revision, Value: value, Note: []byte(note)}, Time: at}
	if before, ok := m.current[key]; ok {
		p.Prev, p.PrevRevision = before.Value, before.Revision
	}
	m.times = append(m.times, p)
	next := make(map[string]kv.Record, len(m.current))
	for k, r := range m.current {
		next[k] = r
	}
	if value == nil {
		delete(next, key)
	} else {
		next[key] = kv.Record{Key: key, Value: value, Revision: revision}
	}
	m.current, m.newest = next, revision
	m.states[revision] = next
}

func (m *model) list(prefix string, revision int64) []kv.Record {
	var out []kv.Record
	for _, r := range m.states[revision] {
		if strings.HasPrefix(r.Key, prefix) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b kv.Record) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// A clock advances by every look.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { c.now = c.now.Add(7 * time.Second); return c.now }

// Random changes, restarts and compactions: every answer about the past equals that of a model, whether a state
// comes from the backend or from the file.
func TestModel(t *testing.T) {
	rounds := 2
	if testing.Short() {
		rounds = 1
	}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testModel(t, uint64(seed)) })
	}
}

func testModel(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	c := &clock{now: time.UnixMilli(1_700_000_000_000)}
	o := Options{batch: 1 + random.IntN(40), Now: c.Now}
	s := newStore(t, newBolt(t, dir), dir, o)
	m := &model{states: map[int64]map[string]kv.Record{1: {}}, current: map[string]kv.Record{}, newest: 1}
	oldest := int64(1)
	for i := range 1500 {
		key := fmt.Sprintf("/registry/kind%d/default/object-%d", random.IntN(3), random.IntN(12))
		w := kv.Write{Key: key, Note: []byte(fmt.Sprint("note ", i))}
		if before, ok := m.current[key]; ok {
			w.Expect, w.Was = before.Revision, before.Value
		}
		if w.Expect == kv.Absent || random.IntN(8) > 0 {
			w.Value = []byte(fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"some":"label"}},"spec":{"replicas":%d,"text":%q}}`, key, i, strings.Repeat("x", random.IntN(300))))
		}
		revision, err := s.Commit(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		m.change(key, w.Value, revision, c.now, string(w.Note))
		switch n := random.IntN(400); {
		case n == 0:
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = newStore(t, newBolt(t, dir), dir, o)
		case n < 5:
			if err := s.settle(); err != nil {
				t.Fatal(err)
			}
		case n < 6:
			oldest += random.Int64N(m.newest - oldest + 1)
			if err := s.Compact(t.Context(), oldest); err != nil {
				t.Fatal(err)
			}
		}
		if i%25 == 0 {
			m.ask(t, s, random, oldest)
		}
	}
	m.askAll(t, s, oldest)
}

// ask asks about a random moment.
func (m *model) ask(t *testing.T, s *Store, random *rand.Rand, oldest int64) {
	t.Helper()
	revision := oldest + random.Int64N(m.newest-oldest+1)
	prefix := []string{"/registry/", "/registry/kind1/", "/registry/kind2/default/object-1"}[random.IntN(3)]
	page, err := s.List(t.Context(), kv.Range{Prefix: prefix, Revision: revision})
	same(t, fmt.Sprint("list of ", prefix, " at ", revision), page.Records, m.list(prefix, revision), err)
	var paged []kv.Record
	for after := ""; ; {
		page, err := s.List(t.Context(), kv.Range{Prefix: prefix, Revision: revision, Limit: 5, After: after})
		if err != nil {
			t.Fatal(err)
		}
		if paged = append(paged, page.Records...); !page.More {
			break
		}
		after = page.Records[len(page.Records)-1].Key
	}
	same(t, "pages", paged, m.list(prefix, revision), nil)
	key := fmt.Sprintf("/registry/kind%d/default/object-%d", random.IntN(3), random.IntN(12))
	record, err := s.Get(t.Context(), key, revision)
	want, ok := m.states[revision][key]
	if ok != (err == nil) || ok && (record.Revision != want.Revision || string(record.Value) != string(want.Value)) || !ok && !errors.Is(err, kv.ErrNotFound) {
		t.Fatalf("%s at %d is %v, %v, want %v", key, revision, record, err, want)
	}
	if revision > oldest {
		change := m.times[revision-2]
		at, err := s.At(t.Context(), change.Time.Add(time.Duration(random.IntN(6))*time.Second))
		if err != nil || at != revision {
			t.Fatalf("the revision at the time of %d is %d, %v", revision, at, err)
		}
	}
	m.askChanges(t, s, key, revision)
	m.askLog(t, s, random, oldest)
	if oldest > 1 {
		_, err := s.Get(t.Context(), key, oldest-1)
		var compacted *kv.CompactedError
		if !errors.As(err, &compacted) || compacted.Oldest != oldest {
			t.Fatalf("a state before the oldest one, %d: %v", oldest, err)
		}
	}
}

// askChanges asks for the changes of a key and of a prefix, and watches them.
func (m *model) askChanges(t *testing.T, s *Store, key string, after int64) {
	t.Helper()
	for _, keys := range []string{key, "/registry/kind1/"} {
		var got, want []string
		for p, err := range s.Changes(t.Context(), keys, after) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, shown(&p))
		}
		var events []string
		for i := range m.times {
			if p := &m.times[i]; p.Revision > after && within(keys, p.Key) {
				want = append(want, shown(p))
				events = append(events, shown(&kv.Past{Event: p.Event}))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("the changes of %s after %d are\n%s\nwant\n%s", keys, after, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		var watched []string
		for batch, err := range s.Watch(t.Context(), keys, after) {
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range batch.Events {
				if within(keys, e.Key) {
					watched = append(watched, shown(&kv.Past{Event: e}))
				}
			}
			if batch.Revision == m.newest {
				break
			}
		}
		if !slices.Equal(watched, events) {
			t.Fatalf("a watch of %s after %d tells\n%s\nwant\n%s", keys, after, strings.Join(watched, "\n"), strings.Join(events, "\n"))
		}
	}
}

func (m *model) askAll(t *testing.T, s *Store, oldest int64) {
	t.Helper()
	if err := s.settle(); err != nil {
		t.Fatal(err)
	}
	for revision := oldest; revision <= m.newest; revision++ {
		page, err := s.List(t.Context(), kv.Range{Prefix: "/registry/", Revision: revision})
		same(t, fmt.Sprint("list at ", revision), page.Records, m.list("/registry/", revision), err)
		if revision > oldest {
			if at, err := s.At(t.Context(), m.times[revision-2].Time); err != nil || at != revision {
				t.Fatalf("the revision at the time of %d is %d, %v", revision, at, err)
			}
		}
	}
}

func shown(p *kv.Past) string {
	return fmt.Sprint(p.Key, " ", p.Revision, " ", p.PrevRevision, " ", string(p.Prev), " ", string(p.Value), " ", string(p.Note), " ", p.Time.UnixMilli())
}

func same(t *testing.T, subject string, got, want []kv.Record, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	if !slices.EqualFunc(got, want, func(a, b kv.Record) bool {
		return a.Key == b.Key && a.Revision == b.Revision && string(a.Value) == string(b.Value)
	}) {
		t.Fatalf("%s is\n%v\nwant\n%v", subject, got, want)
	}
}
