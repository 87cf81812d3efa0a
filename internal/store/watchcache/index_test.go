package watchcache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// bySaid indexes documents by their text, and counts the calls. The value of "?" is unknown.
func bySaid(looks *int) watchcache.Indexer {
	return watchcache.Indexer{Key: "said", Value: func(_ context.Context, o *watchcache.Object) (string, error) {
		*looks++
		if said(o) == "?" {
			return "", errors.New("no value")
		}
		return said(o), nil
	}}
}

func (f *fixture) index(of *watchcache.Snapshot, by watchcache.Indexer) *watchcache.Index {
	f.Helper()
	x, err := f.cache.Resource(crontabs).Index(f.Context(), of, by)
	if err != nil {
		f.Fatal(err)
	}
	return x
}

// names returns the names of the objects that an index finds.
func names(x *watchcache.Index, value, prefix, after string) string {
	var out []string
	for o := range x.Scan(value, prefix, after) {
		out = append(out, strings.TrimPrefix(o.Key, crontabs))
	}
	return strings.Join(out, " ")
}

// An index reads every object once, and then the changed ones.
func TestIndexLooksOnce(t *testing.T) {
	f := start(t, watchcache.Options{}, nil)
	for i := range 100 {
		f.put(fmt.Sprint(crontabs, "x/", i), fmt.Sprint("v", i%10))
	}
	looks := 0
	by := bySaid(&looks)
	check := func(of *watchcache.Snapshot, value, want string, wantLooks int) {
		t.Helper()
		looks = 0
		if got := names(f.index(of, by), value, crontabs, ""); got != want || looks != wantLooks {
			t.Errorf("%s: got %q after %d looks, want %q after %d", value, got, looks, want, wantLooks)
		}
	}
	before := f.snapshot(crontabs, kv.Latest)
	check(before, "v3", "x/13 x/23 x/3 x/33 x/43 x/53 x/63 x/73 x/83 x/93", 100)
	check(before, "v0", "x/0 x/10 x/20 x/30 x/40 x/50 x/60 x/70 x/80 x/90", 0)

	f.put(crontabs+"x/3", "v0")
	f.put(crontabs+"x/3", "other")
	f.del(crontabs + "x/13")
	f.put(crontabs+"y/3", "v3")
	now := f.snapshot(crontabs, kv.Latest)
	check(now, "v3", "x/23 x/33 x/43 x/53 x/63 x/73 x/83 x/93 y/3", 2)
	check(now, "other", "x/3", 0)
	check(f.snapshot(crontabs, before.Revision()), "v3", "x/13 x/23 x/3 x/33 x/43 x/53 x/63 x/73 x/83 x/93", 2)
	check(f.snapshot(crontabs, kv.Latest), "other", "x/3", 0)

	// An unknown value may match anything, and is retried.
	f.put(crontabs+"x/23", "?")
	check(f.snapshot(crontabs, kv.Latest), "other", "x/23 x/3", 1)
	check(f.snapshot(crontabs, kv.Latest), "v9", "x/19 x/23 x/29 x/39 x/49 x/59 x/69 x/79 x/89 x/9 x/99", 1)
	f.put(crontabs+"x/23", "v9")
	check(f.snapshot(crontabs, kv.Latest), "other", "x/3", 1)
}

// For random writes, random states and any length of the history, an index finds the same objects as a
// scan.
func TestIndexAgreesWithSnapshot(t *testing.T) {
	for _, history := range []int{3, 50, 0} {
		t.Run(fmt.Sprint("history ", history), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(history)))
			f := start(t, watchcache.Options{HistoryEvents: history}, nil)
			looks := 0
			by := bySaid(&looks)
			newest, oldest := f.put(crontabs+"x/0", "a"), int64(1)
			for range 300 {
				for range random.IntN(4) {
					key := fmt.Sprint(crontabs, []string{"x/", "y/"}[random.IntN(2)], random.IntN(20))
					if random.IntN(4) == 0 && f.snapshot(crontabs, kv.Latest).Get(key) != nil {
						newest = f.del(key)
					} else {
						newest = f.put(key, []string{"a", "b", "", "?"}[random.IntN(4)])
					}
				}
				revision := int64(kv.Latest)
				if random.IntN(2) == 0 {
					revision = max(oldest+1, newest-random.Int64N(20))
				}
				s := f.snapshot(crontabs, revision)
				x := f.index(s, by)
				prefix := crontabs + []string{"", "x/", "y/", "x/1"}[random.IntN(4)]
				after := []string{"", crontabs + "x/10", crontabs + "x/7", crontabs + "y/1"}[random.IntN(4)]
				for _, value := range []string{"a", "b", "", "never"} {
					var want []string
					for o := range s.Scan(prefix, after) {
						if said(o) == value || said(o) == "?" {
							want = append(want, strings.TrimPrefix(o.Key, crontabs))
						}
						if v, known := x.Value(o.Key); known != (said(o) != "?") || known && v != said(o) {
							t.Fatalf("%s says %q and is indexed as %q, %v", o.Key, said(o), v, known)
						}
					}
					if got := names(x, value, prefix, after); got != strings.Join(want, " ") {
						t.Fatalf("revision %d, %q in %q after %q: got %s, want %s", s.Revision(), value, prefix, after, got, want)
					}
				}
			}
		})
	}
}

// The next user completes the index of a canceled one.
func TestIndexGivenUp(t *testing.T) {
	f := start(t, watchcache.Options{}, nil)
	for i := range 1000 {
		write(t, f.store, fmt.Sprint(crontabs, "x/", i), document(fmt.Sprint(i), "a"))
	}
	s := f.snapshot(crontabs, kv.Latest)
	looks := 0
	by := bySaid(&looks)
	ctx, cancel := context.WithCancel(t.Context())
	hasty := by
	hasty.Value = func(ctx context.Context, o *watchcache.Object) (string, error) {
		if looks == 700 {
			cancel()
		}
		return by.Value(ctx, o)
	}
	if _, err := f.cache.Resource(crontabs).Index(ctx, s, hasty); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if got := len(strings.Fields(names(f.index(s, by), "a", "", ""))); got != s.Len("", "") || looks > s.Len("", "")+1 {
		t.Errorf("found %d of %d after %d looks", got, s.Len("", ""), looks)
	}
}

// A regularly used index is kept.
func TestIndexIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, watchcache.Options{}, nil)
		for i := range 10 {
			f.put(fmt.Sprint(crontabs, "x/", i), "a")
		}
		looks := 0
		by := bySaid(&looks)
		for _, step := range []struct {
			after time.Duration
			looks int
		}{{0, 10}, {50 * time.Second, 10}, {50 * time.Second, 10}, {70 * time.Second, 20}, {time.Second, 20}} {
			time.Sleep(step.after)
			synctest.Wait()
			f.index(f.snapshot(crontabs, kv.Latest), by)
			if looks != step.looks {
				t.Errorf("%v later: %d looks, want %d", step.after, looks, step.looks)
			}
		}
	})
}
