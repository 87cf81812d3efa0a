package etcdkv

import (
	"context"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

// revisionTimeout is the timeout of a request for the newest revision. A lost leader is replaced within
// that time; the waiting read can be retried.
const revisionTimeout = 5 * time.Second

// A turn is one request for the newest revision, shared by all callers that came before it was sent.
type turn struct {
	done     chan struct{}
	revision int64
	err      error
}

// turns sends one request at a time. A caller during a request cannot use its response, which may be
// older than the call; it shares the next one. A failed request also fails the callers that wait for
// the next one: no caller waits for two timeouts.
type turns struct {
	mu      sync.Mutex
	running bool
	next    *turn
}

// Revision implements kv.Backend.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if s.ctx.Err() != nil {
		return 0, kv.ErrClosed
	}
	t := s.turns.join(s.ask)
	select {
	case <-t.done:
		return t.revision, t.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// join returns the turn that has not begun.
func (q *turns) join(ask func() (int64, error)) *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == nil {
		q.next = &turn{done: make(chan struct{})}
	}
	if !q.running {
		q.running = true
		go q.run(ask)
	}
	return q.next
}

func (q *turns) run(ask func() (int64, error)) {
	for {
		q.mu.Lock()
		t := q.next
		q.next = nil
		q.running = t != nil
		q.mu.Unlock()
		if t == nil {
			return
		}
		t.revision, t.err = ask()
		close(t.done)
		if t.err != nil {
			q.fail(t.err)
		}
	}
}

// fail fails the callers of the next turn.
func (q *turns) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.next; t != nil {
		q.next = nil
		t.err = err
		close(t.done)
	}
}

// ask reads the newest revision, and requests the progress of the watches up to it.
func (s *Store) ask() (int64, error) {
	ctx, cancel := context.WithTimeout(s.ctx, revisionTimeout)
	defer cancel()
	resp, err := s.get(ctx, s.options.Prefix, kv.Latest)
	switch {
	case s.ctx.Err() != nil:
		return 0, kv.ErrClosed
	case err != nil && ctx.Err() != nil:
		return 0, unavailable(err)
	case err != nil:
		return 0, err
	}
	s.hurry(resp.Header.Revision)
	return resp.Header.Revision, nil
}
