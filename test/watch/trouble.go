package watch

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// A Trouble disturbs servers repeatedly. Its Disturb and Wait are Disturb and Ready of Options.
type Trouble struct {
	Lasts, Every time.Duration // duration, and approximate interval
	Random       *rand.Rand
	Strike       func(context.Context) error // returns once the servers are back

	mu   sync.Mutex
	back chan struct{} // closed once the servers are back; nil before the first strike
}

// Disturb strikes until its time is up.
func (t *Trouble) Disturb(ctx context.Context) error {
	over := time.After(t.Lasts)
	for {
		next := time.NewTimer(t.Every/2 + time.Duration(t.Random.Int64N(int64(t.Every))))
		select {
		case <-ctx.Done():
			return nil
		case <-over:
			next.Stop()
			return nil
		case <-next.C:
		}
		back := make(chan struct{})
		t.mu.Lock()
		t.back = back
		t.mu.Unlock()
		if err := t.Strike(ctx); err != nil {
			return err
		}
		close(back)
	}
}

// Wait waits until the servers are back.
func (t *Trouble) Wait(ctx context.Context) error {
	t.mu.Lock()
	back := t.back
	t.mu.Unlock()
	if back != nil {
		select {
		case <-back:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
