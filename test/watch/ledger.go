package watch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// A write is one line of the log.
type write struct {
	revision int64
	key      key
	now      *state // nil for a deletion
}

// A ledger has the writers' knowledge of the stored objects. Two facts are missing from responses: the
// revision of a deletion, and the outcome of a write without a response. The ledger takes them from
// the streams, which must agree.
type ledger struct {
	mu       sync.Mutex
	writes   map[int64]write
	newest   []int64             // acknowledged, by kind
	maybe    map[string]key      // by value: writes without a response
	deleted  map[string]deletion // by uid
	problems []error
}

// A deletion is a deletion at an unknown revision.
type deletion struct {
	key      key
	after    int64 // last revision of the object
	answered bool
}

func newLedger() *ledger {
	return &ledger{writes: map[int64]write{}, newest: make([]int64, len(kinds)), maybe: map[string]key{}, deleted: map[string]deletion{}}
}

// wrote adds an acknowledged write.
func (l *ledger) wrote(k key, now state) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.maybe, now.value)
	l.newest[k.kind] = max(l.newest[k.kind], now.revision)
	if other, ok := l.writes[now.revision]; ok {
		return fmt.Errorf("revision %d is that of %v and of %v", now.revision, other.key, k)
	}
	l.writes[now.revision] = write{now.revision, k, &now}
	return nil
}

// tried adds a write that may have happened or may still happen.
func (l *ledger) tried(k key, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maybe[value] = k
}

// removed adds a deletion of an object with a known state.
func (l *ledger) removed(k key, was state, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted[was.uid] = deletion{k, was.revision, answered || l.deleted[was.uid].answered}
}

// reached returns a revision at or above all acknowledged ones of a kind.
func (l *ledger) reached(kind int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest[kind]
}

// learn takes facts from an observation that responses did not have. The comparison with other streams
// follows later, as for any other write.
func (l *ledger) learn(o observation) {
	if o.what == bookmark {
		return
	}
	if _, known := l.writes[o.revision]; known {
		return
	}
	now := o.state
	if d, ok := l.deleted[now.uid]; o.what == gone && ok && d.key == o.key {
		if o.revision <= d.after {
			l.problems = append(l.problems, fmt.Errorf("%v was deleted at revision %d, and written at %d", o.key, o.revision, d.after))
		}
		delete(l.deleted, now.uid)
		l.writes[o.revision] = write{o.revision, o.key, nil}
		return
	}
	if now.value == "" {
		// A write of another client. Its object has no label, so all selections see the same.
		w := write{o.revision, o.key, &now}
		if o.what == gone {
			w.now = nil
		}
		l.writes[o.revision] = w
		return
	}
	if k, ok := l.maybe[now.value]; ok && k == o.key && (o.what == added || o.what == modified) {
		delete(l.maybe, now.value)
		l.writes[o.revision] = write{o.revision, o.key, &now}
	}
}

// told returns the last known revision at which a selection got an event of an object.
func (l *ledger) told(of *selection, k key) (revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var log []write
	for _, w := range l.writes {
		if w.key == k {
			log = append(log, w)
		}
	}
	slices.SortFunc(log, func(a, b write) int { return cmp.Compare(a.revision, b.revision) })
	v := newView(of)
	for _, w := range log {
		if e, ok := v.apply(w); ok {
			revision = e.revision
		}
	}
	return revision
}

// logs returns the log of each kind in order.
func (l *ledger) logs() ([][]write, error) {
	logs := make([][]write, len(kinds))
	for _, w := range l.writes {
		logs[w.key.kind] = append(logs[w.key.kind], w)
	}
	for _, log := range logs {
		slices.SortFunc(log, func(a, b write) int { return cmp.Compare(a.revision, b.revision) })
	}
	for _, d := range l.deleted {
		if d.answered {
			l.problems = append(l.problems, fmt.Errorf("%v, last written at %d, was deleted without an event", d.key, d.after))
		}
	}
	return logs, errors.Join(l.problems...)
}
