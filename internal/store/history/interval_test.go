package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

// With an interval, the last old state of each interval is kept, and each creation and deletion. All states of other keys are kept,
// and those that a caller keeps.
func TestIntervals(t *testing.T) {
	const interval = 100 * time.Second
	coarse := func(key string) bool { return strings.HasPrefix(key, "/registry/leases/") }
	for seed := range uint64(2) {
		random := rand.New(rand.NewPCG(seed, 7))
		dir := t.TempDir()
		c := &clock{now: time.UnixMilli(1_700_000_000_000)}
		o := Options{batch: 1 + random.IntN(60), Now: c.Now, Every: func(key string) time.Duration {
			if coarse(key) {
				return interval
			}
			return 0
		}}
		s := newStore(t, newBolt(t, dir), dir, o)
		m := &model{states: map[int64]map[string]kv.Record{1: {}}, current: map[string]kv.Record{}, newest: 1}
		held := int64(0)
		for i := range 500 {
			if i == 250 {
				held = m.newest
				release, err := s.Keep(held)
				if err != nil {
					t.Fatal(err)
				}
				defer release()
			}
			key := fmt.Sprintf("/registry/%s/default/%d", []string{"leases", "pods"}[random.IntN(2)], random.IntN(3))
			w := kv.Write{Key: key, Note: []byte(fmt.Sprint("note ", i))}
			if before, ok := m.current[key]; ok {
				w.Expect, w.Was = before.Revision, before.Value
			}
			if w.Expect == kv.Absent || random.IntN(40) > 0 {
				w.Value = []byte(fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"renewTime":%d,"text":%q}}`, key, i, strings.Repeat("x", random.IntN(90))))
			}
			revision, err := s.Commit(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			m.change(key, w.Value, revision, c.now, string(w.Note))
			if random.IntN(12) == 0 {
				if err := s.settle(); err != nil {
					t.Fatal(err)
				}
			}
			if i < 250 && random.IntN(100) == 0 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = newStore(t, newBolt(t, dir), dir, o)
			}
		}
		if err := s.settle(); err != nil {
			t.Fatal(err)
		}
		page, err := s.List(t.Context(), kv.Range{Prefix: "/registry/", Revision: held})
		same(t, "the state that is kept", page.Records, m.list("/registry/", held), err)
		kept := map[int64]kv.Past{}
		last := map[string]kv.Past{}
		for p, err := range s.Changes(t.Context(), "/registry/", 1) {
			if err != nil {
				t.Fatal(err)
			}
			if before := last[p.Key]; before.Value != nil && (p.PrevRevision != before.Revision || string(p.Prev) != string(before.Value)) {
				t.Fatalf("the change %d of %s follows on %d, not on %d", p.Revision, p.Key, p.PrevRevision, before.Revision)
			}
			kept[p.Revision], last[p.Key] = p, p
		}
		dropped := m.checkIntervals(t, kept, interval, coarse)
		if dropped < 50 {
			t.Errorf("seed %d: only %d states are dropped", seed, dropped)
		}
		m.checkKept(t, s, kept)
	}
}

// checkIntervals checks the kept changes, and returns the number of the others.
func (m *model) checkIntervals(t *testing.T, kept map[int64]kv.Past, interval time.Duration, coarse func(string) bool) (dropped int) {
	t.Helper()
	following := map[string]*kv.Past{} // the next change of a key
	for i := len(m.times) - 1; i >= 0; i-- {
		p := &m.times[i]
		next := following[p.Key]
		following[p.Key] = p
		got, ok := kept[p.Revision]
		if ok && (string(got.Value) != string(p.Value) || string(got.Note) != string(p.Note) || !got.Time.Equal(p.Time)) {
			t.Fatalf("the change %d is %s, want %s", p.Revision, shown(&got), shown(p))
		}
		may := coarse(p.Key) && next != nil && next.Value != nil && p.Value != nil && p.PrevRevision != kv.Absent &&
			p.Time.UnixMilli()/interval.Milliseconds() == next.Time.UnixMilli()/interval.Milliseconds()
		switch {
		case !ok && !may:
			t.Fatalf("the change %d of %s is dropped", p.Revision, p.Key)
		case !ok:
			dropped++
		case may:
			m.extra++
		}
	}
	if m.extra*4 > dropped { // the last ones of each key were recent, and a run keeps its first version
		t.Errorf("%d changes are kept that may be dropped, and %d are dropped", m.extra, dropped)
	}
	return dropped
}

// checkKept checks that each state has the last kept change of each key, and the log the kept changes.
func (m *model) checkKept(t *testing.T, s *Store, kept map[int64]kv.Past) {
	t.Helper()
	state := map[string]kv.Past{}
	for revision := int64(2); revision <= m.newest; revision++ {
		if p, ok := kept[revision]; ok {
			state[p.Key] = p
		}
		for key, want := range state {
			record, err := s.Get(t.Context(), key, revision)
			if want.Value == nil != (err != nil) || string(record.Value) != string(want.Value) {
				t.Fatalf("%s at %d is %s, %v, want %s", key, revision, record.Value, err, want.Value)
			}
		}
	}
	n := 0
	for l, err := range s.Log(t.Context(), 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		found, err := s.Change(t.Context(), l.Key, l.Revision)
		want, ok := kept[l.Revision]
		if ok != (err == nil) || !ok && !errors.Is(err, kv.ErrNotFound) || shown(&found) != shown(&want) && ok {
			t.Fatalf("the change %d of %s is %s, %v, want %s", l.Revision, l.Key, shown(&found), err, shown(&want))
		}
		if ok {
			n++
		}
	}
	if n != len(kept) {
		t.Errorf("the log has %d kept changes, want %d", n, len(kept))
	}
}
