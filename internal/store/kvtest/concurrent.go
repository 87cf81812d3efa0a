package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/anykind/anykind/internal/store/kv"
)

var concurrentTests = []test{
	{"of many writers to one key one wins at a time", testCounter},
	{"a guarded write never happens after its guard moved", testGuardRace},
	{"of a write with others all is seen or nothing", testPairs},
	{"all watches see the same while everything happens", testEverything},
	{"two reads at one revision see one state", testStableReads},
}

// increment adds one to a counter, and returns the revision of that and whether
// it did it.
func (s *store) increment(key string) (int64, bool) {
	record, err := s.Get(s.ctx, key, kv.Latest)
	if err != nil {
		s.Errorf("get %q: %v", key, err)
		return 0, false
	}
	n, _ := strconv.Atoi(string(record.Value))
	w := kv.Write{Key: key, Value: []byte(strconv.Itoa(n + 1)), Expect: record.Revision}
	revision, err := s.Commit(s.ctx, w)
	var conflict *kv.ConflictError
	if err != nil && !errors.As(err, &conflict) {
		s.Errorf("commit %q: %v", key, err)
	}
	if conflict != nil && (conflict.Actual.Revision <= record.Revision || conflict.Key != key) {
		s.Errorf("conflict at %d says %+v", record.Revision, conflict)
	}
	return revision, err == nil
}

func testCounter(s *store) {
	const writers, each = 8, 25
	r0 := s.create("/counter", "0")
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for done := 0; done < each && !s.Failed(); {
				if _, ok := s.increment("/counter"); ok {
					done++
				}
			}
		})
	}
	wg.Wait()
	record, err := s.Get(s.ctx, "/counter", kv.Latest)
	if err != nil || string(record.Value) != strconv.Itoa(writers*each) {
		s.Fatalf("the counter is %q, %v; want %d", record.Value, err, writers*each)
	}
	for i, e := range s.events("/counter", r0, record.Revision) {
		if string(e.Value) != strconv.Itoa(i+1) || string(e.Prev) != strconv.Itoa(i) {
			s.Errorf("event %d is %s", i, showEvent(e))
		}
	}
}

// testGuardRace deletes namespaces while objects are created in them. No object
// may be created at a revision after that of the deletion.
func testGuardRace(s *store) {
	for i := range 20 {
		ns := fmt.Sprintf("/ns/%d", i)
		nsRevision := s.create(ns, "v")
		var wg sync.WaitGroup
		created := make([]int64, 4)
		for j := range created {
			wg.Go(func() {
				for n := 0; ; n++ {
					r, err := s.Commit(s.ctx, kv.Write{
						Key: fmt.Sprintf("/o/%d/%d/%d", i, j, n), Value: []byte("v"),
						Guards: []kv.Guard{{Key: ns, Revision: nsRevision}},
					})
					if err != nil {
						var conflict *kv.ConflictError
						if !errors.As(err, &conflict) || conflict.Key != ns {
							s.Errorf("got error %v", err)
						}
						return
					}
					created[j] = r
				}
			})
		}
		deleted := s.remove(ns, nsRevision)
		wg.Wait()
		for _, r := range created {
			if r > deleted {
				s.Errorf("an object was created at %d in a namespace deleted at %d", r, deleted)
			}
		}
	}
}

