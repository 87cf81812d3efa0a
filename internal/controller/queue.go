package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// The backoff of a failed task: it doubles up to the maximum.
const (
	ShortestRetry = 50 * time.Millisecond
	LongestRetry  = time.Minute
)

// A Queue runs the tasks of one controller: some concurrently, equal ones never at the same time,
// failed ones again after a backoff. It has goroutines only while there is work.
type Queue struct {
	ctx   context.Context // of all tasks
	limit int
	do    func(context.Context, Task) error
	log   *slog.Logger
	counts

	running sync.WaitGroup

	mu      sync.Mutex
	held    bool // no task may begin
	pending []Task
	entries map[Task]*entry
	workers int
	unknown map[Task]bool // tasks that wait for other kinds to be served
	changed int           // number of changes of the served kinds
}

// An entry is a task that is pending, running, delayed, or has failed.
type entry struct {
	pending  bool
	running  bool
	failures int
	timer    *time.Timer
	due      time.Time // of timer
	added    time.Time // when it became pending
	began    time.Time // when it began to run
}

// newQueue returns a Queue that accepts tasks at once, and runs them with do after its start. do
// must be set before that.
func newQueue(limit int, log *slog.Logger) *Queue { return &Queue{limit: limit, log: log} }

func (q *Queue) start(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ctx = ctx
}

// Add queues tasks. A running task runs once more; a pending task stays as it is.
func (q *Queue) Add(tasks ...Task) {
	if len(tasks) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range tasks {
		q.push(t)
	}
}

func (q *Queue) push(t Task) {
	e := q.entry(t)
	e.stop()
	if e.pending || q.ctx.Err() != nil {
		return
	}
	e.pending, e.added = true, time.Now()
	q.adds.Inc()
	q.pending = append(q.pending, t)
	q.employ(1)
}

// employ starts workers for new tasks, up to the limit. It starts none once the context has ended.
func (q *Queue) employ(tasks int) {
	if q.ctx.Err() != nil {
		return
	}
	for ; tasks > 0 && q.workers < q.limit && !q.held; tasks-- {
		q.workers++
		q.running.Go(q.work)
	}
}

// hold prevents tasks from beginning until release.
func (q *Queue) hold() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held = true
}

func (q *Queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held = false
	q.employ(len(q.pending))
}

// After queues a task after a delay, unless it is due earlier.
func (q *Queue) After(t Task, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.schedule(t, delay)
}

func (q *Queue) schedule(t Task, delay time.Duration) {
	e := q.entry(t)
	due := time.Now().Add(delay)
	if q.ctx.Err() != nil || e.pending || e.timer != nil && !due.Before(e.due) {
		return
	}
	e.stop()
	e.due = due
	e.timer = time.AfterFunc(delay, func() { q.Add(t) })
}

func (q *Queue) entry(t Task) *entry {
	e := q.entries[t]
	if e == nil {
		if q.entries == nil {
			q.entries = map[Task]*entry{}
		}
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

// work runs pending tasks until none is left.
func (q *Queue) work() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.ctx.Err() == nil && !q.held {
		t, ok := q.pop()
		if !ok {
			break
		}
		changed := q.changed
		q.mu.Unlock()
		err := q.do(q.ctx, t)
		q.mu.Lock()
		q.done(t, q.park(t, changed, err))
	}
	q.workers--
}

// pop takes the first pending task that is not running.
func (q *Queue) pop() (Task, bool) {
	for i, t := range q.pending {
		e := q.entries[t]
		if e.running {
			continue
		}
		copy(q.pending[1:i+1], q.pending[:i])
		if q.pending = q.pending[1:]; len(q.pending) == 0 {
			q.pending = nil
		}
		e.pending, e.running, e.began = false, true, time.Now()
		q.waited.Observe(e.began.Sub(e.added).Seconds())
		return t, true
	}
	return Task{}, false
}

func (q *Queue) done(t Task, err error) {
	e := q.entries[t]
	e.running = false
	q.worked.Observe(time.Since(e.began).Seconds())
	if err == nil || q.ctx.Err() != nil {
		e.failures = 0
		if !e.pending && e.timer == nil {
			delete(q.entries, t)
		}
		return
	}
	delay := min(ShortestRetry<<min(e.failures, 20), LongestRetry)
	e.failures++
	q.retries.Inc()
	q.log.Warn("a task failed and will be retried", "task", t.Do, "key", t.Key, "in", delay, "error", err)
	q.schedule(t, delay)
}

// Try runs a task at once as part of another task, even if it is already running. If it fails, Try
// queues it.
func (q *Queue) Try(ctx context.Context, t Task) {
	q.mu.Lock()
	changed := q.changed
	q.mu.Unlock()
	err := q.do(ctx, t)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.park(t, changed, err) != nil {
		q.schedule(t, ShortestRetry)
	}
}

// park sets a task aside whose err is an UnknownError, and returns any other err. If the served
// kinds have changed since the task began, it is queued instead.
func (q *Queue) park(t Task, changed int, err error) error {
	if !IsUnknown(err) {
		return err
	}
	if q.changed != changed {
		q.push(t)
		return nil
	}
	if q.unknown == nil {
		q.unknown = map[Task]bool{}
	}
	q.unknown[t] = true
	return nil
}

// retryUnknown queues the tasks that were set aside, after the served kinds have changed.
func (q *Queue) retryUnknown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed++
	for t := range q.unknown {
		q.push(t)
	}
	q.unknown = nil
}

// Forget drops tasks that were set aside: their object is gone.
func (q *Queue) Forget(tasks ...Task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range tasks {
		delete(q.unknown, t)
	}
}

// Idle reports whether the Queue has no task at all.
func (q *Queue) Idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries)+len(q.unknown) == 0
}

// busy reports whether a task is running, pending, or waiting for a retry.
func (q *Queue) busy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending) > 0 || q.workers > 0 {
		return true
	}
	for _, e := range q.entries {
		if e.failures > 0 {
			return true
		}
	}
	return false
}

// wait waits until no task is running. The context of the queue must have ended: no worker and no
// timer starts after it, and the lock orders those that did before.
func (q *Queue) wait() {
	q.mu.Lock()
	for _, e := range q.entries {
		e.stop()
	}
	q.mu.Unlock()
	q.running.Wait()
}
