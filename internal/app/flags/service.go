package flags

import (
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
)

// addServices adds the flags of Services: their IP addresses and ports, and the endpoints of the
// Service kubernetes.
func (f *Serve) addServices(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.services.CIDRs, "service-cluster-ip-range", []string{app.DefaultServiceCIDR},
		"CIDR of the cluster IPs of Services; one, or one of IPv4 and one of IPv6")
	flags.StringVar(&f.services.NodePorts, "service-node-port-range", app.DefaultServiceNodePorts,
		"range of the node ports of Services, inclusive at both ends")
	flags.StringVar(&f.services.Advertise, "advertise-address", "",
		"IP address of this server in the endpoints of the Service kubernetes (default: --bind-address or, if that is unspecified, the address of the default network interface)")
	flags.StringVar(&f.services.Reconciler, "endpoint-reconciler-type", app.ReconcileByLease,
		"reconciler of the endpoints of the Service kubernetes: "+app.ReconcileByLease+" has each server that shares the store renew a lease there; "+app.ReconcileNothing+" disables it; "+app.ReconcileByCount+" is deprecated and means "+app.ReconcileByLease)
}
