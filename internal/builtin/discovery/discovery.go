// Package discovery has the built-in kind of discovery.k8s.io, EndpointSlice.
//
// It knows what one may say. Who answers at the addresses is for internal/endpoint.
package discovery

import (
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/schema/model"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{endpointSlices()}
}

// marks say of the Go types what only their source does.
func marks() model.Marks {
	const discovery = "io.k8s.api.discovery.v1."
	atomic := model.Mark{List: "atomic"}
	return model.Marks{
		discovery + "Endpoint":      {"addresses": {List: "set"}},
		discovery + "EndpointHints": {"forNodes": atomic, "forZones": atomic},
		discovery + "EndpointPort":  {"": {Map: "atomic"}, "protocol": {Enum: []string{"SCTP", "TCP", "UDP"}}},
		discovery + "EndpointSlice": {
			"addressType": {Enum: []string{"FQDN", "IPv4", "IPv6"}},
			"endpoints":   {List: "atomic", Optional: true},
			"ports":       {List: "atomic", Optional: true},
		},
	}
}
