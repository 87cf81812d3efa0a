package quota

import (
	"context"
	"sync"
)

// Turns serialize the writes of the quotas of a namespace. Without them, all concurrent writes but
// one would conflict and retry. They only save retries: each server has its own, and charges are
// correct without any.
type Turns struct {
	mu   sync.Mutex
	rows map[string]*row // of namespaces with writers
}

// A row is the queue of the writers of a namespace.
type row struct {
	waiting  int
	turn     chan struct{} // holds the turn while it is free
	revision int64         // of the last write
}

// Take waits for the turn in a namespace. The previous write is at revision after, or 0 if unknown.
// The holder calls end with the revision of its own write, or 0.
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