// testPairs writes two keys together while others read them. Of many concurrent writers with the same
// expectations, one succeeds.
func testPairs(s *store) {
	const writers, each = 6, 20
	read := func() (kv.Record, kv.Record) {
		page, err := s.List(s.ctx, kv.Range{Prefix: "/pair/"})
		if err != nil || len(page.Records) != 2 || string(page.Records[0].Value) != string(page.Records[1].Value) {
			s.Errorf("the pair is %s, %v", showPage(page), err)
			return kv.Record{}, kv.Record{}
		}
		return page.Records[0], page.Records[1]
	}
	if _, err := s.Commit(s.ctx, kv.Write{Key: "/pair/b", Value: []byte("0"), With: []kv.Change{{Key: "/pair/a", Value: []byte("0")}}}); err != nil {
		s.Fatal(err)
	}
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for done := 0; done < each && !s.Failed(); {
				a, b := read()
				n, _ := strconv.Atoi(string(a.Value))
				next := []byte(strconv.Itoa(n + 1))
				_, err := s.Commit(s.ctx, kv.Write{Key: b.Key, Value: next, Expect: b.Revision, With: []kv.Change{{Key: a.Key, Value: next, Expect: a.Revision}}})
				var conflict *kv.ConflictError
				if err == nil {
					done++
				} else if !errors.As(err, &conflict) {
					s.Errorf("got error %v", err)
				}
			}
		})
	}
	wg.Wait()
	if a, _ := read(); string(a.Value) != strconv.Itoa(writers*each) {
		s.Errorf("the pair is at %s, want %d", a.Value, writers*each)
	}
}

// testEverything runs writers and watches, and compares what the watches saw with the final state.
func testEverything(s *store) {
	const writers, each = 6, 60
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	r0 := s.revision()
	var writing, watching sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for j := range each {
				key := fmt.Sprintf("/w/%d/%d", i, j%7)
				s.replace(key, fmt.Sprint(j), j%5 == 4)
			}
		})
	}
	saw := make([]map[string]string, 4)
	for i := range saw {
		watching.Go(func() { saw[i] = s.replay(ctx, r0) })
	}
	writing.Wait()
	last := s.create("/end", "v")
	watching.Wait()

	want := map[string]string{}
	page, err := s.List(s.ctx, kv.Range{Revision: last})
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range page.Records {
		want[r.Key] = show(r.Value, r.Revision)
	}
	for i, got := range saw {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			s.Errorf("watch %d saw %v, want %v", i, got, want)
		}
	}
	s.compact(last)
	if after := s.list(kv.Range{}); after != showPage(page) {
		s.Errorf("compacting changed %s to %s", showPage(page), after)
	}
}

// replace writes or deletes a key that only the caller writes.
func (s *store) replace(key, value string, remove bool) {
	record, err := s.Get(s.ctx, key, kv.Latest)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		s.Errorf("get: %v", err)
		return
	}
	w := kv.Write{Key: key, Value: []byte(value), Expect: record.Revision}
	if remove && record.Revision != kv.Absent {
		w.Value = nil
	}
	if _, err := s.Commit(s.ctx, w); err != nil {
		s.Errorf("commit: %v", err)
	}
}

// replay applies the events of a watch to an empty map until the key "/end"
// appears, checking that each event follows from the one before.
func (s *store) replay(ctx context.Context, after int64) map[string]string {
	state := map[string]string{}
	for batch, err := range s.watch(ctx, "/", after) {
		if err != nil {
			s.Errorf("watch: %v", err)
			break
		}
		for _, e := range batch.Events {
			prev := ""
			if e.Prev != nil {
				prev = show(e.Prev, e.PrevRevision)
			}
			if state[e.Key] != prev {
				s.Errorf("event %s, but the key was %q", showEvent(e), state[e.Key])
			}
			delete(state, e.Key)
			if e.Value != nil {
				state[e.Key] = show(e.Value, e.Revision)
			}
			if e.Key == "/end" {
				return state
			}
		}
	}
	return state
}

// testStableReads reads each new revision twice, with writes in between.
func testStableReads(s *store) {
	for i := range 10 {
		s.create(fmt.Sprintf("/k/%d", i), "0")
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s.increment(fmt.Sprintf("/k/%d", (i+n)%10))
			}
		})
	}
	for range 100 {
		page, err := s.List(s.ctx, kv.Range{Prefix: "/k/"})
		if err != nil {
			s.Fatal(err)
		}
		first := showPage(page)
		s.expectList(kv.Range{Prefix: "/k/", Revision: page.Revision}, first)
		for _, r := range page.Records {
			s.expect(r.Key, page.Revision, show(r.Value, r.Revision))
		}
	}
	cancel()
	wg.Wait()
}
