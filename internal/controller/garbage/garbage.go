// Package garbage deletes objects whose owners are gone. For a deletion with a propagation
// policy, it waits for the dependents of an object, or removes their owner references.
//
// It remembers only objects with owners, and of those only the owner references. It knows the
// metadata of objects, those of other servers among them: an owner that cannot be asked for is not
// taken for one that is gone.
package garbage

import (
	"bytes"
	"context"
	"strings"

	"github.com/anykind/anykind/internal/controller"
)

// Name is what the controller is called, and who reports an object that names an
// owner it cannot have.
const Name = "garbage-collector-controller"

// What there is to do. The key of a task is that of an object.
const (
	review  = "review"  // see whether the owners of all objects are there
	check   = "check"   // see whether the owners that an object has named are there
	collect = "collect" // see whether an object has lost its owners
	await   = "await"   // see whether an object still waits for its dependents to go
	orphan  = "orphan"  // make the dependents of an object forget it
)

// A Controller collects garbage.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	events  string // prefix of the keys of events
	owners  *owners
	loading *owners // what owners will be when all is loaded
}

// New makes the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{objects: o.For("generic-garbage-collector"), queue: q, events: o.Prefix("", "events"), owners: newOwners()}
}

// Keys returns all, for objects of any kind may own others.
func (c *Controller) Keys() []string { return []string{""} }

// Load begins to find out anew who owns whom.
func (c *Controller) Load() { c.loading = newOwners() }

// Loaded has everything reviewed that is owned.
func (c *Controller) Loaded() {
	c.owners.replace(c.loading)
	c.loading = nil
	c.queue.Add(controller.Task{Do: review})
}

// What an object has that names owners, and one that is going. What begins with
// a letter that is rare in JSON is found many times faster.
var (
	references = []byte(`References"`)
	named      = []byte(`"ownerReferences"`)
	deleted    = []byte(`deletionTimestamp"`)
)

// matters reports whether an object may name owners or be one that is going. It
// is asked of every write, so it does not parse.
func matters(value []byte) bool {
	return bytes.Contains(value, references) && bytes.Contains(value, named) || bytes.Contains(value, deleted)
}

// See finds out who owns whom now.
func (c *Controller) See(e *controller.Event) {
	switch {
	case strings.HasPrefix(e.Key, c.events):
		// Events own nothing and are not collected.
	case e.Loading:
		c.seeStored(e)
	case e.Value == nil:
		c.seeGone(e)
	case c.owners.knows(e.Key) || matters(e.Value):
		h, err := e.Header()
		if err != nil {
			c.objects.Logger.Warn("an object that cannot be read has no owners", "key", e.Key, "error", err)
			h = &controller.Header{Key: e.Key}
		}
		c.queue.Add(c.owners.put(h)...)
	}
}

func (c *Controller) seeStored(e *controller.Event) {
	if !matters(e.Value) {
		return
	}
	h, err := e.Header()
	if err != nil {
		return
	}
	for _, t := range c.loading.put(h) {
		// The rest is in the review of all.
		if t.Do == await || t.Do == orphan {
			c.queue.Add(t)
		}
	}
}

func (c *Controller) seeGone(e *controller.Event) {
	if c.owners.empty() {
		return
	}
	uid := ""
	was, err := e.Was()
	if err == nil {
		uid = was.UID
	} else {
		// Whose owner it was can only be found out by looking at all.
		c.queue.Add(controller.Task{Do: review})
	}
	c.queue.Forget(controller.Task{Do: check, Key: e.Key, UID: uid}, controller.Task{Do: collect, Key: e.Key, UID: uid})
	c.queue.Add(c.owners.gone(e.Key, uid)...)
}

// Do does a task.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	switch t.Do {
	case review:
		return c.review(ctx)
	case await:
		return c.await(ctx, t)
	case orphan:
		return c.orphan(ctx, t)
	default:
		return c.collect(ctx, t)
	}
}
