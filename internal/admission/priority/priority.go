// Package priority implements the admission plugin Priority. It sets the priority of pods and of
// groups of pods from their PriorityClass, and rejects a second default class.
//
// It applies classes to them. The rules for classes themselves are in their kind.
package priority

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

// Name is the name of the plugin in Kubernetes.
const Name = "Priority"

// A Plugin sets the priorities of pods and groups.
type Plugin struct {
	Classes *stored.Lister[schedulingv1.PriorityClass]
}

// Mutate sets the priority of a new pod or group from its class. An updated pod keeps its priority.
func (p *Plugin) Mutate(ctx context.Context, a *registry.Admission) error {
	if a.Target.Subresource != "" {
		return nil
	}
	d := a.Target.Definition
	switch group := d.Group == schedulingv1.GroupName; {
	case d.Plural == "pods" && d.Group == "" && a.Operation == registry.Create:
		return p.give(ctx, a)
	case d.Plural == "pods" && d.Group == "" && a.Operation == registry.Update:
		return keep(ctx, a)
	case d.Plural == "podgroups" && group && a.Operation == registry.Create && a.Gates.On(gate.GenericWorkload):
		return p.giveGroup(ctx, a, "pod group")
	case d.Plural == "compositepodgroups" && group && a.Operation == registry.Create && a.Gates.On(gate.CompositePodGroup):
		return p.giveGroup(ctx, a, "composite pod group")
	}
	return nil
}

// Validate rejects a second default class.
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

// keep copies the priority of the old pod if the update omits it.
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

// give sets the priority of a new pod from its class. The pod may already have the same value.
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

// giveGroup sets the priority of a new group from its class. The group may already have the same value.
func (p *Plugin) giveGroup(ctx context.Context, a *registry.Admission, called string) error {
	spec := kind.Child(a.Object, "spec")
	class, err := p.class(ctx, a, kind.Text(spec, "priorityClassName"))
	if err != nil {
		return err
	}
	if says, ok := spec["priority"].(int64); ok && says != int64(class.Value) {
		return a.Forbidden(fmt.Errorf("priority set in the %s (%d) must match the priority computed (%d) based on the priority class set in the spec", called, says, class.Value))
	}
	if class.Name != "" {
		spec["priorityClassName"] = class.Name
	}
	spec["priority"], a.Extended = int64(class.Value), true
	if class.PreemptionPolicy == nil || !a.Gates.On(gate.PodGroupPreemptionPolicy) {
		return nil
	}
	policy := string(*class.PreemptionPolicy)
	if policy != string(corev1.PreemptLowerPriority) && policy != string(corev1.PreemptNever) {
		return a.Forbidden(fmt.Errorf("preemptionPolicy set in the PriorityClass object (%s) must match one of the allowed values of PreemptionPolicy type in %s", policy, called))
	}
	if says, ok := spec["preemptionPolicy"].(string); ok && says != policy {
		return a.Forbidden(fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in %s spec; priority admission controller computed %s from the given PriorityClass name", says, called, policy))
	}
	spec["preemptionPolicy"] = policy
	return nil
}

// class returns the class of that name. For "" it returns the default class, or none.
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

// none holds the values of a pod or group without a class.
var none = &schedulingv1.PriorityClass{PreemptionPolicy: new(corev1.PreemptLowerPriority)}

// global returns the default class, or nil. Concurrent creates can lead to several; the one with
// the lowest priority wins.
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
