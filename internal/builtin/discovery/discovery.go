// Package discovery has the built-in kind EndpointSlice of discovery.k8s.io.
//
// It validates EndpointSlices. internal/network/endpoint connects to the addresses.
package discovery

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{endpointSlices()}
}
