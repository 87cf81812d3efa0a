package kvtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

// SeedVariable is the environment variable that repeats a random run.
const SeedVariable = "KVTEST_SEED"

// runModel performs random operations on a backend and on the model, and compares all results. reopen,
// if given, closes the backend and opens its data again.
func runModel(t *testing.T, o options, open func(testing.TB) kv.Backend, reopen func(kv.Backend) kv.Backend) {
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			if given, err := strconv.ParseUint(os.Getenv(SeedVariable), 10, 64); err == nil {
				seed = given
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("to repeat: %s=%d", SeedVariable, seed)
				}
			})
			b := open(t)
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			first, err := b.Revision(ctx)
			if err != nil {
				t.Fatal(err)
			}
			r := &random{Rand: rand.New(rand.NewPCG(seed, 1)), t: t, ctx: ctx, backend: b, model: newModel(first, o.except[OneRevision])}
			defer func() { _ = r.backend.Close() }()
			for range 600 {
				r.step()
				if reopen != nil && r.IntN(40) == 0 {
					r.backend = reopen(r.backend)
				}
				if t.Failed() {
					break
				}
			}
		})
	}
}

type random struct {
	*rand.Rand
	t       *testing.T
	ctx     context.Context
	backend kv.Backend
	model   *model
}

func (r *random) step() {
	switch n := r.IntN(100); {
	case n < 55:
		r.commit()
	case n < 70:
		r.get()
	case n < 85:
		r.list()
	case n < 93:
		r.watch()
	case n < 96:
		revision := r.revision()
		r.compare(fmt.Sprintf("compact %d", revision), "", r.backend.Compact(r.ctx, revision), "", r.model.compact(revision))
	default:
		got, err := r.backend.Revision(r.ctx)
		r.compare("revision", got, err, r.model.newest(), nil)
	}
}

// compare compares the result of an operation with the expected one.
func (r *random) compare(what string, got any, gotErr error, want any, wantErr error) {
	r.t.Helper()
	if !sameError(gotErr, wantErr) {
		r.t.Errorf("%s: got error %v, want %v", what, gotErr, wantErr)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// Keys are few, so that they meet, and are prefixes of each other.
var modelKeys = []string{"/a", "/a/", "/a/1", "/a/10", "/a/2", "/a0", "/b", "/b/1", "/b/1/x", "\xff", "\xff\xff", "0"}

var modelPrefixes = []string{"", "/", "/a", "/a/", "/a/1", "/b/", "/c", "\xff", "\xff\xff\xff"}

func (r *random) key() string { return modelKeys[r.IntN(len(modelKeys))] }

func (r *random) prefix() string { return modelPrefixes[r.IntN(len(modelPrefixes))] }

// revision returns a revision, mostly one that is not compacted.
func (r *random) revision() int64 {
	switch r.IntN(10) {
	case 0:
		return kv.Latest
	case 1:
		return r.model.newest() + r.Int64N(3)
	case 2:
		return r.Int64N(r.model.newest() + 1)
	}
	return r.model.oldest + r.Int64N(r.model.newest()-r.model.oldest+1)
}

// expected returns an expected revision, mostly that of the key.
func (r *random) expected(key string) int64 {
	if r.IntN(5) == 0 {
		return r.revision()
	}
	return r.model.at(r.model.newest())[key].Revision
}

func (r *random) commit() {
	w := kv.Write{Key: r.key()}
	w.Expect = r.expected(w.Key)
	if r.IntN(4) > 0 {
		w.Value = []byte(strings.Repeat(fmt.Sprintf("%d ", r.model.newest()), r.IntN(100)))
	}
	for r.IntN(4) == 0 {
		g := kv.Guard{Key: r.key()}
		g.Revision = r.expected(g.Key)
		w.Guards = append(w.Guards, g)
	}
	for named := map[string]bool{w.Key: true}; r.IntN(5) == 0; {
		c := kv.Change{Key: r.key()}
		if named[c.Key] {
			continue
		}
		named[c.Key] = true
		if c.Expect = r.expected(c.Key); r.IntN(4) > 0 {
			c.Value = []byte(fmt.Sprint("with ", r.model.newest()))
		}
		w.With = append(w.With, c)
	}
	if before, ok := r.model.at(r.model.newest())[w.Key]; ok && w.Expect == before.Revision && r.IntN(2) == 0 {
		w.Was = before.Value
	}
	got, gotErr := r.backend.Commit(r.ctx, w)
	want, wantErr := r.model.commit(w)
	r.compare(fmt.Sprintf("commit %q at %d guarded by %v with %v", w.Key, w.Expect, w.Guards, w.With), got, gotErr, want, wantErr)
}

func (r *random) get() {
	key, revision := r.key(), r.revision()
	got, gotErr := r.backend.Get(r.ctx, key, revision)
	want, wantErr := r.model.get(key, revision)
	r.compare(fmt.Sprintf("get %q at %d", key, revision), got, gotErr, want, wantErr)
}

func (r *random) list() {
	q := kv.Range{Prefix: r.prefix(), Revision: r.revision()}
	if r.IntN(3) == 0 {
		q.After = r.key()
	}
	if r.IntN(2) == 0 {
		q.Limit = 1 + r.IntN(5)
	}
	got, gotErr := r.backend.List(r.ctx, q)
	want, wantErr := r.model.list(q)
	r.compare(fmt.Sprintf("list %+v", q), got, gotErr, want, wantErr)
}

// watch reads from a revision to the newest event of a prefix.
func (r *random) watch() {
	prefix, after := r.prefix(), r.revision()
	want, wantErr := r.model.eventsAfter(prefix, after)
	if len(want) == 0 && wantErr == nil {
		return
	}
	var got []kv.Event
	var gotErr error
	for batch, err := range CheckWatch(r.t.Errorf, prefix, after, r.backend.Watch(r.ctx, prefix, after)) {
		gotErr = err
		got = append(got, batch.Events...)
		if len(got) >= len(want) {
			break
		}
	}
	lines := func(events []kv.Event) string {
		var b strings.Builder
		for _, e := range events {
			fmt.Fprintln(&b, showEvent(e))
		}
		return b.String()
	}
	r.compare(fmt.Sprintf("watch %q after %d", prefix, after), lines(got), gotErr, lines(want), wantErr)
}
