package policy

import (
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

// PodDisruptionBudgets returns the kind that says how many pods may be evicted.
func PodDisruptionBudgets() *resource.Definition {
	return kind.New(resource.Definition{
		Group: policyv1.GroupName, Plural: "poddisruptionbudgets", Singular: "poddisruptionbudget", Kind: "PodDisruptionBudget",
		ShortNames: []string{"pdb"}, Namespaced: true, GroupPriority: kind.PolicyPriority, HasGeneration: true,
	}, kind.VersionOf[policyv1.PodDisruptionBudget, policyv1.PodDisruptionBudgetList](&resource.Version{
		Name:        "v1",
		Revert:      resource.Changing(revertBudget),
		ResetFields: []string{"status"},
		Subresources: []resource.Subresource{{
			Name: "status", Verbs: []string{"get", "patch", "update"}, Fields: []string{"metadata", "status"},
			Revert: resource.Changing(func(obj, old map[string]any) { kind.Put(obj, "spec", old["spec"]) }),
		}},
		Columns: []resource.Column{kind.AgeColumn()},
	}, marks()))
}

// revertBudget leaves the status to its subresource. That of a new budget says nothing yet,
// and allows nothing.
func revertBudget(obj, old map[string]any) {
	if old != nil {
		kind.Put(obj, "status", old["status"])
		return
	}
	none := int64(0)
	obj["status"] = map[string]any{"currentHealthy": none, "desiredHealthy": none, "disruptionsAllowed": none, "expectedPods": none}
}

// Evictions returns the kind by which a pod is evicted. It is the body of a request for a
// subresource of pods, and no resource of its own.
func Evictions() *resource.Definition {
	return kind.New(resource.Definition{
		Group: policyv1.GroupName, Plural: "evictions", Singular: "eviction", Kind: "Eviction", Namespaced: true, Verbs: []string{"create"},
	}, kind.UnlistedOf[policyv1.Eviction](&resource.Version{Name: "v1"}, marks()),
		kind.UnlistedOf[policyv1beta1.Eviction](&resource.Version{Name: "v1beta1"}, marks()))
}
