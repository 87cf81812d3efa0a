package flags

import (
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
)

// addServices adds the flags of Services: their addresses and ports, and the Service of this server.
func (f *Serve) addServices(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.services.CIDRs, "service-cluster-ip-range", []string{app.DefaultServiceCIDR},
		"range of the cluster IPs of Services, as a CIDR; one, or one of IPv4 and one of IPv6")
	flags.StringVar(&f.services.NodePorts, "service-node-port-range", app.DefaultServiceNodePorts,
		"range of the node ports of Services, inclusive at both ends")
	flags.StringVar(&f.services.Advertise, "advertise-address", "",
		"IP address at which others find the server, in the endpoints of the Service kubernetes (default: --bind-address or, if that is unspecified, the one of the interface that leads outside)")
	flags.StringVar(&f.services.Reconciler, "endpoint-reconciler-type", app.ReconcileByLease,
		"how the endpoints of the Service kubernetes are kept: "+app.ReconcileByLease+" has the servers that share a store say there that they are alive; "+app.ReconcileNothing+" does not keep them; "+app.ReconcileByCount+", which is deprecated, is "+app.ReconcileByLease)
	flags.BoolVar(&f.endpoints, "enable-aggregator-routing", true,
		"call webhooks and other API servers at the endpoints of their Services; false calls the cluster IPs, which takes a kube-proxy on this machine")
}
