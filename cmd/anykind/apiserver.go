package main

import (
	"cmp"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/server"
)

// controllersVariable says which controllers run under the name kube-apiserver besides those that
// a kube-apiserver has, in the words of --controllers.
const controllersVariable = "ANYKIND_CONTROLLERS"

// apiServerFlags are those of kube-apiserver.
type apiServerFlags struct {
	serveFlags
	certDir string
	version reportedVersion
	strict  []string
	minimum uint32 // seconds
	gates   kubernetesGates
	taken   takenFlags
}

// apiServerCommand is the program under the name kube-apiserver, for whoever starts one.
func apiServerCommand(started time.Time) *cobra.Command {
	var f apiServerFlags
	cmd := &cobra.Command{
		Use:   "kube-apiserver",
		Short: "Serve the API in the place of kube-apiserver",
		Long: `Serve the API in the place of kube-apiserver. This is anykind: its flags are those of
kube-apiserver, and mean the same. Those that mean nothing here are accepted, and the log says so.

Objects are in the etcd of --etcd-servers. If that is anykind under the name etcd, they are in
memory, and gone when this program ends.

The controllers of kube-controller-manager do not run, so that nothing happens that does not with
a kube-apiserver: ` + controllersVariable + `=* runs them.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.version.print {
				fmt.Fprintln(cmd.OutOrStdout(), "Kubernetes", cmp.Or(f.version.serve, server.BuildVersion().GitVersion))
				return nil
			}
			return f.serve(started)
		},
	}
	f.add(cmd)
	return cmd
}

// add adds all flags.
func (f *apiServerFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IPVar(&f.bindAddress, "bind-address", net.IPv4zero, "IP address to listen on; 0.0.0.0 or :: for all of this machine")
	flags.Uint16Var(&f.securePort, "secure-port", 6443, "port to listen on; 0 for any that is free")
	flags.StringVar(&f.certDir, "cert-dir", "",
		"directory with apiserver.crt and apiserver.key, which are made if they are not there; used where --tls-cert-file is not given (default: certificates are kept nowhere)")
	f.addEtcd(cmd)
	f.addIdentity(cmd)
	f.addAuthorization(cmd)
	f.addTokens(cmd)
	f.addServices(cmd)
	f.addPlugins(cmd)
	f.addKinds(cmd)
	flags.Var(&f.gates, "feature-gates", "feature gates of Kubernetes, NAME=BOOL; those that cannot be changed here are named in the log")
	flags.IntVarP(&f.verbosity, "v", "v", 0, "how much to log on stderr: 0 warnings, 2 what happens, 4 every request")
	flags.StringSliceVar(&f.strict, "strict-transport-security-directives", nil,
		"directives of the header Strict-Transport-Security of every answer, such as max-age=31536000,includeSubDomains; empty sends no header")
	flags.Uint32Var(&f.minimum, "min-request-timeout", 1800,
		"seconds that a watch lasts at least of which the client does not say how long; it lasts up to twice that, and with 0 without an end")
	flags.Var(&f.version, "version", "print the version, and end; --version=vX.Y.Z... sets the version that clients are told")
	flags.Lookup("version").NoOptDefVal = "true"
	f.taken.add(flags)
}
