// Package networking has the built-in kinds of networking.k8s.io that say which addresses
// Services have: IPAddress and ServiceCIDR.
//
// It knows what one may say. Who is given which address is for internal/allocation.
package networking

import (
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/schema/model"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{ipAddresses(), serviceCIDRs()}
}

// marks say of the Go types what only their source does.
func marks() model.Marks {
	const networking = "io.k8s.api.networking.v1."
	required := model.Mark{Required: true}
	return model.Marks{
		networking + "IPAddress":         {"spec": required},
		networking + "IPAddressSpec":     {"parentRef": required},
		networking + "ParentReference":   {"resource": required, "name": required},
		networking + "ServiceCIDRSpec":   {"cidrs": {List: "atomic"}},
		networking + "ServiceCIDRStatus": {"conditions": {List: "map", Keys: []string{"type"}}},
	}
}
