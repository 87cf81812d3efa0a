package watchcache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// TestChecker runs random writers, readers and watchers on a cache, and compares all results with the
// commits: no event is lost, repeated or out of order, and no snapshot shows a state that never
// existed.
func TestChecker(t *testing.T) {
	writes := 2400
	if testing.Short() {
		writes = 800
	}
	few := watchcache.Options{HistoryEvents: 40}
	cold := watchcache.Options{HistoryEvents: 40, HotBytes: 4000}
	tight := watchcache.Options{HistoryBytes: 8000, TotalHistoryBytes: 20000}
	for _, test := range []struct {
		name    string
		options watchcache.Options
		chaos   chaos
	}{
		{"roomy", watchcache.Options{}, chaos{}},
		{"few events", few, chaos{}},
		{"few bytes", tight, chaos{}},
		{"compacting", few, chaos{compact: true}},
		{"forgetting", few, chaos{forget: true}},
		{"interrupted", few, chaos{interrupt: true}},
		{"cut off", few, chaos{cutOff: true}},
		{"cold", cold, chaos{cold: true}},
		{"colder", watchcache.Options{HotBytes: 1}, chaos{cold: true, compact: true}},
		{"cold and compacting", cold, chaos{cold: true, compact: true}},
		{"cold and interrupted", cold, chaos{cold: true, compact: true, interrupt: true}},
		{"cold and everything", cold, chaos{cold: true, compact: true, forget: true, interrupt: true, cutOff: true}},
		{"everything", few, chaos{compact: true, forget: true, interrupt: true, cutOff: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &checker{chaos: test.chaos}
			c.check(t, test.options, writes)
		})
	}
}

// chaos is the disturbance besides reads and writes.
type chaos struct {
	compact   bool // the store forgets
	forget    bool // resources are forgotten
	interrupt bool // the feed fails now and then, and is taken up
	cutOff    bool // it fails and cannot be taken up
	cold      bool // few values are in memory
}

var checkedResources = []string{
	"/registry/stable.example.com/crontabs/",
	"/registry/secrets/",
	"/registry/example.com/nodes/",
	"/registry/", // all of the above: nested on purpose
}

type checker struct {
	chaos
	*fixture
	backend *hooked
	log     []kv.Event // everything that was committed
	logged  atomic.Int64
	writing context.Context // ends when the writers have ended

	mu      sync.Mutex
	read    []reading
	streams []stream
	orphans atomic.Int64
	excused atomic.Int64 // reports something as compacted
}

// reading is a snapshot with its reader's data.
type reading struct {
	prefix   string
	snapshot *watchcache.Snapshot
}

// stream has the events of a watcher.
type stream struct {
	prefix   string
	from, to int64 // events above from, up to to
	events   []*watchcache.Event
}

func (c *checker) check(t *testing.T, o watchcache.Options, writes int) {
	var written context.CancelFunc
	c.writing, written = context.WithCancel(t.Context())
	c.fixture = start(t, o, func(b kv.Backend) kv.Backend {
		c.backend = &hooked{Backend: b, feed: c.fail}
		if c.cold {
			c.backend.loader = again{b.(*memkv.Store)}
		}
		return c.backend
	})
	recording, stop := context.WithCancel(t.Context())
	var writers, others, recorder sync.WaitGroup
	recorder.Go(func() { c.record(recording) })
	for i := range 4 {
		writers.Go(func() { c.write(rand.New(rand.NewPCG(1, uint64(i))), i, writes/4) })
	}
	for i := range 3 {
		others.Go(func() { c.snapshots(rand.New(rand.NewPCG(2, uint64(i)))) })
	}
	for i := range 8 {
		others.Go(func() { c.watchers(rand.New(rand.NewPCG(3, uint64(i)))) })
	}
	others.Go(func() { c.disturb(rand.New(rand.NewPCG(4, 0))) })
	writers.Wait()
	written()
	others.Wait()

	last, err := c.cache.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for c.logged.Load() < last {
		runtime.Gosched()
	}
	stop()
	recorder.Wait()
	for _, prefix := range checkedResources {
		c.read = append(c.read, reading{prefix, c.snapshot(prefix, kv.Latest)})
	}
	c.verify()
	t.Logf("%d events; %d snapshots, %d lists of the store; %d streams, %d reads of its history; %d times no longer known; %d orphans",
		len(c.log), len(c.read), c.backend.lists.Load(), len(c.streams), c.backend.watches.Load(), c.excused.Load(), c.orphans.Load())
}

// fail is called before each batch of the cache's feed.
func (c *checker) fail(b kv.Batch) error {
	if c.writing.Err() != nil || rand.IntN(30) > 0 {
		return nil
	}
	if c.cutOff && rand.IntN(2) == 0 {
		return &kv.CompactedError{Asked: b.Revision, Oldest: b.Revision + 1}
	}
	if c.interrupt {
		return errors.New("interrupted")
	}
	return nil
}

