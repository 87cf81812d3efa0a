package quota

import (
	"context"
	"sync"
)

// Turns let those who write the quotas of a namespace do so one after the other. Without them, all
// writes but one would find that the quota has changed, and begin again, each time. Other servers have
// turns of their own: what is counted is right without any.
type Turns struct {
	mu   sync.Mutex
	rows map[string]*row // of namespaces in which somebody waits or writes
}

// A row is those who wait in a namespace.
type row struct {
	waiting  int
	turn     chan struct{} // has the turn while nobody does
	revision int64         // of the last write
}

// Take waits for the turn in a namespace. What the one before has written is at the revision after, if
// that is known. Its holder ends it with the revision of its own write, or 0.
func (t *Turns) Take(ctx context.Context, namespace string) (after int64, end func(revision int64), err error) {
	r := t.join(namespace)
	select {
	case <-r.turn:
	case <-ctx.Done():
		t.leave(namespace, r)
		return 0, nil, ctx.Err()
	}
	return r.revision, func(revision int64) {
		r.revision = max(r.revision, revision)
		r.turn <- struct{}{}
		t.leave(namespace, r)
	}, nil
}

func (t *Turns) join(namespace string) *row {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rows[namespace]
	if r == nil {
		if t.rows == nil {
			t.rows = map[string]*row{}
		}
		r = &row{turn: make(chan struct{}, 1)}
		r.turn <- struct{}{}
		t.rows[namespace] = r
	}
	r.waiting++
	return r
}

func (t *Turns) leave(namespace string, r *row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.waiting--; r.waiting == 0 {
		delete(t.rows, namespace)
	}
}
