// Package networking has the built-in kinds of networking.k8s.io.
//
// It validates them. internal/builtin/allocation allocates addresses, and nothing here routes
// packets.
package networking

import (
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{ingressClasses(), ingresses(), ipAddresses(), networkPolicies(), serviceCIDRs()}
}

// beta is the version of kinds that v1.37 has removed.
func beta() kind.Version {
	return kind.Renamed("v1beta1", "k8s.io/api/networking/v1beta1", kind.Life{Introduced: 31, Deprecated: 34, Removed: 37})
}
