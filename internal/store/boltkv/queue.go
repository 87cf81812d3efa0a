package boltkv

import (
	"sync"

	"github.com/anykind/anykind/internal/store/kv"
)

// Limits of a group. All of its writes become durable at once.
const (
	groupWrites = 1024
	groupBytes  = 4 << 20
)

// A request waits for its outcome.
type request struct {
	write    kv.Write
	revision int64
	err      error
	done     chan struct{}
}

// A group is the writes that the committer handles at a time.
type group []*request

// answer gives all members of a group an error.
func (g group) answer(err error) {
	for _, r := range g {
		r.revision, r.err = 0, err
	}
	g.tell()
}

// tell releases all members of a group.
func (g group) tell() {
	for _, r := range g {
		close(r.done)
	}
}

// queue holds the writes that the committer has not taken yet.
type queue struct {
	mu      sync.Mutex
	waiting group
	closed  bool
	wake    signal
}

// A signal holds one wake-up. The fields beside it tell the reason.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) notify() {
	select {
	case s <- struct{}{}:
	default:
	}
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
	q.wake.notify()
	return r, true
}

// close rejects further writes. The committer still takes the queued ones.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.notify()
}

// take returns the queued writes, and whether the queue has ended.
func (q *queue) take() (g group, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.waiting) && n < groupWrites && size < groupBytes {
		size += q.waiting[n].write.Size()
		n++
	}
	g = q.waiting[:n:n]
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil
	}
	return g, q.closed && len(q.waiting) == 0
}

// length returns the number of queued writes.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}
