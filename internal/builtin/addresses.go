package builtin

import (
	"net/netip"

	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/builtin/core"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// GiveAddresses makes the kind Service allocate cluster IPs and node ports, and returns the
// Allocator. The kinds must not be in use yet.
func GiveAddresses(kinds *resource.Set, cache *watchcache.Cache, cidrs []netip.Prefix, ports allocation.PortRange, gates *gate.Set) *allocation.Allocator {
	services := kinds.Lookup("", "services")
	a := allocation.New(allocation.Options{
		Cache: cache, CIDRs: cidrs, Ports: ports, Gates: gates,
		Services: services, Addresses: kinds.Lookup("networking.k8s.io", "ipaddresses"), Ranges: kinds.Lookup("networking.k8s.io", "servicecidrs"),
	})
	core.GiveAddresses(services, a)
	return a
}
