// Package flowschema reports in the status of each FlowSchema whether its
// PriorityLevelConfiguration exists.
package flowschema

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/kv"
)

// Name is the name of the controller, that of the part of kube-apiserver with this task.
const Name = "priority-and-fairness-config-consumer"

// manager is the field manager of the status.
const manager = "api-" + Name + "-v1"

// most is the largest number of updates of one FlowSchema within a minute. It bounds the writes while another
// client disagrees about the status.
const most = 6

// A Controller processes all FlowSchemas in one task, as there are few.
type Controller struct {
	objects         *controller.Objects
	queue           *controller.Queue
	schemas, levels string // key prefixes

	recent map[string][]time.Time // updates within the last minute, by key
}

// New returns the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{
		objects: o.ManagedBy(manager), queue: q,
		schemas: o.Prefix(flowcontrolv1.GroupName, "flowschemas"),
		levels:  o.Prefix(flowcontrolv1.GroupName, "prioritylevelconfigurations"),
		recent:  map[string][]time.Time{},
	}
}

// Keys returns the key prefixes of both kinds.
func (c *Controller) Keys() []string { return []string{c.schemas, c.levels} }

// See queues the task after any change.
func (c *Controller) See(*controller.Event) { c.queue.Add(controller.Task{}) }

// Do updates the status of FlowSchemas where it is wrong.
func (c *Controller) Do(ctx context.Context, _ controller.Task) error {
	there := map[string]bool{}
	err := c.objects.Pages(ctx, c.levels, func(p kv.Page) {
		for _, r := range p.Records {
			there[r.Key[len(c.levels):]] = true
		}
	})
	if err != nil {
		return err
	}
	var wrong []*controller.Header
	var unread error
	err = c.objects.Pages(ctx, c.schemas, func(p kv.Page) {
		for _, r := range p.Records {
			h, err := controller.ReadHeader(r.Key, r.Value, r.Revision)
			t := object.Tree{}
			if err == nil {
				err = utiljson.Unmarshal(h.JSON, &t)
			}
			if err != nil {
				unread = err
			} else if c.dangling(t, there) != nil {
				wrong = append(wrong, h)
			}
		}
	})
	if err == nil {
		err = unread
	}
	if err != nil {
		return err
	}
	wrong = c.limited(wrong)
	d := c.objects.Lookup(flowcontrolv1.GroupName, "flowschemas")
	return controller.Each(ctx, controller.Parallel, wrong, func(h *controller.Header) error {
		return c.objects.Apply(ctx, d, h.Key, h.UID, "status", func(t object.Tree) object.Tree {
			if condition := c.dangling(t, there); condition != nil {
				return object.Tree{"status": object.Tree{"conditions": []any{condition}}}
			}
			return nil
		})
	})
}

// limited returns the FlowSchemas that may be updated now, and queues the task for the others.
func (c *Controller) limited(wrong []*controller.Header) []*controller.Header {
	now := c.objects.Now()
	maps.DeleteFunc(c.recent, func(_ string, updates []time.Time) bool {
		return now.Sub(updates[len(updates)-1]) >= time.Minute
	})
	return slices.DeleteFunc(wrong, func(h *controller.Header) bool {
		updates := slices.DeleteFunc(c.recent[h.Key], func(t time.Time) bool { return now.Sub(t) >= time.Minute })
		if len(updates) == most {
			c.queue.After(controller.Task{}, time.Minute-now.Sub(updates[0]))
			return true
		}
		c.recent[h.Key] = append(updates, now)
		return false
	})
}

// dangling returns the condition Dangling of a FlowSchema, or nil if it is up to date. A new
// message is a transition, too.
func (c *Controller) dangling(t object.Tree, there map[string]bool) object.Tree {
	level := kind.Text(t, "spec", "priorityLevelConfiguration", "name")
	status, reason, found := flowcontrolv1.ConditionFalse, "Found", "and it exists"
	if !there[level] {
		status, reason, found = flowcontrolv1.ConditionTrue, "NotFound", "but there is no such object"
	}
	want := object.Tree{
		"type": string(flowcontrolv1.FlowSchemaConditionDangling), "status": string(status), "reason": reason,
		"message": fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q %s", level, found),
	}
	for _, one := range kind.List(t, "status", "conditions") {
		old, _ := one.(object.Tree)
		if old["type"] == want["type"] && old["status"] == want["status"] && old["reason"] == want["reason"] && old["message"] == want["message"] {
			return nil
		}
	}
	want["lastTransitionTime"] = object.Timestamp(c.objects.Now())
	return want
}
