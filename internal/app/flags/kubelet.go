package flags

import (
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/network/kubelet"
)

// kubeletFlags are the flags for connections to kubelets.
type kubeletFlags struct{ kubelet.Options }

// addKubelet adds the flags for connections to kubelets: for logs, exec, attach, port forwarding and
// the node proxy.
func (f *Serve) addKubelet(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubelet.CertFile, "kubelet-client-certificate", "",
		"file with the client certificate that kubelets know the server by, PEM")
	flags.StringVar(&f.kubelet.KeyFile, "kubelet-client-key", "",
		"file with the private key of --kubelet-client-certificate, PEM")
	flags.StringVar(&f.kubelet.CAFile, "kubelet-certificate-authority", "",
		"file with authorities that sign the certificates of kubelets, PEM (default: any certificate is taken)")
	flags.DurationVar(&f.kubelet.Timeout, "kubelet-timeout", kubelet.Timeout,
		"how long connecting to a kubelet may take")
	flags.StringSliceVar(&f.kubelet.AddressTypes, "kubelet-preferred-address-types", kubelet.AddressTypes(),
		"addresses of nodes by which kubelets are reached, the preferred ones first")
}
