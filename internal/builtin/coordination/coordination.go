// Package coordination has the built-in kind of coordination.k8s.io, Lease.
//
// It knows what one may say. Who holds one is for the clients that use it.
package coordination

import (
	"github.com/anykind/anykind/internal/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{leases()}
}
