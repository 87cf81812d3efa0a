package lifecycle

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// How long a task that failed waits before it is tried again.
const (
	shortestRetry = 50 * time.Millisecond
	longestRetry  = time.Minute
)

// A queue runs tasks, some at a time, each of them once at a time, and one that
// fails again after a while. It has goroutines while there is something to do.
type queue struct {
	ctx   context.Context // of all tasks
	limit int
	do    func(context.Context, task) error
	log   *slog.Logger

	running sync.WaitGroup

	mu      sync.Mutex
	pending []task
	entries map[task]*entry
	workers int
}

// An entry is a task that is pending, running, waiting for its time, or has
// failed.
type entry struct {
	pending  bool
	running  bool
	failures int
	timer    *time.Timer
	due      time.Time // of timer
}

func newQueue(ctx context.Context, limit int, do func(context.Context, task) error, log *slog.Logger) *queue {
	return &queue{ctx: ctx, limit: limit, do: do, log: log, entries: map[task]*entry{}}
}

// add has a task done soon: once more if it is being done, and only once if it
// is added again before.
func (q *queue) add(tasks ...task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range tasks {
		q.push(t)
	}
}

func (q *queue) push(t task) {
	e := q.entry(t)
	e.stop()
	if e.pending || q.ctx.Err() != nil {
		return
	}
	e.pending = true
	q.pending = append(q.pending, t)
	if q.workers < q.limit {
		q.workers++
		q.running.Go(q.work)
	}
}

// after has a task done after a while, unless it is to be done earlier anyway.
func (q *queue) after(t task, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.schedule(t, delay)
}

func (q *queue) schedule(t task, delay time.Duration) {
	e := q.entry(t)
	due := time.Now().Add(delay)
	if e.pending || e.timer != nil && !due.Before(e.due) {
		return
	}
	e.stop()
	e.due = due
	e.timer = time.AfterFunc(delay, func() { q.add(t) })
}

func (q *queue) entry(t task) *entry {
	e := q.entries[t]
	if e == nil {
		e = &entry{}
		q.entries[t] = e
	}
	return e
}

func (e *entry) stop() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}

// work does what is pending until nothing is.
func (q *queue) work() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.ctx.Err() == nil {
		t, ok := q.pop()
		if !ok {
			break
		}
		q.mu.Unlock()
		err := q.do(q.ctx, t)
		q.mu.Lock()
		q.done(t, err)
	}
	q.workers--
}

// pop takes the first pending task that is not being done.
func (q *queue) pop() (task, bool) {
	for i, t := range q.pending {
		e := q.entries[t]
		if e.running {
			continue
		}
		copy(q.pending[1:i+1], q.pending[:i])
		if q.pending = q.pending[1:]; len(q.pending) == 0 {
			q.pending = nil
		}
		e.pending, e.running = false, true
		return t, true
	}
	return task{}, false
}

func (q *queue) done(t task, err error) {
	e := q.entries[t]
	e.running = false
	if err == nil || q.ctx.Err() != nil {
		e.failures = 0
		if !e.pending && e.timer == nil {
			delete(q.entries, t)
		}
		return
	}
	delay := min(shortestRetry<<min(e.failures, 20), longestRetry)
	e.failures++
	q.log.Warn("a task will be tried again", "task", t.do, "key", t.key, "in", delay, "error", err)
	q.schedule(t, delay)
}

// wait returns when nothing runs any more. The context of the queue must have
// ended.
func (q *queue) wait() {
	q.running.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.entries {
		e.stop()
	}
}
