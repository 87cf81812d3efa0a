package controller

import (
	"sync"
	"sync/atomic"

	"github.com/anykind/anykind/internal/store/kv"
)

// Leftovers track the remaining objects of a place that is being emptied, such as a namespace in
// deletion. A controller deletes the objects of a place and records those that remain. Events then
// tell it when they are gone, without polling. The zero value is empty.
type Leftovers[Note any] struct {
	active atomic.Int32 // number of places
	mu     sync.Mutex
	places map[string]*place[Note]
}

// A place has the remaining objects of one place. Nothing is created in it, so they only get fewer.
type place[Note any] struct {
	note Note            // of the last look
	left map[string]bool // keys of the remaining objects
	// gone are the keys deleted since the present look began, with their revisions. Nil between
	// looks.
	gone map[string]int64
}

// Any reports whether any place is being emptied.
func (l *Leftovers[Note]) Any() bool { return l.active.Load() > 0 }

// See processes an event in a place. It reports whether a remaining object has changed, and whether
// none remain.
func (l *Leftovers[Note]) See(name string, e *kv.Event) (changed, none bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.places[name]
	if p == nil {
		return false, false
	}
	if e.Value == nil && p.gone != nil {
		p.gone[e.Key] = e.Revision
		return false, false
	}
	if !p.left[e.Key] {
		return false, false
	}
	if e.Value == nil {
		delete(p.left, e.Key)
	}
	return true, len(p.left) == 0
}

// Begin begins a look at a place, and returns the note of the previous look.
func (l *Leftovers[Note]) Begin(name string) Note {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.places[name]
	if p == nil {
		p = &place[Note]{}
		if l.places == nil {
			l.places = map[string]*place[Note]{}
		}
		l.places[name] = p
		l.active.Add(1)
	}
	p.gone = map[string]int64{}
	return p.note
}

// End ends a look that found remaining objects, by key and revision. It reports whether any of them
// still remain.
func (l *Leftovers[Note]) End(name string, keys map[string]int64, note Note) (left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.places[name]
	if p == nil {
		return false
	}
	gone := p.gone
	p.gone, p.note = nil, note
	p.left = map[string]bool{}
	for key, revision := range keys {
		if gone[key] <= revision {
			p.left[key] = true
		}
	}
	return len(p.left) > 0
}

// GiveUp ends a failed look.
func (l *Leftovers[Note]) GiveUp(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.places[name]; p != nil {
		p.gone = nil
	}
}

// Forget removes a place.
func (l *Leftovers[Note]) Forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places[name] != nil {
		delete(l.places, name)
		l.active.Add(-1)
	}
}
