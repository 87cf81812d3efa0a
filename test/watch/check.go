package watch

import (
	"errors"
	"fmt"
	"maps"
)

// Types of events.
const (
	added    = "ADDED"
	modified = "MODIFIED"
	gone     = "DELETED"
	bookmark = "BOOKMARK"
)

// An observation is one event of a watch, or one item of a list (as ADDED).
type observation struct {
	what     string
	revision int64 // of the event
	key      key
	state    state // state of its object, without the revision for DELETED
	last     bool  // it is the bookmark that ends the initial events
}

func (o observation) String() string {
	return fmt.Sprintf("%s %v (%s) at %d", o.what, o.key, o.state.value, o.revision)
}

// A beginning is the way in which a story begins.
type beginning int

const (
	fromList     beginning = iota // a list, and a watch from its revision
	fromRevision                  // a watch from a revision of the past
	fromNow                       // a watch that begins with the current objects
	fromAny                       // the same, at any revision
	streamed                      // the same, with a bookmark at their end
)

// A story has the events of one watcher until a restart from scratch: the initial objects, and every
// later event, across any number of connections.
type story struct {
	of       selection
	begins   beginning
	revision int64 // revision of the list, or of the start
	floor    int64 // acknowledged revision before the start
	items    []observation
	events   []observation
	whole    bool // it was followed to the end
}

func (s *story) String() string {
	return fmt.Sprintf("watch of %v, %s at %d (%d was acknowledged), %d events", &s.of,
		[...]string{"after a list", "from a revision", "from now", "from any time", "with a streamed list"}[s.begins],
		s.revision, s.floor, len(s.events))
}

// An expected event is one that follows from the log.
type expected struct {
	what     string
	revision int64
	key      key
	state    state
}

// view replays a log for a selection.
type view struct {
	of  *selection
	all map[key]state // all objects
	now map[key]state // selected objects
}

func newView(of *selection) *view {
	return &view{of: of, all: map[key]state{}, now: map[key]state{}}
}

// apply applies one write and returns the event of a watch for it, if any.
func (v *view) apply(w write) (expected, bool) {
	was, existed := v.all[w.key]
	before := existed && v.of.sees(w.key, was)
	after := w.now != nil && v.of.sees(w.key, *w.now)
	delete(v.all, w.key)
	delete(v.now, w.key)
	if w.now != nil {
		v.all[w.key] = *w.now
	}
	if after {
		v.now[w.key] = *w.now
	}
	switch {
	case after && before:
		return expected{modified, w.revision, w.key, *w.now}, true
	case after:
		return expected{added, w.revision, w.key, *w.now}, true
	case before:
		return expected{gone, w.revision, w.key, was}, true
	default:
		return expected{}, false
	}
}

// check compares a story with the log of its kind, up to the revision end for a complete story.
func (s *story) check(log []write, end int64) error {
	v := newView(&s.of)
	next := 0
	until := func(revision int64) {
		for ; next < len(log) && log[next].revision <= revision; next++ {
			v.apply(log[next])
		}
	}
	switch s.begins {
	case fromList:
		if s.revision < s.floor {
			return fmt.Errorf("%v: the list is older than what was acknowledged before it", s)
		}
		until(s.revision)
		if err := same(s.items, v.now); err != nil {
			return fmt.Errorf("%v: the list: %w", s, err)
		}
		return s.follow(v, log[next:], s.events, end)
	case fromRevision:
		until(s.revision)
		return s.follow(v, log[next:], s.events, end)
	case streamed:
		return s.checkStreamed(log, end)
	default:
		return s.checkUnmarked(log, end)
	}
}

