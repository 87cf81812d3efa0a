// Package coordination has the built-in kind of coordination.k8s.io, Lease.
//
// It knows what one may say. The clients that use it say who holds one.
package coordination

import (
	"github.com/anykind/anykind/internal/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{leases()}
}
