package boltkv

import (
	"sync"

	"github.com/anykind/anykind/internal/store/kv"
)

// Limits of a group, which is one transaction.
const (
	groupWrites = 1024
	groupBytes  = 8 << 20
)

// A request is a write that waits for its outcome.
type request struct {
	write    kv.Write
	revision int64
	err      error
	done     chan struct{}
}

// queue holds the writes that the committer has not taken yet.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	compact int64 // the highest requested revision
	askers  []*request
	closed  bool
	wake    chan struct{} // holds one signal; the fields above tell the reason
}

// add puts a write into the queue, unless that is closed.
func (q *queue) add(w kv.Write) (*request, bool) {
	r := &request{write: w, done: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, false
	}
	q.waiting = append(q.waiting, r)
	q.notify()
	return r, true
}

// addCompact requests a compaction, unless the queue is closed.
func (q *queue) addCompact(revision int64) (*request, bool) {
	r := &request{done: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, false
	}
	q.compact = max(q.compact, revision)
	q.askers = append(q.askers, r)
	q.notify()
	return r, true
}

// close rejects further writes. The committer still takes the queued ones.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.notify()
}

func (q *queue) notify() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// A group is the work of the committer in one transaction.
type group struct {
	writes  []*request
	compact int64 // the oldest revision to keep from now on, if greater
	askers  []*request
}

func (g *group) empty() bool { return len(g.writes) == 0 && len(g.askers) == 0 }

// take returns the queued requests, and whether the queue has ended.
func (q *queue) take() (g group, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.waiting) && n < groupWrites && size < groupBytes {
		size += q.waiting[n].write.Size()
		n++
	}
	g = group{writes: q.waiting[:n:n], compact: q.compact, askers: q.askers}
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil
	}
	q.compact, q.askers = 0, nil
	return g, q.closed && len(q.waiting) == 0
}

// length returns the number of queued writes.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}
