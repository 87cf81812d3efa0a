package watchcache_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/store/watchcache"
)

// Repeated calls of Since return the events in between, or the whole state if the history does not
// reach so far.
func TestSince(t *testing.T) {
	f := start(t, watchcache.Options{HistoryEvents: 4}, nil)
	r := f.cache.Resource(crontabs)
	var at int64
	step := func(want string) {
		t.Helper()
		before := r.Changed()
		events, whole, now, err := r.EventsSince(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		got := "all:"
		if whole != nil {
			for o := range whole.Scan("", "") {
				got += " " + o.Name() + "=" + said(o)
			}
		} else {
			got = "events:"
			for _, e := range events {
				got += fmt.Sprintf(" %s=%s", e.Key()[len(crontabs):], said(e.Object))
			}
		}
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if now < before || now < r.Changed() {
			t.Errorf("now is %d, and the last change at %d, then at %d", now, before, r.Changed())
		}
		at = now
	}
	changed := func(want bool) {
		t.Helper()
		if c := r.Changed(); (c == 0 || c > at) != want {
			t.Errorf("changed at %d, seen at %d", c, at)
		}
	}
	f.put(crontabs+"a", "one")
	changed(true)
	step("all: a=one")
	f.put("/registry/others/a", "one")
	changed(false)
	step("events:")
	f.put(crontabs+"b", "one")
	f.del(crontabs + "a")
	changed(true)
	step("events: b=one a=nothing")
	for i := range 9 {
		f.put(crontabs+"c", fmt.Sprint(i))
	}
	changed(true)
	step("all: b=one c=8")
	f.cache.Forget(crontabs)
	changed(true)
	step("events:") // nothing has changed
	changed(false)
}

// A watcher that is behind when its resource is forgotten still gets the earlier events.
func TestTheLastOfAForgottenResource(t *testing.T) {
	f := start(t, watchcache.Options{HistoryEvents: 4}, nil)
	f.put(crontabs+"a", "one")
	begin := f.put(crontabs+"b", "one")
	late, err := f.cache.Resource(crontabs).Watch(t.Context(), crontabs, begin)
	if err != nil {
		t.Fatal(err)
	}
	one, err := f.cache.Resource(crontabs).Watch(t.Context(), crontabs+"b", begin)
	if err != nil {
		t.Fatal(err)
	}
	for range 6 { // more than is remembered
		f.put(crontabs+"a", "two")
	}
	f.del(crontabs + "a")
	f.del(crontabs + "b")
	f.cache.Forget(crontabs)
	f.put(crontabs+"c", "not theirs any more")
	for _, w := range []struct {
		watcher *watchcache.Watcher
		want    string
	}{{late, "two two two two two two nothing nothing"}, {one, "nothing"}} {
		var told []string
		for {
			batch, err := w.watcher.Next(t.Context())
			if err == watchcache.ErrGone {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range batch.Events {
				told = append(told, said(e.Object))
			}
		}
		if got := strings.Join(told, " "); got != w.want {
			t.Errorf("told %q, want %q", got, w.want)
		}
	}
}
