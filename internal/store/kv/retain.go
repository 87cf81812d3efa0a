package kv

import (
	"context"
	"errors"
	"time"
)

// Retain compacts a backend regularly so that its history reaches back at least keep, and not much
// longer. It returns when the context ends or the backend is closed, with that error. After any other
// error it retries later, and calls failed if not nil.
//
// It reads the revision ten times in keep, and does nothing else while that stays the same. Writes
// from before the call count as written at the call.
func Retain(ctx context.Context, b Backend, keep time.Duration, failed func(error)) error {
	r := retention{backend: b, keep: keep}
	ticker := time.NewTicker(max(keep/10, time.Millisecond))
	defer ticker.Stop()
	for {
		err := r.step(ctx, time.Now())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrClosed):
			return err
		case err != nil && failed != nil:
			failed(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// A retention remembers which revision was the newest at which time.
type retention struct {
	backend Backend
	keep    time.Duration
	samples []sample // of revisions that are not compacted yet
	last    int64    // the last revision that was sampled
}

type sample struct {
	at       time.Time
	revision int64
}

// step takes a sample and compacts to the newest one that is old enough. A revision that stays the
// newest keeps its first time.
func (r *retention) step(ctx context.Context, now time.Time) error {
	revision, err := r.backend.Revision(ctx)
	if err != nil {
		return err
	}
	if revision != r.last {
		r.samples = append(r.samples, sample{now, revision})
		r.last = revision
	}
	due := 0
	for due < len(r.samples) && now.Sub(r.samples[due].at) >= r.keep {
		due++
	}
	if due == 0 {
		return nil
	}
	if err := r.backend.Compact(ctx, r.samples[due-1].revision); err != nil {
		return err
	}
	r.samples = r.samples[due:]
	return nil
}
