// Package networking has the built-in kinds of networking.k8s.io.
//
// It validates them. internal/builtin/allocation allocates addresses, and nothing here routes
// packets.
package networking

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{ingressClasses(), ingresses(), ipAddresses(), networkPolicies(), serviceCIDRs()}
}
