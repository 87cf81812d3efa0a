package kv

import (
	"context"
	"sync"
)

// QueueBytes limits the queued events of a watch.
const QueueBytes = 8 << 20

// eventBytes is the size of an event without its key and its values.
const eventBytes = 200

// A Queue holds the events of a watch that its consumer has not taken. Put accepts any amount: the
// producer stops or waits once there is more than QueueBytes.
type Queue struct {
	mu      sync.Mutex
	batches []Batch
	bytes   int
	ended   error         // reason of the end
	changed chan struct{} // has room for one
	emptied chan struct{} // closed when there is room; nil without a waiting producer
}

// NewQueue returns an empty Queue.
func NewQueue() *Queue { return &Queue{changed: make(chan struct{}, 1)} }

// Put adds a batch, and reports whether there is room for more.
func (q *Queue) Put(batch Batch) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := len(q.batches) - 1
	if len(batch.Events) == 0 && last >= 0 {
		q.batches[last].Revision = batch.Revision
	} else {
		q.batches = append(q.batches, batch)
		q.bytes += size(batch)
	}
	q.wake()
	return q.bytes <= QueueBytes
}

// Room returns when there is room for more, or when the queue has ended.
func (q *Queue) Room() {
	for {
		q.mu.Lock()
		if q.bytes <= QueueBytes || q.ended != nil {
			q.mu.Unlock()
			return
		}
		if q.emptied == nil {
			q.emptied = make(chan struct{})
		}
		emptied := q.emptied
		q.mu.Unlock()
		<-emptied
	}
}

// End ends the queue with an error. Only the first call counts.
func (q *Queue) End(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended == nil {
		q.ended = err
	}
	q.empty()
	q.wake()
}

func (q *Queue) empty() {
	if q.emptied != nil {
		close(q.emptied)
		q.emptied = nil
	}
}

func (q *Queue) wake() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// Take returns the oldest batch once there is one, or the error of the end. There is only one
// consumer.
func (q *Queue) Take(ctx context.Context) (Batch, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Batch{}, err
		}
		if batch, ok, err := q.first(); ok || err != nil {
			return batch, err
		}
		select {
		case <-q.changed:
		case <-ctx.Done():
		}
	}
}

func (q *Queue) first() (batch Batch, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batches) == 0 {
		return Batch{}, false, q.ended
	}
	batch = q.batches[0]
	q.batches[0] = Batch{}
	q.batches = q.batches[1:]
	if q.bytes -= size(batch); q.bytes <= QueueBytes {
		q.empty()
	}
	return batch, true, nil
}

func size(batch Batch) (bytes int) {
	for i := range batch.Events {
		e := &batch.Events[i]
		bytes += len(e.Key) + len(e.Value) + len(e.Prev) + eventBytes
	}
	return bytes
}
