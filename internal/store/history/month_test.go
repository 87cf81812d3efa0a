package history

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

var (
	monthChanges   = flag.Int("changes", 8_000, "changes of TestMonth")
	monthQuestions = flag.Int("questions", 800, "questions of TestMonth")
)

// A monthModel has the changes of each object. An object is a function of its key and the number of its change.
type monthModel struct {
	keys    []string
	changes map[string][]monthChange
	newest  int64
	times   []int64 // of the revisions from 2 on
}

type monthChange struct {
	revision int64
	number   int // 0 is a deletion
}

// object is an object with the size and the fields of a Deployment. A change alters two fields and two times.
func object(key string, number int) []byte {
	at := time.Unix(1_700_000_000+int64(number), 0).UTC().Format(time.RFC3339)
	return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"namespace":"default","uid":"0b8f3c0e-3a6f-4b8e-9f57-%012x","generation":%d,`+
		`"creationTimestamp":"2026-11-01T08:00:00Z","labels":{"app.kubernetes.io/name":"web","app.kubernetes.io/part-of":"shop","team":"checkout"},"managedFields":[%s{"manager":"kube-controller-manager","operation":"Update","apiVersion":"apps/v1","time":%q,"fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Available\"}":{".":{},"f:status":{}}},"f:replicas":{}}},"subresource":"status"}]},`+
		`"spec":{"replicas":%d,"selector":{"matchLabels":{"app.kubernetes.io/name":"web"}},"template":{"spec":{"containers":[{"name":"web","image":"registry.example.com/shop/web:1.%d","resources":{"requests":{"cpu":"100m","memory":"128Mi"}}}]}}},"status":{"replicas":%d,"observedGeneration":%d}}`,
		key, len(key), number, `{"manager":"kubectl","operation":"Apply","apiVersion":"apps/v1","time":"2026-11-01T08:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}}}}}}},`,
		at, number%10, number/100, number%10, number)
}

// at returns the number of the change that a key has at a revision.
func (m *monthModel) at(key string, revision int64) (monthChange, bool) {
	all := m.changes[key]
	i := sort.Search(len(all), func(i int) bool { return all[i].revision > revision })
	if i == 0 || all[i-1].number == 0 {
		return monthChange{}, false
	}
	return all[i-1], true
}

