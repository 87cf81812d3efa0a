// Package networking has the built-in kinds of networking.k8s.io.
//
// It knows what one may say. Who is given which address is for internal/builtin/allocation, and
// nothing here routes a packet.
package networking

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{ingressClasses(), ingresses(), ipAddresses(), networkPolicies(), serviceCIDRs()}
}
