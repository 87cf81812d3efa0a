// Package discovery has the built-in kind of discovery.k8s.io, EndpointSlice.
//
// It knows what one may say. Who answers at the addresses is for internal/network/endpoint.
package discovery

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{endpointSlices()}
}
