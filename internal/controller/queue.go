package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// How long a task that failed waits before it is tried again. It waits longer
// each time.
const (
	ShortestRetry = 50 * time.Millisecond
	LongestRetry  = time.Minute
)

// A Queue has the tasks of one controller done, some at a time, each of them once
// at a time, and one that fails again after a while. It has goroutines while there
// is something to do.
type Queue struct {
	ctx   context.Context // of all tasks
	limit int
	do    func(context.Context, Task) error
	log   *slog.Logger

	running sync.WaitGroup

	mu      sync.Mutex
	held    bool // nothing is begun
	pending []Task
	entries map[Task]*entry
	workers int
	unknown map[Task]bool // those that wait for other kinds to be served
	changed int           // how often the kinds that are served have changed
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

// newQueue returns one that takes tasks from its start on, and does them with do,
// which is to be set before that.
func newQueue(limit int, log *slog.Logger) *Queue { return &Queue{limit: limit, log: log} }

func (q *Queue) start(ctx context.Context) { q.ctx = ctx }

// Add has a task done soon: once more if it is being done, and only once if it
// is added again before.
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
	e.pending = true
	q.pending = append(q.pending, t)
	q.employ(1)
}

// employ starts workers for new tasks, up to the limit, and none once the context has ended.
func (q *Queue) employ(tasks int) {
	if q.ctx.Err() != nil {
		return
	}
	for ; tasks > 0 && q.workers < q.limit && !q.held; tasks-- {
		q.workers++
		q.running.Go(q.work)
	}
}

// hold lets no task begin until release.
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

// After has a task done after a while, unless it is to be done earlier anyway.
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

// work does what is pending until nothing is.
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

// pop takes the first pending task that is not being done.
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
		e.pending, e.running = false, true
		return t, true
	}
	return Task{}, false
}

func (q *Queue) done(t Task, err error) {
	e := q.entries[t]
	e.running = false
	if err == nil || q.ctx.Err() != nil {
		e.failures = 0
		if !e.pending && e.timer == nil {
			delete(q.entries, t)
		}
		return
	}
	delay := min(ShortestRetry<<min(e.failures, 20), LongestRetry)
	e.failures++
	q.log.Warn("a task failed and will be retried", "task", t.Do, "key", t.Key, "in", delay, "error", err)
	q.schedule(t, delay)
}

// Try does a task at once, as part of another one, even if it is being done, and
// has it done later if that fails.
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

// park sets a task aside that ended with err, if that says that a kind is not
// known, and returns any other err. When kinds have changed since the task was
// begun it is done again.
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

// retryUnknown has those tasks done that were set aside, now that the kinds that
// are served have changed.
func (q *Queue) retryUnknown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed++
	for t := range q.unknown {
		q.push(t)
	}
	q.unknown = nil
}

// Forget drops tasks that were set aside, for their object is gone.
func (q *Queue) Forget(tasks ...Task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range tasks {
		delete(q.unknown, t)
	}
}

// Idle reports whether the Queue remembers no task.
func (q *Queue) Idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries)+len(q.unknown) == 0
}

// busy reports whether there is a task that is done, is to be done, or has failed.
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

// wait returns when nothing runs any more. The context of the queue must have
// ended: no worker and no timer starts after it, and the lock orders those that did before.
func (q *Queue) wait() {
	q.mu.Lock()
	for _, e := range q.entries {
		e.stop()
	}
	q.mu.Unlock()
	q.running.Wait()
}
