package flags

import (
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/network/kubelet"
)

// kubeletFlags are the flags of connections to kubelets.
type kubeletFlags struct{ kubelet.Options }

// addKubelet adds the flags of connections to kubelets: for logs, exec, attach, port
// forwarding and the proxy of nodes.
func (f *Serve) addKubelet(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubelet.CertFile, "kubelet-client-certificate", "",
		"PEM file with the client certificate for kubelets")
	flags.StringVar(&f.kubelet.KeyFile, "kubelet-client-key", "",
		"PEM file with the private key of --kubelet-client-certificate")
	flags.StringVar(&f.kubelet.CAFile, "kubelet-certificate-authority", "",
		"PEM bundle of CAs for the certificates of kubelets (default: any certificate is accepted)")
	flags.DurationVar(&f.kubelet.Timeout, "kubelet-timeout", kubelet.Timeout,
		"timeout for connecting to a kubelet")
	flags.StringSliceVar(&f.kubelet.AddressTypes, "kubelet-preferred-address-types", kubelet.AddressTypes(),
		"address types of nodes for connections to kubelets, in order of preference")
}
