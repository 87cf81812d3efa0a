package registry_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

const (
	zero = "0x0000000000000000"
	half = "0x8000000000000000"
	full = "0x10000000000000000"
	byID = "object.metadata.uid"
	byNS = "object.metadata.namespace"
)

// shardOf returns a shard selector of one range.
func shardOf(field, start, end string) string {
	return fmt.Sprintf("shardRange(%s, '%s', '%s')", field, start, end)
}

func TestShardSelectors(t *testing.T) {
	r, target, _ := secrets(t, 10, 10)
	lower, upper := shardOf(byID, zero, half), shardOf(byID, half, full)
	for _, c := range []struct{ selector, want string }{
		{"", ""},
		{lower, lower},
		{"  shardRange(object.metadata.uid,\"" + zero + "\",'" + half + "')\n", lower},
		{"(" + lower + ")||(" + upper + ")", lower + " || " + upper},
		{shardOf(byNS, zero, full), shardOf(byNS, zero, full)},

		{" ", "empty shard selector is not allowed; omit the parameter for unfiltered lists"},
		{lower + " && " + upper, `unsupported function "_&&_"; only shardRange() and || are allowed`},
		{lower + " || " + shardOf(byNS, half, full), `all shard ranges must use the same field, got "object.metadata.uid" and "object.metadata.namespace"`},
		{shardOf("object.metadata.name", zero, half), `unsupported field path "object.metadata.name"; supported: object.metadata.uid, object.metadata.namespace`},
		{shardOf(byID, half, half), "shard range start " + half + " must be less than end " + half},
		{shardOf(byID, full, full), "shard range start " + full + " must be less than end " + full},
		{shardOf(byID, "0x0", half), `hexStart must be a 0x-prefixed 16-digit hex value, got "0x0" (did you mean "` + zero + `"?)`},
		{shardOf(byID, zero, "0x20000000000000000"), `hexEnd: 17-digit hex value must be '0x10000000000000000' (2^64), got "0x20000000000000000"`},
		{"shardRange(object.metadata.uid, '" + zero + "')", "shardRange() requires exactly 3 arguments, got 2"},
		{"shardRange(", "CEL parse error: Syntax error: mismatched input '<EOF>'"},
	} {
		l, err := r.List(t.Context(), target, registry.ListOptions{Shard: c.selector})
		w, watchErr := r.Watch(t.Context(), target, registry.WatchOptions{Shard: c.selector})
		switch {
		case err == nil && watchErr == nil:
			w.Close()
			if l.Shard != c.want {
				t.Errorf("%s is shown as %s, want %s", c.selector, l.Shard, c.want)
			}
		case fmt.Sprint(err) != fmt.Sprint(watchErr) || !strings.HasPrefix(err.Error(), "invalid shard selector: "+c.want):
			t.Errorf("%s: list %v, watch %v, want %s", c.selector, err, watchErr, c.want)
		}
	}
}

// A shardedStore changes Secrets at random, and knows them. An update can change the UID, as no server does but a
// store can: the object moves to another shard.
type shardedStore struct {
	t       *testing.T
	random  *rand.Rand
	backend *memkv.Store
	// By the key of the Secret.
	uids      map[string]string
	revisions map[string]int64
}