// checkStreamed checks a story whose initial events end with a bookmark.
func (s *story) checkStreamed(log []write, end int64) error {
	for i, o := range s.events {
		switch {
		case o.what == bookmark && o.last:
			if o.revision < s.floor {
				return fmt.Errorf("%v: the initial events are older than what was acknowledged before them", s)
			}
			v := newView(&s.of)
			next := 0
			for ; next < len(log) && log[next].revision <= o.revision; next++ {
				v.apply(log[next])
			}
			if err := same(s.events[:i], v.now); err != nil {
				return fmt.Errorf("%v: the initial events, at %d: %w", s, o.revision, err)
			}
			return s.follow(v, log[next:], s.events[i:], end)
		case o.what != added:
			return fmt.Errorf("%v: %v among the initial events", s, o)
		}
	}
	if s.whole {
		return fmt.Errorf("%v: the initial events did not end", s)
	}
	return nil
}

// checkUnmarked checks a story that begins with objects at an unknown revision: there must be one that
// fits all events.
func (s *story) checkUnmarked(log []write, end int64) error {
	v := newView(&s.of)
	var nearest error
	for next := 0; next <= len(log); next++ {
		if next > 0 {
			v.apply(log[next-1])
		}
		if next < len(log) && log[next].revision <= s.floor {
			continue
		}
		initial := s.events[:min(len(v.now), len(s.events))]
		if err := within(initial, v.now); err != nil {
			if nearest == nil {
				nearest = err
			}
			continue
		}
		err := s.follow(v, log[next:], s.events[len(initial):], end)
		if err == nil {
			return nil
		}
		nearest = err
	}
	return fmt.Errorf("%v: it fits to no moment: %w", s, nearest)
}

// follow compares events with the expected ones after the state of v. It does not change v.
func (s *story) follow(v *view, log []write, events []observation, end int64) error {
	v = &view{of: v.of, all: maps.Clone(v.all), now: maps.Clone(v.now)}
	next := 0
	var want expected
	advance := func() bool {
		for ; next < len(log); next++ {
			if e, ok := v.apply(log[next]); ok {
				want = e
				next++
				return true
			}
		}
		return false
	}
	more := advance()
	seen := int64(0)
	for _, o := range events {
		switch {
		case o.what == bookmark && o.revision < seen:
			return fmt.Errorf("%v: a bookmark at %d after revision %d", s, o.revision, seen)
		case o.what == bookmark && more && o.revision >= want.revision:
			return fmt.Errorf("%v: a bookmark at %d before %s %v at %d", s, o.revision, want.what, want.key, want.revision)
		case o.what == bookmark:
			seen = o.revision
			continue
		case !more:
			return fmt.Errorf("%v: %v, of which the log knows nothing", s, o)
		case o.what != want.what, o.revision != want.revision, o.key != want.key, o.state.uid != want.state.uid, o.state.value != want.state.value:
			return fmt.Errorf("%v: %v, and not %s %v (%s) at %d", s, o, want.what, want.key, want.state.value, want.revision)
		}
		seen = o.revision
		more = advance()
	}
	if s.whole && more && want.revision <= end {
		return fmt.Errorf("%v: it ends before %s %v at %d", s, want.what, want.key, want.revision)
	}
	return nil
}

// within returns an error if an object differs from its state at the time.
func within(have []observation, were map[key]state) error {
	seen := map[key]bool{}
	for _, o := range have {
		was, ok := were[o.key]
		switch {
		case o.what != added || !ok:
			return fmt.Errorf("%v, which was not there", o)
		case o.state != was:
			return fmt.Errorf("%v, which was %v", o, was)
		case seen[o.key]:
			return fmt.Errorf("%v is there twice", o)
		}
		seen[o.key] = true
	}
	return nil
}

// same returns an error if the objects differ from all objects at the time.
func same(have []observation, were map[key]state) error {
	if err := within(have, were); err != nil {
		return err
	}
	if len(have) == len(were) {
		return nil
	}
	missing := errors.New("nothing")
	for k, was := range were {
		found := false
		for _, o := range have {
			found = found || o.key == k
		}
		if !found {
			missing = fmt.Errorf("%v (%s) at %d", k, was.value, was.revision)
		}
	}
	return fmt.Errorf("%d objects of %d, missing %w", len(have), len(were), missing)
}
