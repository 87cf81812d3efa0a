// Package policy has the built-in kind of the group policy, PodDisruptionBudget.
//
// It knows what one may be. How many pods may be disrupted is counted by a controller that
// is no part of this program.
package policy

import (
	"github.com/anykind/anykind/internal/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{podDisruptionBudgets()}
}
