// Package policy has the built-in kinds of the group policy: the PodDisruptionBudget, and
// the Eviction, of which nothing is stored.
//
// What an eviction does to a pod and to its budget is in internal/builtin/pod.
package policy

import (
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/schema/model"
)

// Definitions returns the kinds of the group that are served as resources.
func Definitions() []*resource.Definition {
	return []*resource.Definition{PodDisruptionBudgets()}
}

// marks say of the Go types what only their source does.
func marks() model.Marks {
	const policy = "io.k8s.api.policy.v1."
	return model.Marks{
		"io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector": {"": {Map: "atomic"}},
		policy + "PodDisruptionBudgetStatus":                 {"conditions": {List: "map", Keys: []string{"type"}}},
	}
}
