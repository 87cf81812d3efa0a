package lifecycle

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/kv"
)

// leftoverPause is how long changes to what is left in a namespace may add up
// before it is looked at again.
const leftoverPause = 2 * time.Second

// leaving is what holds the namespaces that are being terminated.
type leaving struct {
	active     atomic.Int32 // namespaces
	mu         sync.Mutex
	namespaces map[string]*departure
}

// A departure is what is known of a namespace that is being terminated. Nothing
// can be created in it, so it only gets less.
type departure struct {
	// kinds that may have objects left. Nil before the first look at all kinds.
	kinds map[schema.GroupResource]bool
	left  map[string]bool // keys of the objects that were seen to be left
	// gone are the keys that were deleted, and when, since a look began. Nil
	// while nobody looks.
	gone map[string]int64
}

// see takes note of what happens in the namespaces.
func (l *leaving) see(e *kv.Event, q *queue) {
	if l.active.Load() == 0 {
		return
	}
	name := namespaceOf(e.Key)
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.namespaces[name]
	if d == nil {
		return
	}
	if e.Value == nil && d.gone != nil {
		d.gone[e.Key] = e.Revision
		return
	}
	if !d.left[e.Key] {
		return
	}
	if e.Value == nil {
		delete(d.left, e.Key)
	}
	again := task{do: terminate, key: name}
	if len(d.left) == 0 {
		q.add(again)
		return
	}
	q.after(again, leftoverPause)
}

// begin says that somebody looks at a namespace, and returns the kinds to look
// at, nil for all.
func (l *leaving) begin(name string) []schema.GroupResource {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.namespaces[name]
	if d == nil {
		d = &departure{}
		if l.namespaces == nil {
			l.namespaces = map[string]*departure{}
		}
		l.namespaces[name] = d
		l.active.Add(1)
	}
	d.gone = map[string]int64{}
	if d.kinds == nil {
		return nil
	}
	return slices.Collect(maps.Keys(d.kinds))
}

// end takes what a look has found, or nil if it was given up: the keys of what
// is left, each as of a revision, and the kinds that may have objects left. It
// reports whether something of it is still there.
func (l *leaving) end(name string, found *contents) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.namespaces[name]
	if d == nil {
		return false
	}
	gone := d.gone
	d.gone = nil
	if found == nil {
		return true
	}
	d.kinds = found.kinds
	d.left = map[string]bool{}
	for key, revision := range found.keys {
		if gone[key] <= revision {
			d.left[key] = true
		}
	}
	return len(d.left) > 0
}

// forget says that a namespace is gone.
func (l *leaving) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.namespaces[name] != nil {
		delete(l.namespaces, name)
		l.active.Add(-1)
	}
}
