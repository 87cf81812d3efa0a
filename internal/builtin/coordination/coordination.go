// Package coordination has the built-in kinds of coordination.k8s.io, Lease and
// LeaseCandidate.
//
// It knows what one may say. The clients that use it say who holds one.
package coordination

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{leases(), leaseCandidates()}
}
