// Package policy has the built-in kinds of the group policy: PodDisruptionBudget, and Eviction,
// which is not stored.
//
// internal/builtin/pod handles evictions. A controller outside this program computes the allowed
// disruptions.
package policy

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{podDisruptionBudgets()}
}
