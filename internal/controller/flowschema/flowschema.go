// Package flowschema says in the status of each FlowSchema whether the
// PriorityLevelConfiguration that it names is there.
package flowschema

import (
	"context"
	"fmt"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/kv"
)

// Name is what the controller is called, as the part of kube-apiserver is that does this.
const Name = "priority-and-fairness-config-consumer"

// manager is who is recorded for the status.
const manager = "api-" + Name + "-v1"

// A Controller looks at all FlowSchemas together, as there are few. It has one task.
type Controller struct {
	objects         *controller.Objects
	queue           *controller.Queue
	schemas, levels string // prefixes of keys
}

// New makes the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{
		objects: o.ManagedBy(manager), queue: q,
		schemas: o.Prefix(flowcontrolv1.GroupName, "flowschemas"),
		levels:  o.Prefix(flowcontrolv1.GroupName, "prioritylevelconfigurations"),
	}
}

// Keys returns those of both kinds.
func (c *Controller) Keys() []string { return []string{c.schemas, c.levels} }

// See has the FlowSchemas looked at, whatever has changed.
func (c *Controller) See(*controller.Event) { c.queue.Add(controller.Task{}) }

// Do writes the status of those FlowSchemas that say something else than is true.
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

// dangling returns the condition that says whether the level of a FlowSchema is missing, and nil if
// that is no news. A new text is a transition, too.
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
