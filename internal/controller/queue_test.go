package controller

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// A timer fires at the moment at which the queue ends. The race detector shows that its worker starts
// either before wait looks for workers, or not at all.
func TestQueueEndsWhileTimersFire(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			q := newQueue(4, slog.New(slog.DiscardHandler))
			NewMetrics().follow("test", q)
			q.do = func(ctx context.Context, _ Task) error { <-ctx.Done(); return nil }
			q.start(ctx)
			for _, key := range []string{"a", "b", "c", "d"} {
				q.After(Task{Key: key}, time.Second)
			}
			time.Sleep(time.Second)
			cancel()
			q.wait()
			if q.busy() && q.workers > 0 {
				t.Fatal("a worker runs after wait")
			}
		})
	}
}
