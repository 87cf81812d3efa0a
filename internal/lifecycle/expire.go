package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/anykind/anykind/internal/kv"
)

// sweepPause is how long events may be kept beyond their time, so that those that
// end one after the other are deleted together.
const sweepPause = time.Minute

// expire deletes the events that are old, and has itself called again when the
// next one will be. Nothing of events is remembered between the two.
func (l *Lifecycle) expire(ctx context.Context) error {
	d := l.Catalog.Set().Lookup("", "events")
	now := l.Now()
	var oldest time.Time // of those that stay
	var failed error
	err := l.pages(ctx, d.StoragePrefix, func(page kv.Page) {
		for i := range page.Records {
			r := &page.Records[i]
			at := written(r.Value, now)
			if now.Sub(at) < l.EventTTL {
				if oldest.IsZero() || at.Before(oldest) {
					oldest = at
				}
				continue
			}
			// It ends like a lease: nobody is asked, and no finalizer holds it.
			_, err := l.Backend.Commit(ctx, kv.Write{Key: r.Key, Expect: r.Revision, Was: r.Value})
			var conflict *kv.ConflictError
			if err != nil && !errors.As(err, &conflict) {
				failed = err
			}
		}
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if !oldest.IsZero() {
		l.queue.after(task{do: expire}, max(oldest.Add(l.EventTTL).Sub(now), sweepPause))
	}
	return nil
}

// written returns when an event was last written, as far as it says so itself,
// and never after now. One that cannot be read was written just now: it is not
// ours to delete.
func written(value []byte, now time.Time) time.Time {
	var e struct {
		Metadata struct {
			CreationTimestamp time.Time
			ManagedFields     []struct{ Time time.Time }
		}
		LastTimestamp           time.Time
		DeprecatedLastTimestamp time.Time // as events.k8s.io calls it
		Series                  struct{ LastObservedTime time.Time }
	}
	// What can be read of it counts.
	_ = json.Unmarshal(value, &e)
	at := e.Metadata.CreationTimestamp
	for _, t := range e.Metadata.ManagedFields {
		at = later(at, t.Time)
	}
	for _, t := range []time.Time{e.LastTimestamp, e.DeprecatedLastTimestamp, e.Series.LastObservedTime} {
		at = later(at, t)
	}
	if at.IsZero() || at.After(now) {
		return now
	}
	return at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
