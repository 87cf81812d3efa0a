// Package expiry deletes Events some time after their last write, as etcd leases do for
// kube-apiserver.
//
// It remembers no Events. It reads them when the oldest one may expire, and does nothing while
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

// Name is the name of the controller. Kubernetes has no such controller.
const Name = "event-expiry-controller"

const (
	// DefaultTTL is the TTL of an Event after its last write, as in kube-apiserver.
	DefaultTTL = time.Hour
	// sweepPause is the least delay of the next sweep, for longer TTLs. Events that expire in the meantime are
	// deleted together.
	sweepPause = time.Minute
)

// A Controller deletes expired Events. It has one task, a sweep.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	prefix  string // key prefix of Events
	ttl     time.Duration
}

// New returns the constructor of a controller with a TTL of Events. Without one, Events do not expire.
func New(ttl time.Duration) func(*controller.Objects, *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{objects: o, queue: q, prefix: o.Prefix("", "events"), ttl: ttl}
	}
}

// Keys returns the key prefix of Events.
func (c *Controller) Keys() []string { return []string{c.prefix} }

// See schedules a sweep: at the end of a written Event's TTL, or at once for loaded Events.
func (c *Controller) See(e *controller.Event) {
	switch {
	case c.ttl <= 0:
	case e.Loading:
		c.queue.Add(controller.Task{})
	case e.Value != nil:
		c.queue.After(controller.Task{}, c.ttl)
	}
}

// Do deletes expired Events, and schedules the next sweep.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	now := c.objects.Now()
	var oldest time.Time // of the remaining Events
	var failed error
	note := c.objects.Registry.Note(ctx, "delete", Name, "")
	err := c.objects.Pages(ctx, c.prefix, func(page kv.Page) {
		for i := range page.Records {
			r := &page.Records[i]
			at := written(r.Value, now)
			if now.Sub(at) < c.ttl {
				if oldest.IsZero() || at.Before(oldest) {
					oldest = at
				}
				continue
			}
			// A direct delete, like the end of an etcd lease: no admission, no finalizers.
			_, err := c.objects.Backend.Commit(ctx, kv.Write{Key: r.Key, Expect: r.Revision, Was: r.Value, Note: note})
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
		c.queue.After(t, max(oldest.Add(c.ttl).Sub(now), min(sweepPause, c.ttl)))
	}
	return nil
}

// written returns the last write of an Event by its own timestamps, and never a time after now. An
// unreadable Event counts as just written, so it is not deleted early.
func written(value []byte, now time.Time) time.Time {
	var e struct {
		Metadata struct {
			CreationTimestamp time.Time
			ManagedFields     []struct{ Time time.Time }
		}
		LastTimestamp           time.Time
		DeprecatedLastTimestamp time.Time // the name in events.k8s.io
		Series                  struct{ LastObservedTime time.Time }
	}
	// the readable fields count
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