func (c *checker) record(ctx context.Context) {
	for b, err := range c.store.Watch(ctx, "", 1) {
		if err != nil {
			if ctx.Err() == nil {
				c.Error(err)
			}
			return
		}
		c.log = append(c.log, b.Events...)
		c.logged.Store(b.Revision)
	}
}

func (c *checker) write(r *rand.Rand, writer, writes int) {
	for i := range writes {
		prefix := checkedResources[r.IntN(3)]
		key := fmt.Sprintf("%sns%d/%d-%d", prefix, r.IntN(3), writer, r.IntN(12))
		var value []byte
		switch n := r.IntN(10); {
		case n == 0:
			value = []byte("not an object")
		case n < 7:
			value = document(key, fmt.Sprint(writer, "-", i))
		}
		old, err := c.store.Get(c.Context(), key, kv.Latest)
		if value == nil && err != nil {
			continue
		}
		revision, err := c.store.Commit(c.Context(), kv.Write{Key: key, Value: value, Expect: old.Revision})
		if err != nil {
			c.Error(err)
			return
		}
		if r.IntN(20) == 0 { // gives the others time, but stays ahead
			c.synced(revision - r.Int64N(60))
			for range r.IntN(50) {
				runtime.Gosched()
			}
		}
	}
}

// excuse reports whether an error is a consequence of the chaos.
func (c *checker) excuse(err error) bool {
	var compacted *kv.CompactedError
	if errors.As(err, &compacted) && c.compact || errors.Is(err, watchcache.ErrGone) && c.forget {
		c.excused.Add(1)
		return true
	}
	return false
}

func (c *checker) snapshots(r *rand.Rand) {
	for c.writing.Err() == nil {
		prefix := checkedResources[r.IntN(len(checkedResources))]
		revision := kv.Latest
		if r.IntN(3) > 0 {
			revision = max(1, c.cache.Revision()-r.Int64N(200))
		}
		s, err := c.cache.Resource(prefix).Snapshot(c.Context(), revision)
		if err != nil {
			if !c.excuse(err) {
				c.Errorf("snapshot of %s at %d: %v", prefix, revision, err)
			}
			continue
		}
		if revision != kv.Latest && s.Revision() != revision {
			c.Errorf("asked for %s at %d, got %d", prefix, revision, s.Revision())
		}
		for o := range s.Scan("", "") {
			if r.IntN(3) == 0 {
				c.value(o)
			}
		}
		c.mu.Lock()
		c.read = append(c.read, reading{prefix, s})
		enough := len(c.read) > 1500
		c.mu.Unlock()
		if enough {
			return
		}
		runtime.Gosched()
	}
}

func (c *checker) watchers(r *rand.Rand) {
	for c.writing.Err() == nil {
		resource := checkedResources[r.IntN(len(checkedResources))]
		prefix := resource
		if resource != "/registry/" && r.IntN(2) == 0 {
			prefix += fmt.Sprintf("ns%d/", r.IntN(3))
			if r.IntN(3) == 0 {
				prefix += fmt.Sprintf("%d-1", r.IntN(4))
			}
		}
		from := max(1, c.cache.Revision()-r.Int64N(300))
		w, err := c.cache.Resource(resource).Watch(c.Context(), prefix, from)
		if err != nil {
			if !c.excuse(err) {
				c.Errorf("watch of %s after %d: %v", prefix, from, err)
			}
			continue
		}
		c.follow(r, w, stream{prefix: prefix, from: from, to: from})
		w.Close()
	}
}

