// Package expiry deletes events some time after their last write, as leases of etcd do for
// kube-apiserver.
//
// It remembers no events. It reads them when the oldest one may expire, and does nothing while
// there are none.
package expiry

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/store/kv"
)

// Name is what the controller is called. Kubernetes has no such controller.
const Name = "event-expiry-controller"

const (
	// timeToLive is how long an event is kept after it was written: the default of
	// --event-ttl of kube-apiserver.
	timeToLive = time.Hour
	// sweepPause is how long events may be kept beyond their time, so that those
	// that end one after the other are deleted together.
	sweepPause = time.Minute
)

// A Controller expires events. It has one task: to look through them.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	prefix  string // of the keys of events
}

// New makes the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{objects: o, queue: q, prefix: o.Prefix("", "events")}
}

// Keys returns those of events.
func (c *Controller) Keys() []string { return []string{c.prefix} }

// See has the events looked through when one that was written may have to go, and
// at once if there were any before.
func (c *Controller) See(e *controller.Event) {
	switch {
	case e.Loading:
		c.queue.Add(controller.Task{})
	case e.Value != nil:
		c.queue.After(controller.Task{}, timeToLive)
	}
}

// Do deletes the events that are old, and has itself called again when the next
// one will be.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	now := c.objects.Now()
	var oldest time.Time // of those that stay
	var failed error
	err := c.objects.Pages(ctx, c.prefix, func(page kv.Page) {
		for i := range page.Records {
			r := &page.Records[i]
			at := written(r.Value, now)
			if now.Sub(at) < timeToLive {
				if oldest.IsZero() || at.Before(oldest) {
					oldest = at
				}
				continue
			}
			// It ends like a lease: nobody is asked, and no finalizer holds it.
			_, err := c.objects.Backend.Commit(ctx, kv.Write{Key: r.Key, Expect: r.Revision, Was: r.Value})
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
		c.queue.After(t, max(oldest.Add(timeToLive).Sub(now), sweepPause))
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
