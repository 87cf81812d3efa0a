package memkv_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// counted counts the lists of a state.
type counted struct {
	kv.State
	lists int
}

func (c *counted) List(ctx context.Context, r kv.Range) (kv.Page, error) {
	c.lists++
	return c.State.List(ctx, r)
}

// A store over a state of another one answers as a store in which the same writes were made, at every
// revision, and the other store never sees them.
func TestOver(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		below, whole := memkv.New(memkv.Options{}), memkv.New(memkv.Options{})
		both := func(w kv.Write, stores ...kv.Backend) int64 {
			var results []string
			var revision int64
			for _, s := range stores {
				r, err := s.Commit(t.Context(), w)
				revision = r
				results = append(results, fmt.Sprint(r, err))
			}
			if len(slices.Compact(results)) != 1 {
				t.Fatalf("seed %d: %+v: %v", seed, w, results)
			}
			return revision
		}
		for range random.IntN(30) {
			both(randomWrite(t, random, below), below, whole)
		}
		state, release, err := kv.Keep(t.Context(), below, kv.Latest)
		if err != nil {
			t.Fatal(err)
		}
		before := all(t, below, kv.Range{})
		over := memkv.New(memkv.Options{Over: state})
		began, newest := state.Revision(), state.Revision()
		for range random.IntN(40) {
			if r := both(randomWrite(t, random, over), over, whole); r > 0 {
				newest = r
			}
			if random.IntN(4) == 0 { // its own way
				if _, err := below.Commit(t.Context(), randomWrite(t, random, below)); err != nil && !conflicts(err) {
					t.Fatal(err)
				}
			}
			if random.IntN(8) == 0 {
				if err := below.Compact(t.Context(), must(below.Revision(t.Context()))); err != nil {
					t.Fatal(err)
				}
			}
			if random.IntN(8) == 0 {
				began = began + random.Int64N(newest-began+1)
				for _, s := range []kv.Backend{over, whole} {
					if err := s.Compact(t.Context(), began); err != nil {
						t.Fatal(err)
					}
				}
			}
			r := kv.Range{Revision: began + random.Int64N(newest-began+1), Limit: random.IntN(5), Prefix: prefixes[random.IntN(len(prefixes))], After: afters[random.IntN(len(afters))]}
			if got, want := all(t, over, r), all(t, whole, r); got != want {
				t.Fatalf("seed %d: %+v:\n%s\nwant\n%s", seed, r, got, want)
			}
			key := randomKey(random)
			got, gotErr := over.Get(t.Context(), key, r.Revision)
			want, wantErr := whole.Get(t.Context(), key, r.Revision)
			if fmt.Sprint(got, gotErr) != fmt.Sprint(want, wantErr) {
				t.Fatalf("seed %d: %s at %d: %v %v, want %v %v", seed, key, r.Revision, got, gotErr, want, wantErr)
			}
			n, err := over.Count(t.Context(), r.Prefix, r.Revision)
			if m, _ := whole.Count(t.Context(), r.Prefix, r.Revision); n != m || err != nil {
				t.Fatalf("seed %d: %d keys, %v; want %d", seed, n, err, m)
			}
		}
		if got := all(t, below, kv.Range{Revision: state.Revision()}); got != before {
			t.Fatalf("seed %d: the state is now\n%s\nand was\n%s", seed, got, before)
		}
		release()
	}
}

// A page of a store over another one reads one page of the state.
func TestPageOver(t *testing.T) {
	below := memkv.New(memkv.Options{})
	for i := range 100 {
		put(t, below, fmt.Sprintf("/k/%02d", i), "x", 0)
	}
	taken, err := below.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state := &counted{State: taken}
	over := memkv.New(memkv.Options{Over: state})
	page, err := over.List(t.Context(), kv.Range{Prefix: "/k/", Limit: 10})
	if err != nil || len(page.Records) != 10 || !page.More || state.lists != 1 {
		t.Errorf("%d records, more %v, %v, of %d lists", len(page.Records), page.More, err, state.lists)
	}
}

var (
	prefixes = []string{"", "/", "/a/", "/b/", "/a/1", "/none/"}
	afters   = []string{"", "", "/a/1", "/a/5", "/b/2"}
)

func randomKey(random *rand.Rand) string {
	return fmt.Sprintf("/%c/%d", "ab"[random.IntN(2)], random.IntN(8))
}

func randomWrite(t *testing.T, random *rand.Rand, s kv.Backend) kv.Write {
	expect := func(key string) int64 {
		if random.IntN(10) == 0 {
			return int64(random.IntN(5)) // often wrong
		}
		r, err := s.Get(t.Context(), key, kv.Latest)
		if err != nil {
			return kv.Absent
		}
		return r.Revision
	}
	value := func() []byte {
		if random.IntN(3) == 0 {
			return nil
		}
		return []byte(fmt.Sprint(random.IntN(1000)))
	}
	w := kv.Write{Key: randomKey(random), Value: value()}
	w.Expect = expect(w.Key)
	if key := randomKey(random); key != w.Key && random.IntN(4) == 0 {
		w.With = append(w.With, kv.Change{Key: key, Value: value(), Expect: expect(key)})
	} else if key != w.Key && random.IntN(4) == 0 {
		w.Guards = append(w.Guards, kv.Guard{Key: key, Revision: expect(key)})
	}
	return w
}

func conflicts(err error) bool {
	var conflict *kv.ConflictError
	return errors.As(err, &conflict)
}

func must(revision int64, err error) int64 {
	if err != nil {
		panic(err)
	}
	return revision
}

// all returns a page as text.
func all(t *testing.T, s kv.Backend, r kv.Range) string {
	t.Helper()
	page, err := s.List(t.Context(), r)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, r := range page.Records {
		fmt.Fprintf(&out, "%s=%s@%d ", r.Key, r.Value, r.Revision)
	}
	fmt.Fprint(&out, page.Revision, page.More)
	return out.String()
}
