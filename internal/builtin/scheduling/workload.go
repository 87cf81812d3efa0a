package scheduling

import (
	"context"
	"fmt"

	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	"k8s.io/utils/ptr"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// beta is the stored version, with the types of v1alpha3.
func beta() kind.Version {
	return kind.Renamed("v1beta1", "k8s.io/api/scheduling/v1beta1", kind.Life{Introduced: 37, Deprecated: 40, Removed: 43}).Stored()
}

// workloads returns the kind with the templates of groups.
func workloads() *resource.Definition {
	d := definition("workloads", gate.GenericWorkload)
	d.Prepare = prepareWorkload
	return kind.Kind[*schedulingv1alpha3.Workload, *schedulingv1alpha3.WorkloadList]{
		Definition: d,

		Version:  &resource.Version{Name: "v1alpha3"},
		Validate: validateWorkload,
		Columns:  `Age`,
	}.New(beta())
}

// Fields with templates.
const (
	groupTemplates     = "podGroupTemplates"
	compositeTemplates = "compositePodGroupTemplates"
)

// gatedOfTemplates are the fields of a template that need a feature gate. A template keeps one that it had before.
var gatedOfTemplates = map[string]gate.Name{
	"schedulingConstraints": gate.TopologyAwareWorkloadScheduling,
	"resourceClaims":        gate.DRAWorkloadResourceClaims,
	"preemptionPolicy":      gate.PodGroupPreemptionPolicy,
}

func prepareWorkload(_ context.Context, c *resource.Change) {
	dropOfTemplates(c.Gates, kind.Tree(c.Object, "spec"), kind.Tree(c.Old, "spec"))
}

// dropOfTemplates drops the fields of gates that are off from the templates in an object. Old templates of pod groups
// belong to those in the same place, and others to those with the same name.
func dropOfTemplates(gates *gate.Set, in, old map[string]any) {
	if !gates.On(gate.CompositePodGroup) && len(kind.List(old, compositeTemplates)) == 0 {
		delete(in, compositeTemplates)
	}
	was := kind.List(old, groupTemplates)
	for i, v := range kind.List(in, groupTemplates) {
		var before any
		if i < len(was) {
			before = was[i]
		}
		dropOfTemplate(gates, v, before, "schedulingConstraints", "resourceClaims", "preemptionPolicy")
	}
	named := map[any]any{}
	for _, v := range kind.List(old, compositeTemplates) {
		t, _ := v.(map[string]any)
		named[t["name"]] = v
	}
	for _, v := range kind.List(in, compositeTemplates) {
		t, _ := v.(map[string]any)
		before, _ := named[t["name"]].(map[string]any)
		dropOfTemplate(gates, t, before, "preemptionPolicy")
		dropOfTemplates(gates, t, before)
	}
}

func dropOfTemplate(gates *gate.Set, template, old any, fields ...string) {
	t, _ := template.(map[string]any)
	was, _ := old.(map[string]any)
	for _, name := range fields {
		if list, isList := was[name].([]any); t[name] == nil || was[name] != nil && (!isList || len(list) > 0) || gates.On(gatedOfTemplates[name]) {
			continue
		}
		if delete(t, name); name == "schedulingConstraints" {
			t[name] = nil // as without a value
		}
	}
}

func validateWorkload(c *rule.Check, w, old *schedulingv1alpha3.Workload) {
	c = c.At("spec")
	spec := &w.Spec
	names := map[string]bool{}
	for _, t := range spec.PodGroupTemplates {
		names[t.Name] = true
	}
	validateNames(c, spec.CompositePodGroupTemplates, names)
	for i, t := range spec.CompositePodGroupTemplates {
		if depth(&t) > schedulingv1alpha3.WorkloadMaxTreeDepth-1 {
			c.At(compositeTemplates, i).Invalid(t.CompositePodGroupTemplates, fmt.Sprintf("maximum template hierarchy depth is %d", schedulingv1alpha3.WorkloadMaxTreeDepth))
		}
	}
	validatePriorities(c, spec)
	validateChildren(c, spec.CompositePodGroupTemplates)
	var was *schedulingv1alpha3.WorkloadSpec
	if old != nil {
		was = &old.Spec
	}
	c.Declared(spec, was)
}

// validateNames rejects names of templates that occur in another list.
func validateNames(c *rule.Check, templates []schedulingv1alpha3.CompositePodGroupTemplate, names map[string]bool) {
	at := c.At(compositeTemplates)
	for i, t := range templates {
		if names[t.Name] {
			at.At(i, "name").Duplicate(t.Name)
		}
	}
	for _, t := range templates {
		names[t.Name] = true
	}
	for i, t := range templates {
		for k, g := range t.PodGroupTemplates {
			if names[g.Name] {
				at.At(i, groupTemplates, k, "name").Duplicate(g.Name)
			}
		}
		for _, g := range t.PodGroupTemplates {
			names[g.Name] = true
		}
		validateNames(at.At(i), t.CompositePodGroupTemplates, names)
	}
}

// depth returns the number of composite templates one in another.
func depth(t *schedulingv1alpha3.CompositePodGroupTemplate) int {
	deepest := 0
	for i := range t.CompositePodGroupTemplates {
		deepest = max(deepest, depth(&t.CompositePodGroupTemplates[i]))
	}
	return deepest + 1
}

// A rank is the priority of a template.
type rank struct {
	class    string
	priority *int32
}

func (r rank) equal(other rank) bool {
	return r.class == other.class && ptr.Equal(r.priority, other.priority)
}

// validatePriorities requires the same priority of all templates.
func validatePriorities(c *rule.Check, spec *schedulingv1alpha3.WorkloadSpec) {
	own := ranksOf(spec.PodGroupTemplates)
	ranks := own
	for i := range spec.CompositePodGroupTemplates {
		ranks = append(ranks, ranksBelow(&spec.CompositePodGroupTemplates[i])...)
	}
	for i, r := range ranks {
		switch {
		case r.equal(ranks[0]):
			continue
		case i < len(own):
			c.Invalid(nil, "detected multiple priority configurations")
		default:
			c.Invalid(nil, "all priority and priorityClassName values must be identical, detected multiple values")
		}
		return
	}
}

func ranksOf(templates []schedulingv1alpha3.PodGroupTemplate) (out []rank) {
	for _, t := range templates {
		out = append(out, rank{t.PriorityClassName, t.Priority})
	}
	return out
}

func ranksBelow(t *schedulingv1alpha3.CompositePodGroupTemplate) []rank {
	out := []rank{{t.PriorityClassName, t.Priority}}
	for i := range t.CompositePodGroupTemplates {
		out = append(out, ranksBelow(&t.CompositePodGroupTemplates[i])...)
	}
	return append(out, ranksOf(t.PodGroupTemplates)...)
}

// validateChildren rejects composite templates without children.
func validateChildren(c *rule.Check, templates []schedulingv1alpha3.CompositePodGroupTemplate) {
	for i, t := range templates {
		at := c.At(compositeTemplates, i)
		if len(t.PodGroupTemplates) == 0 && len(t.CompositePodGroupTemplates) == 0 {
			at.Invalid(t.Name, "must have at least one child PodGroupTemplate or CompositePodGroupTemplate")
		}
		validateChildren(at, t.CompositePodGroupTemplates)
	}
}
