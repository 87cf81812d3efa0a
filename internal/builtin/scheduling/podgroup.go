package scheduling

import (
	"slices"

	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

func definition(plural string, needs gate.Name) resource.Definition {
	return resource.Definition{Group: schedulingv1alpha3.GroupName, Plural: plural, Namespaced: true, Gate: needs}
}

// podGroups returns the kind of groups of pods that are scheduled together.
func podGroups(gates *gate.Set) *resource.Definition {
	return kind.Kind[*schedulingv1alpha3.PodGroup, *schedulingv1alpha3.PodGroupList]{
		Definition:       definition("podgroups", gate.GenericWorkload),
		Version:          &resource.Version{Name: "v1alpha3"},
		StatusKeeps:      "spec metadata",
		StatusHasNoTable: true,
		Default:          defaultPreemption(gates),
		Validate:         validatePodGroup, ValidateStatus: validatePodGroupStatus,
		Columns: `
			Policy    string  policy    .spec.schedulingPolicy
			Workload  string  workload  "Name of the referenced Workload object"
			Status    string  state     "Status of the PodGroup"
			Age
		`,
		Cells: kind.Cells{"policy": policyOf, "workload": workloadOf, "state": stateOfGroup},
	}.New(beta())
}

// compositePodGroups returns the kind of groups of groups.
func compositePodGroups(gates *gate.Set) *resource.Definition {
	return kind.Kind[*schedulingv1alpha3.CompositePodGroup, *schedulingv1alpha3.CompositePodGroupList]{
		Definition:       definition("compositepodgroups", gate.CompositePodGroup),
		Version:          &resource.Version{Name: "v1alpha3"},
		StatusKeeps:      "spec metadata",
		StatusHasNoTable: true,
		Default:          defaultPreemption(gates),
		Validate:         validateComposite, ValidateStatus: validateCompositeStatus,
		Columns: `
			Policy    string  policy    .spec.schedulingPolicy
			Workload  string  workload  "Name of the referenced Workload object"
			Age
		`,
		Cells: kind.Cells{"policy": policyOf, "workload": workloadOf},
	}.New()
}

// defaultPreemption returns a function that sets the preemption policy of a group.
func defaultPreemption(gates *gate.Set) func(obj map[string]any) {
	if !gates.On(gate.PodGroupPreemptionPolicy) {
		return nil
	}
	return func(obj map[string]any) {
		kind.SetMissing(kind.Child(obj, "spec"), "preemptionPolicy", string(schedulingv1alpha3.PreemptLowerPriority))
	}
}

func policyOf(group map[string]any) any {
	if kind.Value(group, "spec", "schedulingPolicy", "gang") != nil {
		return "Gang"
	}
	return "Basic"
}

func workloadOf(group map[string]any) any {
	if kind.Value(group, "spec", "workloadRef") == nil {
		return "<none>"
	}
	return kind.Text(group, "spec", "workloadRef", "workloadName")
}

func stateOfGroup(group map[string]any) any {
	state := "Pending"
	if scheduled := conditionOf(group, schedulingv1alpha3.PodGroupInitiallyScheduled); scheduled != nil {
		if state = "Unschedulable"; scheduled["status"] == string(metav1.ConditionTrue) {
			state = "Scheduled"
		}
	}
	if ends := conditionOf(group, schedulingv1alpha3.DisruptionTarget); ends != nil {
		state = kind.Text(ends, "reason")
	}
	return state
}

// conditionOf returns the last condition of a type, or nil.
func conditionOf(obj map[string]any, of string) (last map[string]any) {
	for _, v := range kind.List(obj, "status", "conditions") {
		if c, ok := v.(map[string]any); ok && c["type"] == of {
			last = c
		}
	}
	return last
}

func validatePodGroup(c *rule.Check, group, old *schedulingv1alpha3.PodGroup) {
	c = c.At("spec")
	var was *schedulingv1alpha3.PodGroupSpec
	if old != nil {
		was = &old.Spec
	} else if group.Spec.ParentCompositePodGroupName != nil && group.Spec.WorkloadRef == nil {
		c.At("workloadRef").Required("must be set when parentCompositePodGroupName is set")
	}
	c.Declared(&group.Spec, was)
}

func validatePodGroupStatus(c *rule.Check, group, old *schedulingv1alpha3.PodGroup) {
	c = c.At("status")
	c.At("conditions").Conditions(group.Status.Conditions)
	for i, s := range group.Status.ResourceClaimStatuses {
		if !slices.ContainsFunc(group.Spec.ResourceClaims, func(claim schedulingv1alpha3.PodGroupResourceClaim) bool { return claim.Name == s.Name }) {
			c.At("resourceClaimStatuses", i, "name").Invalid(s.Name, "must match the name of an entry in `spec.resourceClaims`")
		}
	}
	c.Declared(&group.Status, &old.Status)
}

func validateComposite(c *rule.Check, group, old *schedulingv1alpha3.CompositePodGroup) {
	var was *schedulingv1alpha3.CompositePodGroupSpec
	if old != nil {
		was = &old.Spec
	}
	c.At("spec").Declared(&group.Spec, was)
}

func validateCompositeStatus(c *rule.Check, group, _ *schedulingv1alpha3.CompositePodGroup) {
	c.At("status", "conditions").Conditions(group.Status.Conditions)
}
