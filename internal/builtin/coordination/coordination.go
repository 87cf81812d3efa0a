// Package coordination has the built-in kinds Lease and LeaseCandidate of coordination.k8s.io.
//
// It validates them. Clients elect the holder, or internal/controller/leaderelection does.
package coordination

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{leases(), leaseCandidates()}
}
