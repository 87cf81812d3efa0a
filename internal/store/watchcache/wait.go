package watchcache

import (
	"container/heap"
	"context"
	"sync"
)

// waiters are the callers that wait for a revision, the lowest first, so that advancing visits only
// those whose revision is reached.
type waiters struct {
	mu    sync.Mutex
	queue waitQueue
}

type waiter struct {
	revision int64
	index    int // in the queue, -1 when no longer in it
	reached  chan struct{}
}

// Wait returns when everything at or below revision can be read.
func (c *Cache) Wait(ctx context.Context, revision int64) error {
	if c.revision.Load() >= revision {
		return nil
	}
	w := &waiter{revision: revision, reached: make(chan struct{})}
	c.waiting.mu.Lock()
	if c.revision.Load() >= revision {
		c.waiting.mu.Unlock()
		return nil
	}
	heap.Push(&c.waiting.queue, w)
	c.waiting.mu.Unlock()

	var err error
	select {
	case <-w.reached:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-c.stopped:
		err = c.why
	}
	c.waiting.mu.Lock()
	defer c.waiting.mu.Unlock()
	if w.index < 0 {
		return nil
	}
	heap.Remove(&c.waiting.queue, w.index)
	return err
}

// advance sets the reached revision and releases its waiters.
func (c *Cache) advance(revision int64) {
	c.waiting.mu.Lock()
	defer c.waiting.mu.Unlock()
	if revision > c.revision.Load() {
		c.revision.Store(revision)
	}
	for q := &c.waiting.queue; len(*q) > 0 && (*q)[0].revision <= revision; {
		close(heap.Pop(q).(*waiter).reached)
	}
}

// waitQueue is a heap by revision.
type waitQueue []*waiter

func (q waitQueue) Len() int           { return len(q) }
func (q waitQueue) Less(i, j int) bool { return q[i].revision < q[j].revision }

func (q waitQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *waitQueue) Push(w any) {
	w.(*waiter).index = len(*q)
	*q = append(*q, w.(*waiter))
}

func (q *waitQueue) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	w.index = -1
	return w
}
