package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/merge"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/server"
	"github.com/anykind/anykind/internal/store/kv"
)

// A replay repeats in a fork the changes that the history of its server has after the first state of the fork.
type replay struct {
	from kv.Historian
	to   kv.Backend
	spec server.ForkReplay
	log  *slog.Logger

	begin   sync.Once
	started chan struct{} // closed by start

	mu       sync.Mutex
	progress server.ForkProgress
}

// start begins the replay; nil is none.
func (r *replay) start() {
	if r != nil {
		r.begin.Do(func() { close(r.started) })
	}
}

// run repeats the changes up to the newest one at its start, and waits for the end of the fork.
func (r *replay) run(ctx context.Context, after int64) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.started:
	}
	err := r.repeat(ctx, after)
	if ctx.Err() != nil {
		return nil
	}
	r.mu.Lock()
	if r.progress.Done = err == nil; err != nil {
		r.progress.Error = err.Error()
		r.log.Warn("a replay has failed", "after", r.progress.ResourceVersion, "error", err)
	}
	r.mu.Unlock()
	<-ctx.Done()
	return nil
}

func (r *replay) repeat(ctx context.Context, after int64) error {
	var first time.Time
	begin := time.Now()
	for past, err := range r.from.Changes(ctx, resource.Root, after) {
		if err != nil {
			return err
		}
		if first.IsZero() {
			first = past.Time
		}
		if err := r.wait(ctx, begin, past.Time.Sub(first)); err != nil {
			return err
		}
		if !slices.Contains(r.spec.Without, registry.ParseNote(past.Note).User) {
			if err := r.write(ctx, &past.Event); err != nil {
				return err
			}
		}
		r.mu.Lock()
		r.progress.ResourceVersion, r.progress.Time = past.Revision, metav1.NewMicroTime(past.Time)
		r.mu.Unlock()
	}
	return nil
}

// longest limits a pause between changes.
const longest = 100 * 365 * 24 * time.Hour

// wait waits until a change is due that came some time after the first one.
func (r *replay) wait(ctx context.Context, begin time.Time, later time.Duration) error {
	if r.spec.Speed == 0 {
		return ctx.Err()
	}
	after := time.Duration(min(float64(later)/r.spec.Speed, float64(longest)))
	due := time.NewTimer(time.Until(begin.Add(after)))
	defer due.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-due.C:
		return nil
	}
}

// write repeats a change of a key.
func (r *replay) write(ctx context.Context, e *kv.Event) error {
	for {
		now, err := r.to.Get(ctx, e.Key, kv.Latest)
		if errors.Is(err, kv.ErrNotFound) {
			now = kv.Record{Revision: kv.Absent}
		} else if err != nil {
			return err
		}
		value, differs := repeated(e, now.Value)
		if !differs {
			return nil
		}
		_, err = r.to.Commit(ctx, kv.Write{Key: e.Key, Value: value, Expect: now.Revision, Was: now.Value, Note: e.Note})
		var conflict *kv.ConflictError
		if !errors.As(err, &conflict) {
			return err
		}
	}
}

// repeated returns the value after a change of a key that has a value in the fork, and whether it differs from it. An object that differs from
// the one before the change keeps its other fields. The change is left out if the object of its update is
// missing, if that of its creation is there, and if a value that differs is no object.
func repeated(e *kv.Event, now []byte) (value []byte, differs bool) {
	switch {
	case e.Value == nil:
		return nil, now != nil
	case bytes.Equal(now, e.Prev):
		return e.Value, true
	case now == nil, e.Prev == nil:
		return nil, false
	}
	var trees [3]object.Tree
	for i, data := range [][]byte{e.Prev, e.Value, now} {
		t, _, err := codec.Decode(codec.JSON, data)
		if err != nil || t == nil {
			return nil, false
		}
		trees[i] = t
	}
	value = object.AppendJSON(nil, merge.Repeat(trees[0], trees[1], trees[2]))
	return value, !bytes.Equal(value, now)
}

// Replayed implements server.Copy.
func (f *Fork) Replayed() *server.ForkProgress {
	if f.replay == nil {
		return nil
	}
	f.replay.mu.Lock()
	defer f.replay.mu.Unlock()
	progress := f.replay.progress
	return &progress
}
