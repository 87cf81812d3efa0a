package kv_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/anykind/anykind/internal/store/kv"
)

func batchOf(revision int64, bytes int) kv.Batch {
	return kv.Batch{Events: []kv.Event{{Key: "/a", Revision: revision, Value: make([]byte, bytes)}}, Revision: revision}
}

// Events are taken in order, and then the error of the end.
func TestQueue(t *testing.T) {
	q := kv.NewQueue()
	for i := range int64(3) {
		if !q.Put(batchOf(i+1, 10)) {
			t.Fatal("a queue with next to nothing in it has no room")
		}
	}
	over := errors.New("it is over")
	q.End(over)
	for i := range int64(3) {
		if b, err := q.Take(t.Context()); err != nil || b.Revision != i+1 || len(b.Events) != 1 {
			t.Errorf("%+v, %v, want what happened at %d", b, err, i+1)
		}
	}
	for range 2 {
		if _, err := q.Take(t.Context()); err != over {
			t.Errorf("%v, want %v", err, over)
		}
	}
}

// Progress takes no room, in any amount.
func TestQueueOfProgress(t *testing.T) {
	q := kv.NewQueue()
	q.Put(batchOf(1, 10))
	for i := range int64(1000) {
		q.Put(kv.Batch{Revision: i + 2})
	}
	if b, err := q.Take(t.Context()); err != nil || b.Revision != 1001 || len(b.Events) != 1 {
		t.Errorf("%+v, %v, want the event, and that it went on to 1001", b, err)
	}
	q.End(kv.ErrClosed)
	if b, err := q.Take(t.Context()); err != kv.ErrClosed {
		t.Errorf("%+v, %v, want nothing more", b, err)
	}
}

// A producer waits while the queue is full, until a consumer takes or the queue has ended.
func TestQueueThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := kv.NewQueue()
		put := int64(0)
		for room := true; room; {
			put++
			room = q.Put(batchOf(put, 1<<20))
		}
		if put > kv.QueueBytes>>20+1 {
			t.Errorf("%d MB were put", put)
		}
		waits := func() (over *atomic.Bool) {
			over = new(atomic.Bool)
			go func() { q.Room(); over.Store(true) }()
			synctest.Wait()
			if over.Load() {
				t.Error("there is room in a queue that is full")
			}
			return over
		}
		first := waits()
		if _, err := q.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		if synctest.Wait(); !first.Load() {
			t.Error("there is no room although something was taken")
		}
		q.Put(batchOf(put+1, 1<<20))
		second := waits()
		q.End(kv.ErrClosed)
		if synctest.Wait(); !second.Load() {
			t.Error("a writer waits for room in a closed queue")
		}
	})
}

// A consumer waits for events until its context ends.
func TestQueueThatIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := kv.NewQueue()
		ctx, cancel := context.WithCancel(t.Context())
		taken := make(chan error)
		take := func() {
			_, err := q.Take(ctx)
			taken <- err
		}
		go take()
		synctest.Wait()
		q.Put(batchOf(1, 1))
		if err := <-taken; err != nil {
			t.Error(err)
		}
		go take()
		synctest.Wait()
		cancel()
		if err := <-taken; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