// change makes a random change and returns its revision.
func (s *shardedStore) change() int64 {
	s.t.Helper()
	namespace, name := fmt.Sprintf("n%d", s.random.IntN(8)), fmt.Sprintf("s%02d", s.random.IntN(40))
	key := "/registry/secrets/" + namespace + "/" + name
	uid, exists := s.uids[key]
	w := kv.Write{Key: key, Expect: s.revisions[key]}
	switch action := s.random.IntN(4); {
	case exists && action == 0:
		uid = ""
	case exists && action == 1: // it stays where it is
	case s.random.IntN(4) == 0:
		uid = name + strconv.Itoa(s.random.IntN(1000)) // no UUID
	default:
		uid = fmt.Sprintf("%08x-0000-4000-8000-%012x", s.random.Uint32(), s.random.Uint64()>>16)
	}
	if uid != "" {
		w.Value = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,"namespace":%q,"uid":%q},"type":"t"}`, name, namespace, uid)
	}
	revision, err := s.backend.Commit(s.t.Context(), w)
	if err != nil {
		s.t.Fatal(err)
	}
	s.uids[key], s.revisions[key] = uid, revision
	if uid == "" {
		delete(s.uids, key)
		delete(s.revisions, key)
	}
	return revision
}

// in returns the Secrets in a shard of one range, as Kubernetes' own functions decide.
func (s *shardedStore) in(field, start, end string) map[string]string {
	found := maps.Clone(s.uids)
	maps.DeleteFunc(found, func(key, uid string) bool {
		hashed := uid
		if field == byNS {
			hashed = strings.Split(key, "/")[3]
		}
		hash := "0x" + sharding.HashField(hashed)
		return sharding.HexLess(hash, start) || !sharding.HexLess(hash, end)
	})
	return found
}

// cuts returns the ends of random ranges that cover all hashes.
func (s *shardedStore) cuts() []string {
	ends := []string{zero}
	for range s.random.IntN(4) {
		ends = append(ends, fmt.Sprintf("0x%016x", s.random.Uint64()))
	}
	slices.Sort(ends)
	return append(slices.Compact(ends), full)
}

func newShardedStore(t *testing.T) (*shardedStore, *registry.Registry, registry.Target) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := &shardedStore{t: t, random: rand.New(rand.NewPCG(seed, 0)), backend: memkv.New(memkv.Options{}), uids: map[string]string{}, revisions: map[string]int64{}}
	target := registry.StorageTarget(resource.NewSet(builtin.Definitions()).Lookup("", "secrets"), "", "")
	return s, registry.New(s.backend, caching(t, s.backend), registry.Options{}), target
}

// Disjoint shards that cover all hashes have each object once, in one list and in pages.
func TestShardsAreAPartition(t *testing.T) {
	s, r, target := newShardedStore(t)
	for range 300 {
		s.change()
	}
	for round := range 30 {
		field := []string{byID, byNS}[round%2]
		ends := s.cuts()
		all := 0
		for i, start := range ends[:len(ends)-1] {
			want := s.in(field, start, ends[i+1])
			all += len(want)
			o := registry.ListOptions{Shard: shardOf(field, start, ends[i+1]), Limit: int64(s.random.IntN(20))}
			got := map[string]string{}
			for more := true; more; more = o.Continue != "" {
				l, err := r.List(t.Context(), target, o)
				if err != nil {
					t.Fatal(err)
				}
				if l.Remaining != nil || l.Shard != o.Shard {
					t.Fatalf("remaining %v, shard %q", l.Remaining, l.Shard)
				}
				for item := range l.Items.All() {
					got[item.Key] = item.UID()
				}
				o.Continue = l.Continue
			}
			if !maps.Equal(got, want) {
				t.Fatalf("%s\n got %v\nwant %v", o.Shard, got, want)
			}
		}
		if all != len(s.uids) {
			t.Fatalf("%v have %d objects of %d", ends, all, len(s.uids))
		}
	}
}

// A range includes its start and excludes its end.
func TestEndsOfShards(t *testing.T) {
	s, r, target := newShardedStore(t)
	s.change()
	for _, uid := range s.uids {
		hash, err := strconv.ParseUint(sharding.HashField(uid), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		at := func(n uint64) string { return fmt.Sprintf("0x%016x", n) }
		for shard, want := range map[string]int{
			shardOf(byID, at(hash), at(hash+1)): 1, shardOf(byID, zero, at(hash)): 0, shardOf(byID, at(hash+1), full): 0, shardOf(byID, zero, full): 1,
		} {
			l, err := r.List(t.Context(), target, registry.ListOptions{Shard: shard})
			if err != nil || l.Items.Len() != want {
				t.Errorf("%s of the hash %x: %d objects, %v", shard, hash, l.Items.Len(), err)
			}
		}
	}
}

// Several ranges of one selector are a union. Their order has no effect.
func TestShardOfSeveralRanges(t *testing.T) {
	s, r, target := newShardedStore(t)
	for range 100 {
		s.change()
	}
	ends := []string{zero, "0x4000000000000000", half, full}
	l, err := r.List(t.Context(), target, registry.ListOptions{Shard: shardOf(byID, ends[2], ends[3]) + " || " + shardOf(byID, ends[0], ends[1])})
	if err != nil {
		t.Fatal(err)
	}
	want := s.in(byID, ends[0], ends[1])
	maps.Copy(want, s.in(byID, ends[2], ends[3]))
	for item := range l.Items.All() {
		if want[item.Key] != item.UID() {
			t.Errorf("%s is not in the shard", item.Key)
		}
		delete(want, item.Key)
	}
	if len(want) > 0 {
		t.Errorf("%v are missing", want)
	}
}

// A shardWatch follows a shard like an informer.
type shardWatch struct {
	*registry.Watch
	field, start, end string
	has               map[string]string
	missed            int
}

func (w *shardWatch) apply(t *testing.T, e registry.WatchEvent) {
	t.Helper()
	key, uid := e.Object.Key, e.Object.UID()
	switch before, known := w.has[key]; {
	case known == (e.Type == watch.Added):
		t.Fatalf("%s of %s, which the client has with UID %q", e.Type, key, before)
	case e.Type == watch.Deleted && before != uid:
		t.Fatalf("%s of %s with UID %s instead of the last one, %s", e.Type, key, uid, before)
	case e.Type == watch.Deleted:
		delete(w.has, key)
	default:
		w.has[key] = uid
	}
}

// The watches of all shards follow random histories: an object that leaves a shard is deleted there, and added to
// another one.
func TestShardedWatches(t *testing.T) {
	for round := range 12 {
		s, r, target := newShardedStore(t)
		var last int64
		for range 60 {
			last = s.change()
		}
		field, ends := []string{byID, byID, byNS}[round%3], s.cuts()
		var watches []*shardWatch
		for i, start := range ends[:len(ends)-1] {
			w := &shardWatch{field: field, start: start, end: ends[i+1], has: map[string]string{}}
			o := registry.WatchOptions{Shard: shardOf(field, start, ends[i+1]), Missed: func() { w.missed++ }, ResourceVersion: strconv.FormatInt(last, 10)}
			initial := round%2 == 0
			if o.SendInitialEvents = &initial; !initial {
				w.has = s.in(field, start, ends[i+1])
			}
			var err error
			if w.Watch, err = r.Watch(t.Context(), target, o); err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if initial && w.missed != len(s.uids)-len(s.in(field, start, ends[i+1])) {
				t.Errorf("%d initial objects are outside the shard", w.missed)
			}
			watches = append(watches, w)
		}
		for range 200 {
			last = s.change()
		}
		for _, w := range watches {
			for w.Progress() < last {
				portion, err := w.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range portion.Events {
					w.apply(t, e)
				}
			}
			if want := s.in(w.field, w.start, w.end); !maps.Equal(w.has, want) {
				t.Fatalf("%s to %s of %s\n got %v\nwant %v", w.start, w.end, w.field, w.has, want)
			}
		}
	}
}

// A sharded list allocates no more than another selective list: the hash is of the header.
func BenchmarkShardedList(b *testing.B) {
	r, target, _ := secrets(b, 10000, 1000)
	for name, o := range map[string]registry.ListOptions{
		"shard": {Shard: shardOf(byID, half, full)}, "namespace": {Shard: shardOf(byNS, half, full)},
		"label": {Selection: selection(b, target, "third=true", "")}, "all": {},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.List(b.Context(), target, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
