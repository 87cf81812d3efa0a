package crd

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// tasks runs background tasks, at most one of each name at a time, with retries until it succeeds. It
// has no goroutine without tasks.
type tasks struct {
	log     *slog.Logger
	running sync.WaitGroup

	mu    sync.Mutex
	names map[string]bool // running; true to run once more
}

func newTasks(log *slog.Logger) *tasks { return &tasks{log: log, names: map[string]bool{}} }

// start runs a task until it succeeds or ctx ends. If a task of the name is running, it runs once more
// after that, because it may have missed the reason.
func (t *tasks) start(ctx context.Context, name string, run func(context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, running := t.names[name]; running {
		t.names[name] = true
		return
	}
	t.names[name] = false
	t.running.Go(func() {
		var delay backoff
		for {
			err := run(ctx)
			if err == nil {
				if t.done(name) {
					return
				}
				delay.reset()
				continue
			}
			if ctx.Err() == nil {
				t.log.Warn("a task for a CustomResourceDefinition failed and will be retried", "task", name, "err", err)
			}
			if delay.wait(ctx) != nil {
				return
			}
		}
	})
}

// done ends a task unless it must run once more.
func (t *tasks) done(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names[name] {
		t.names[name] = false
		return false
	}
	delete(t.names, name)
	return true
}

// wait waits for all tasks. Their contexts must have ended.
func (t *tasks) wait() { t.running.Wait() }

// A backoff waits longer each time. Its zero value starts with the shortest wait.
type backoff struct{ next time.Duration }

const (
	shortestWait = 20 * time.Millisecond
	longestWait  = 10 * time.Second
)

func (b *backoff) reset() { b.next = 0 }

func (b *backoff) wait(ctx context.Context) error {
	b.next = min(max(2*b.next, shortestWait), longestWait)
	timer := time.NewTimer(b.next)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