// A month of changes, with restarts, crashes and compactions: all answers about random moments are right, a change
// takes few bytes more than what changed, and an answer takes little time.
//
// make month asks about a million changes.
func TestMonth(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	dir := t.TempDir()
	c := &clock{now: time.UnixMilli(1_700_000_000_000)}
	s := newStore(t, newBolt(t, dir), dir, Options{Now: c.Now})
	m := &monthModel{changes: map[string][]monthChange{}, newest: 1}
	for i := range max(100, *monthChanges/100) {
		m.keys = append(m.keys, fmt.Sprintf("/registry/apps/deployments/default/web-%d", i))
	}
	const together = 50
	notes := []string{"alice\x00update\x00kubectl-edit\x00\x00", "system:serviceaccount:kube-system:deployment-controller\x00update\x00kube-controller-manager\x00status\x00"}
	for n := 0; n < *monthChanges; n += together {
		m.write(t, s, random, n, together, notes[random.IntN(2)], c)
		if random.IntN(max(1, *monthChanges/together/20)) == 0 { // some twenty times
			s.cancel() // as in a crash: events that are not in the file are only in the store
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = newStore(t, newBolt(t, dir), dir, Options{Now: c.Now})
		}
		if random.IntN(10) == 0 {
			if err := s.settle(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.settle(); err != nil {
		t.Fatal(err)
	}
	perChange := float64(s.file.used()) / float64(m.newest)
	t.Logf("%d changes of %d objects with %d bytes: %.0f bytes a change in the file", m.newest, len(m.keys), len(object(m.keys[0], 5000)), perChange)
	if perChange > 160 { // of which about 50 are what changed
		t.Errorf("a change takes %.0f bytes in the file", perChange)
	}
	m.question(t, s, random)
}

// write changes several objects in one write.
func (m *monthModel) write(t *testing.T, s *Store, random *rand.Rand, n, together int, note string, c *clock) {
	t.Helper()
	var all []kv.Change
	for i := range together {
		// Half of the changes are of a few hot objects.
		key := m.keys[random.IntN(len(m.keys))]
		if random.IntN(2) == 0 {
			key = m.keys[random.IntN(max(together*2, len(m.keys)/50))]
		}
		if slices.ContainsFunc(all, func(c kv.Change) bool { return c.Key == key }) {
			continue
		}
		change := kv.Change{Key: key, Value: object(key, n+i+1)}
		if past := m.changes[key]; len(past) > 0 && past[len(past)-1].number > 0 {
			if change.Expect = past[len(past)-1].revision; random.IntN(200) == 0 {
				change.Value = nil
			}
		}
		all = append(all, change)
	}
	w := kv.Write{Key: all[0].Key, Value: all[0].Value, Expect: all[0].Expect, With: all[1:], Note: fmt.Appendf(nil, "%s%08x-%04x", note, random.Uint32(), random.IntN(1<<16))}
	revision, err := s.Commit(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	for i, change := range all {
		number := 0
		if change.Value != nil {
			_, _ = fmt.Sscanf(string(change.Value[strings.LastIndex(string(change.Value), ":")+1:]), "%d", &number)
		}
		m.changes[change.Key] = append(m.changes[change.Key], monthChange{revision + int64(i), number})
		m.times = append(m.times, c.now.UnixMilli())
	}
	m.newest = revision + int64(len(all)) - 1
}

// question asks about random moments.
func (m *monthModel) question(t *testing.T, s *Store, random *rand.Rand) {
	t.Helper()
	var gets, moments, changes []time.Duration
	took := func(all *[]time.Duration, f func()) {
		start := time.Now()
		f()
		*all = append(*all, time.Since(start))
	}
	for range *monthQuestions {
		key, revision := m.keys[random.IntN(len(m.keys))], 2+random.Int64N(m.newest-1)
		want, exists := m.at(key, revision)
		var record kv.Record
		var err error
		took(&gets, func() { record, err = s.Get(t.Context(), key, revision) })
		if exists != (err == nil) || exists && (record.Revision != want.revision || string(record.Value) != string(object(key, want.number))) {
			t.Fatalf("%s at %d is %s, %v; want %v %v", key, revision, record.Value, err, want, exists)
		}
		at := m.times[revision-2]
		last := int64(2 + sort.Search(len(m.times), func(i int) bool { return m.times[i] > at }) - 1)
		var found int64
		took(&moments, func() { found, err = s.At(t.Context(), time.UnixMilli(at)) })
		if err != nil || found != last {
			t.Fatalf("the revision at %d is %d, %v; want %d", at, found, err, last)
		}
		if random.IntN(20) == 0 {
			n, want := 0, len(m.changes[key])
			took(&changes, func() {
				for _, err := range s.Changes(t.Context(), key, 0) {
					if err != nil {
						t.Fatal(err)
					}
					n++
				}
			})
			if n != want {
				t.Fatalf("%s has %d changes, want %d", key, n, want)
			}
		}
	}
	var lists []time.Duration
	for range max(3, *monthQuestions/1000) {
		revision := 2 + random.Int64N(m.newest-1)
		var page kv.Page
		var err error
		took(&lists, func() {
			page, err = s.List(t.Context(), kv.Range{Prefix: "/registry/apps/deployments/", Revision: revision})
		})
		if err != nil {
			t.Fatal(err)
		}
		there := 0
		for _, key := range m.keys {
			if _, ok := m.at(key, revision); ok {
				there++
			}
		}
		if len(page.Records) != there {
			t.Fatalf("a list at %d has %d objects, want %d", revision, len(page.Records), there)
		}
		for _, r := range page.Records {
			want, _ := m.at(r.Key, revision)
			if r.Revision != want.revision || string(r.Value) != string(object(r.Key, want.number)) {
				t.Fatalf("a list at %d has another %s", revision, r.Key)
			}
		}
	}
	var watches []time.Duration
	for range max(3, *monthQuestions/1000) {
		revision := 1 + random.Int64N(m.newest-1)
		took(&watches, func() { m.watch(t, s, revision) })
	}
	for name, all := range map[string][]time.Duration{
		"get": gets, "revision of a time": moments, "changes of an object": changes, "list": lists, fmt.Sprint("watch, ", watchedEvents, " events"): watches,
	} {
		slices.Sort(all)
		t.Logf("%-22s half within %v, 99 %% within %v, longest %v", name, all[len(all)/2], all[len(all)*99/100], all[len(all)-1])
	}
}

// watchedEvents is the number of events that a watch of TestMonth reads.
const watchedEvents = 1000

// watch reads events from a revision on, and checks them.
func (m *monthModel) watch(t *testing.T, s *Store, after int64) {
	t.Helper()
	last := min(after+watchedEvents, m.newest)
	for batch, err := range s.Watch(t.Context(), "/registry/apps/deployments/", after) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			if after++; e.Revision != after {
				t.Fatalf("a watch has the event %d, want %d", e.Revision, after)
			}
			want, exists := m.at(e.Key, e.Revision)
			if exists != (e.Value != nil) || exists && (want.revision != e.Revision || string(e.Value) != string(object(e.Key, want.number))) {
				t.Fatalf("a watch has another event %d of %s", e.Revision, e.Key)
			}
			if before, existed := m.at(e.Key, e.Revision-1); existed != (e.Prev != nil) || existed && string(e.Prev) != string(object(e.Key, before.number)) {
				t.Fatalf("the event %d of %s has another state before it", e.Revision, e.Key)
			}
			if after == last {
				return
			}
		}
	}
}
