// Package priority has the admission plugin Priority, which gives pods the priority of their
// PriorityClass, and lets one class only be the default.
//
// It knows what classes say of pods. What a class itself may be is for its kind.
package priority

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

// Name is what Kubernetes calls the plugin.
const Name = "Priority"

// A Plugin gives pods their priorities.
type Plugin struct {
	Classes *stored.Lister[schedulingv1.PriorityClass]
}

// Mutate gives a new pod the priority of its class, and keeps the one of a pod that is updated.
func (p *Plugin) Mutate(ctx context.Context, a *registry.Admission) error {
	d := a.Target.Definition
	if d.Plural != "pods" || d.Group != "" || a.Target.Subresource != "" {
		return nil
	}
	switch a.Operation {
	case registry.Create:
		return p.give(ctx, a)
	case registry.Update:
		return keep(ctx, a)
	}
	return nil
}

// Validate refuses a second class that is the default.
func (p *Plugin) Validate(ctx context.Context, a *registry.Admission) error {
	d := a.Target.Definition
	if d.Plural != "priorityclasses" || d.Group != schedulingv1.GroupName || a.Target.Subresource != "" ||
		a.Operation != registry.Create && a.Operation != registry.Update || a.Object["globalDefault"] != true {
		return nil
	}
	first, err := p.global(ctx)
	if err != nil {
		return fmt.Errorf("failed to get default priority class: %w", err)
	}
	if first != nil && (a.Operation == registry.Create || first.Name != object.Name(a.Object)) {
		return a.Forbidden(fmt.Errorf("PriorityClass %v is already marked as default. Only one default can exist", first.Name))
	}
	return nil
}

// keep keeps the priority of a pod, if the client does not say it.
func keep(ctx context.Context, a *registry.Admission) error {
	old, err := a.Old(ctx)
	if err != nil {
		return err
	}
	spec := kind.Child(a.Object, "spec")
	for _, field := range [...]string{"priority", "preemptionPolicy"} {
		if was := kind.Value(old, "spec", field); was != nil && spec[field] == nil {
			spec[field], a.Extended = was, true
		}
	}
	return nil
}

// give gives a new pod the priority of its class. A client may say what the class says, too.
func (p *Plugin) give(ctx context.Context, a *registry.Admission) error {
	spec := kind.Child(a.Object, "spec")
	class, err := p.class(ctx, a, kind.Text(spec, "priorityClassName"))
	if err != nil {
		return err
	}
	if class.Name != "" {
		spec["priorityClassName"] = class.Name
	}
	if says, ok := spec["priority"].(int64); ok && says != int64(class.Value) {
		return a.Forbidden(fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", says, class.Value))
	}
	spec["priority"], a.Extended = int64(class.Value), true
	if class.PreemptionPolicy == nil {
		return nil
	}
	policy := string(*class.PreemptionPolicy)
	if says, ok := spec["preemptionPolicy"].(string); ok && says != policy {
		return a.Forbidden(fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", says, policy))
	}
	spec["preemptionPolicy"] = policy
	return nil
}

// class returns the class of a name. For "" it is the default, or one without a name that has no
// priority.
func (p *Plugin) class(ctx context.Context, a *registry.Admission, name string) (*schedulingv1.PriorityClass, error) {
	if name == "" {
		class, err := p.global(ctx)
		if err != nil {
			return nil, fmt.Errorf("error occurred while retrieving default priority class: %w", err)
		}
		if class == nil {
			return none, nil
		}
		return class, nil
	}
	class, err := p.Classes.Get(ctx, "", name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("failed to resolve PriorityClass with name %s: %w", name, err)
	case class == nil:
		return nil, a.Forbidden(fmt.Errorf("no PriorityClass with name %v was found", name))
	}
	return class, nil
}

// none is what a pod without a class has.
var none = &schedulingv1.PriorityClass{PreemptionPolicy: new(corev1.PreemptLowerPriority)}

// global returns the class that is the default, or nil. Of several, which two clients can make at
// once, it is the lowest.
func (p *Plugin) global(ctx context.Context) (lowest *schedulingv1.PriorityClass, err error) {
	classes, err := p.Classes.List(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, c := range classes {
		if c.GlobalDefault && (lowest == nil || c.Value < lowest.Value) {
			lowest = c
		}
	}
	return lowest, nil
}