// follow is one watcher's life.
func (c *checker) follow(r *rand.Rand, w *watchcache.Watcher, s stream) {
	slow := r.IntN(2) == 0
	for life := 5 + r.IntN(30); life > 0; life-- {
		ctx, cancel := context.WithCancel(c.writing)
		if r.IntN(4) == 0 {
			cancel() // takes pending events only
		}
		b, err := w.Next(ctx)
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			if !c.excuse(err) {
				c.Errorf("next of %s at %d: %v", s.prefix, s.to, err)
			}
			break
		}
		s.events = append(s.events, b.Events...)
		for _, e := range b.Events {
			if e.Object != nil && r.IntN(2) == 0 {
				c.value(e.Object)
			}
		}
		if err == nil && b.Revision <= s.to {
			c.Errorf("progress of %s went from %d to %d", s.prefix, s.to, b.Revision)
		}
		s.to = max(s.to, b.Revision)
		if r.IntN(3) == 0 {
			p := w.Progress()
			if p < s.to {
				c.Errorf("progress of %s went from %d back to %d", s.prefix, s.to, p)
			}
			s.to = p
		}
		if err != nil && c.writing.Err() != nil {
			break
		}
		for slow && r.IntN(5) > 0 {
			runtime.Gosched()
		}
		if slow && r.IntN(20) == 0 { // out of the history
			c.synced(min(c.cache.Revision()+100, c.logged.Load()))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams = append(c.streams, s)
}

func (c *checker) disturb(r *rand.Rand) {
	for c.writing.Err() == nil {
		for range 200 {
			runtime.Gosched()
		}
		if c.compact {
			if revision := c.logged.Load() - r.Int64N(150); revision > 1 {
				if err := c.store.Compact(c.Context(), revision); err != nil {
					c.Error(err)
				}
			}
		}
		if c.forget && r.IntN(10) == 0 {
			c.cache.Forget(checkedResources[r.IntN(len(checkedResources))])
		}
	}
}

// verify replays the log and compares.
func (c *checker) verify() {
	for i, e := range c.log {
		if e.Revision != int64(i)+2 {
			c.Fatalf("the test's own log has revision %d at %d", e.Revision, i)
		}
	}
	sort.Slice(c.read, func(i, j int) bool { return c.read[i].snapshot.Revision() < c.read[j].snapshot.Revision() })
	state := map[string]kv.Event{}
	at := int64(1)
	for _, r := range c.read {
		for ; at < r.snapshot.Revision(); at++ {
			if e := c.log[at-1]; e.Value == nil {
				delete(state, e.Key)
			} else {
				state[e.Key] = e
			}
		}
		c.verifySnapshot(r, state)
	}
	for _, s := range c.streams {
		c.verifyStream(s)
	}
}

func (c *checker) verifySnapshot(r reading, state map[string]kv.Event) {
	var want []string
	for key := range state {
		if strings.HasPrefix(key, r.prefix) {
			want = append(want, key)
		}
	}
	slices.Sort(want)
	var got []string
	for o := range r.snapshot.Scan("", "") {
		got = append(got, o.Key)
		e := state[o.Key]
		if value := c.value(o); o.Revision != e.Revision || value != string(e.Value) && value != orphan {
			c.Errorf("snapshot of %s at %d has %s at %d as %s, the store %d as %s",
				r.prefix, r.snapshot.Revision(), o.Key, o.Revision, value, e.Revision, e.Value)
		}
	}
	if !slices.Equal(got, want) {
		c.Errorf("snapshot of %s at %d has %v, the store %v", r.prefix, r.snapshot.Revision(), got, want)
	}
	if len(want) == 0 {
		return
	}
	after := want[rand.IntN(len(want))]
	part := after[:strings.LastIndexByte(after, '/')+1]
	n := 0
	for range r.snapshot.Scan(part, after) {
		n++
	}
	if l := r.snapshot.Len(part, after); l != n {
		c.Errorf("%d objects of %s after %s, counted as %d", n, part, after, l)
	}
}

func (c *checker) verifyStream(s stream) {
	i := 0
	for _, e := range c.log[s.from-1 : s.to-1] {
		if e.Key != s.prefix && !(strings.HasSuffix(s.prefix, "/") && strings.HasPrefix(e.Key, s.prefix)) {
			continue
		}
		if i == len(s.events) {
			c.Errorf("%s from %d to %d: event %d was not told", s.prefix, s.from, s.to, e.Revision)
			return
		}
		if got := c.told(s.events[i]); got != committed(e) && !strings.Contains(got, orphan) {
			c.Errorf("%s from %d to %d: told %s, committed %s", s.prefix, s.from, s.to, got, committed(e))
			return
		}
		i++
	}
	if i < len(s.events) {
		c.Errorf("%s from %d to %d: told %s too much", s.prefix, s.from, s.to, c.told(s.events[i]))
	}
}

// orphan is the value of an object whose record was compacted after its resource was forgotten or the feed was
// interrupted.
const orphan = "an orphan"

// value returns the value of an object.
func (c *checker) value(o *watchcache.Object) string {
	_, err := o.Read()
	var compacted *kv.CompactedError
	if errors.As(err, &compacted) && c.compact && (c.forget || c.backend.cut.Load()) {
		c.orphans.Add(1)
		return orphan
	}
	if err != nil && o.Err() == nil {
		c.Errorf("%s at %d: %v", o.Key, o.Revision, err)
		return ""
	}
	return raw(o)
}

func (c *checker) told(e *watchcache.Event) string {
	out := fmt.Sprint(e.Revision, " ", e.Key())
	if e.Prev != nil {
		out += fmt.Sprintf(" %d %s", e.Prev.Revision, c.value(e.Prev))
	}
	if e.Object != nil {
		out += fmt.Sprintf(" to %d %s", e.Object.Revision, c.value(e.Object))
	}
	return out
}

func committed(e kv.Event) string {
	out := fmt.Sprint(e.Revision, " ", e.Key)
	if e.Prev != nil {
		out += fmt.Sprintf(" %d %s", e.PrevRevision, e.Prev)
	}
	if e.Value != nil {
		out += fmt.Sprintf(" to %d %s", e.Revision, e.Value)
	}
	return out
}
