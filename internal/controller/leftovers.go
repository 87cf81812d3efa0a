package controller

import (
	"sync"
	"sync/atomic"

	"github.com/anykind/anykind/internal/store/kv"
)

// Leftovers are the objects that are left in places that are being emptied, such
// as a namespace that goes. A controller deletes what is in a place, says what is
// left, and is told by the events when that is gone: it waits without looking.
// Its zero value is empty.
type Leftovers[Note any] struct {
	active atomic.Int32 // places
	mu     sync.Mutex
	places map[string]*place[Note]
}

// A place is what is known of one. Nothing is created in it, so it only gets less.
type place[Note any] struct {
	note Note            // of who has looked last
	left map[string]bool // keys of the objects that were seen to be left
	// gone are the keys that were deleted, and when, since a look began. Nil
	// while nobody looks.
	gone map[string]int64
}

// Any reports whether there is any place to be emptied.
func (l *Leftovers[Note]) Any() bool { return l.active.Load() > 0 }

// See takes note of what happens in a place. It reports whether something that
// was left has changed, and whether nothing is left.
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

// Begin says that somebody looks at a place, and returns the note of who did last.
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

// End ends a look that has found keys, each as of a revision, to be left. It
// reports whether any of them still is.
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

// GiveUp ends a look that has found nothing out.
func (l *Leftovers[Note]) GiveUp(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.places[name]; p != nil {
		p.gone = nil
	}
}

// Forget says that a place is gone.
func (l *Leftovers[Note]) Forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places[name] != nil {
		delete(l.places, name)
		l.active.Add(-1)
	}
}
