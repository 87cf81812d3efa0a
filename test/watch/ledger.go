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
	now      *state // nil: it was deleted
}

// A ledger is what the writers know of what is stored. Two things the server does
// not say when it acknowledges: the revision of a deletion, and anything at all
// when it dies before. The ledger takes them from the streams, which must agree.
type ledger struct {
	mu       sync.Mutex
	writes   map[int64]write
	newest   []int64             // acknowledged, by kind
	maybe    map[string]key      // by value: writes without an answer
	deleted  map[string]deletion // by uid
	problems []error
}

// A deletion is one whose revision is not known.
type deletion struct {
	key      key
	after    int64 // the last revision of the object
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

// tried adds a write that may have happened or may yet.
func (l *ledger) tried(k key, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maybe[value] = k
}

// removed adds a deletion of what was last.
func (l *ledger) removed(k key, was state, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted[was.uid] = deletion{k, was.revision, answered || l.deleted[was.uid].answered}
}

// reached returns a revision at or above all that were acknowledged for a kind.
func (l *ledger) reached(kind int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest[kind]
}

// learn takes from an observation what the server did not say to the writer. That
// the others were told the same is checked later, as for any other write.
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
		// Not one of ours. It has no label, so it comes and goes for all alike.
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

// told returns the revision at which a selection was told of an object last, as
// far as it is known.
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

// settle returns the log of each kind in order.
func (l *ledger) settle() ([][]write, error) {
	logs := make([][]write, len(kinds))
	for _, w := range l.writes {
		logs[w.key.kind] = append(logs[w.key.kind], w)
	}
	for _, log := range logs {
		slices.SortFunc(log, func(a, b write) int { return cmp.Compare(a.revision, b.revision) })
	}
	for _, d := range l.deleted {
		if d.answered {
			l.problems = append(l.problems, fmt.Errorf("%v, last written at %d, was deleted, and nobody saw it", d.key, d.after))
		}
	}
	return logs, errors.Join(l.problems...)
}
