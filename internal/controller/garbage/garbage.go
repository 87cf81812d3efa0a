// Package garbage deletes objects whose owners are gone. For a deletion with a propagation policy,
// it waits for the dependents of an object, or removes their owner references.
//
// It remembers only objects with owners, and of those only the owner references. It knows the
// metadata of objects, including those of other servers: an unreachable owner does not count as
// deleted.
package garbage

import (
	"bytes"
	"context"
	"strings"

	"github.com/anykind/anykind/internal/controller"
)

// Name is the name of the controller, and the reporter of Events about invalid owners.
const Name = "garbage-collector-controller"

// The tasks. The key of a task is the key of an object.
const (
	review  = "review"  // check the owners of all objects
	check   = "check"   // check the owners in a new reference
	collect = "collect" // collect an object if it has lost its owners
	await   = "await"   // finish a foreground deletion if no dependents block it
	orphan  = "orphan"  // remove the owner references of its dependents
)

// A Controller is the garbage collector.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	events  string // key prefix of Events
	owners  *owners
	loading *owners // the next owners, during a load
}

// New returns the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{objects: o.For("generic-garbage-collector"), queue: q, events: o.Prefix("", "events"), owners: newOwners()}
}

// Keys returns the prefix of all keys: objects of any kind may be owners.
func (c *Controller) Keys() []string { return []string{""} }

// Load begins a new graph of owners.
func (c *Controller) Load() { c.loading = newOwners() }

// Loaded takes the loaded graph and queues a review of all objects with owners.
func (c *Controller) Loaded() {
	c.owners.replace(c.loading)
	c.loading = nil
	c.queue.Add(controller.Task{Do: review})
}

// Substrings of objects with owner references, or in deletion. The search is many times faster if a
// substring begins with a letter that is rare in JSON.
var (
	references = []byte(`References"`)
	named      = []byte(`"ownerReferences"`)
	deleted    = []byte(`deletionTimestamp"`)
)

// matters reports whether an object may have owner references or be in deletion. It runs for every
// write, so it does not parse.
func matters(value []byte) bool {
	return bytes.Contains(value, references) && bytes.Contains(value, named) || bytes.Contains(value, deleted)
}

// See updates the graph of owners, and queues the tasks that follow.
func (c *Controller) See(e *controller.Event) {
	switch {
	case strings.HasPrefix(e.Key, c.events):
		// Events are not owners and are not collected.
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
		// the review does the other tasks
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
		// Without the UID the dependents are unknown; only a full review finds them.
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
