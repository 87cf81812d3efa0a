package kvtest

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/store/kv"
)

// A model is the contract done in the most naive way: a copy of the whole map
// for every revision.
type model struct {
	first  int64 // the revision that the store was at when it was new
	states []map[string]kv.Record
	events [][]kv.Event // events[i] leads from states[i] to states[i+1]
	oldest int64
	// together applies the changes of one write at one revision.
	together bool
}

func newModel(revision int64, together bool) *model {
	return &model{first: revision, states: []map[string]kv.Record{{}}, oldest: 1, together: together}
}

func (m *model) newest() int64 { return m.first + int64(len(m.events)) }

func (m *model) resolve(revision int64) (int64, error) {
	switch {
	case revision == kv.Latest:
		return m.newest(), nil
	case revision < m.oldest:
		return 0, &kv.CompactedError{Asked: revision, Oldest: m.oldest}
	case revision > m.newest():
		return 0, &kv.FutureError{Asked: revision, Newest: m.newest()}
	}
	return revision, nil
}

func (m *model) at(revision int64) map[string]kv.Record {
	return m.states[max(0, revision-m.first)]
}

func (m *model) get(key string, revision int64) (kv.Record, error) {
	revision, err := m.resolve(revision)
	if err != nil {
		return kv.Record{}, err
	}
	if r, ok := m.at(revision)[key]; ok {
		return r, nil
	}
	return kv.Record{}, kv.ErrNotFound
}

func (m *model) list(r kv.Range) (kv.Page, error) {
	revision, err := m.resolve(r.Revision)
	if err != nil {
		return kv.Page{}, err
	}
	page := kv.Page{Revision: revision}
	state := m.at(revision)
	for _, key := range slices.Sorted(maps.Keys(state)) {
		if strings.HasPrefix(key, r.Prefix) && key > r.After {
			page.Records = append(page.Records, state[key])
		}
	}
	if r.Limit > 0 && len(page.Records) > r.Limit {
		page.Records, page.More = page.Records[:r.Limit], true
	}
	return page, nil
}

func (m *model) commit(w kv.Write) (int64, error) {
	state := m.at(m.newest())
	expect := func(c kv.Change) error {
		if actual := state[c.Key]; actual.Revision != c.Expect || (c.Value == nil && c.Expect == kv.Absent) {
			return &kv.ConflictError{Key: c.Key, Expected: c.Expect, Actual: actual}
		}
		return nil
	}
	if err := expect(w.First()); err != nil {
		return 0, err
	}
	for _, g := range w.Guards {
		if state[g.Key].Revision != g.Revision {
			return 0, &kv.ConflictError{Key: g.Key, Expected: g.Revision, Actual: state[g.Key]}
		}
	}
	for _, c := range w.With {
		if err := expect(c); err != nil {
			return 0, err
		}
	}
	revision := m.newest() + 1
	for c := range w.All() {
		m.change(c, m.together && c.Key != w.Key)
	}
	return revision, nil
}

// change applies a change, at the revision of the one before or at its own.
func (m *model) change(c kv.Change, same bool) {
	last := m.states[len(m.states)-1]
	prev := last[c.Key]
	if !same {
		m.states, m.events = append(m.states, maps.Clone(last)), append(m.events, nil)
	}
	now, revision := m.states[len(m.states)-1], m.newest()
	delete(now, c.Key)
	if c.Value != nil {
		now[c.Key] = kv.Record{Key: c.Key, Value: c.Value, Revision: revision}
	}
	events := &m.events[len(m.events)-1]
	*events = append(*events, kv.Event{
		Key: c.Key, Revision: revision, Value: c.Value,
		Prev: prev.Value, PrevRevision: prev.Revision,
	})
}

func (m *model) compact(revision int64) error {
	if revision > m.newest() {
		return &kv.FutureError{Asked: revision, Newest: m.newest()}
	}
	m.oldest = max(m.oldest, revision)
	return nil
}

// eventsAfter returns the events that a watch of prefix must deliver after a revision.
func (m *model) eventsAfter(prefix string, after int64) ([]kv.Event, error) {
	after, err := m.resolve(after)
	if err != nil {
		return nil, err
	}
	var events []kv.Event
	for _, e := range slices.Concat(m.events[max(0, after-m.first):]...) {
		if strings.HasPrefix(e.Key, prefix) {
			events = append(events, e)
		}
	}
	return events, nil
}

// sameError reports whether two errors are equal for a caller. The record of a conflict may lack its
// value.
func sameError(got, want error) bool {
	var gotConflict, wantConflict *kv.ConflictError
	var gotCompacted, wantCompacted *kv.CompactedError
	var gotFuture, wantFuture *kv.FutureError
	switch {
	case want == nil || got == nil:
		return got == want
	case errors.As(want, &wantConflict):
		return errors.As(got, &gotConflict) &&
			gotConflict.Key == wantConflict.Key &&
			gotConflict.Expected == wantConflict.Expected &&
			gotConflict.Actual.Revision == wantConflict.Actual.Revision &&
			(gotConflict.Actual.Value == nil || string(gotConflict.Actual.Value) == string(wantConflict.Actual.Value))
	case errors.As(want, &wantCompacted):
		return errors.As(got, &gotCompacted) && *gotCompacted == *wantCompacted
	case errors.As(want, &wantFuture):
		return errors.As(got, &gotFuture) && *gotFuture == *wantFuture
	}
	return errors.Is(got, want)
}
