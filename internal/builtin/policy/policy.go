// Package policy has the built-in kinds of the group policy: the PodDisruptionBudget, and
// the Eviction, of which nothing is stored.
//
// What an eviction does to a pod and to its budget is in internal/builtin/pod. How many pods
// may be disrupted is counted by a controller that is no part of this program.
package policy

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{podDisruptionBudgets()}
}
