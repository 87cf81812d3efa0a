package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/atomicfile"
	"github.com/anykind/anykind/internal/etcddoor"
	"github.com/anykind/anykind/internal/pki"
	"github.com/anykind/anykind/internal/server"
)

// controllersVariable says which controllers run under the name kube-apiserver besides those that
// a kube-apiserver has, in the words of --controllers.
const controllersVariable = "ANYKIND_CONTROLLERS"

// apiServerFlags are those of kube-apiserver.
type apiServerFlags struct {
	serveFlags
	certDir string
	version bool
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
			if f.version {
				v := server.BuildVersion()
				fmt.Fprintln(cmd.OutOrStdout(), "Kubernetes", v.GitVersion)
				return nil
			}
			return f.serve(started)
		},
	}
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
	flags.BoolVar(&f.version, "version", false, "print the version, and end")
	f.taken.add(flags)
	return cmd
}

// serve serves until a signal.
func (f *apiServerFlags) serve(started time.Time) error {
	if len(f.etcd.Servers) == 0 {
		return errors.New("--etcd-servers must be specified")
	}
	if err := f.taken.refused(); err != nil {
		return err
	}
	log := f.log()
	for _, name := range f.taken.given() {
		log.Warn("flag is accepted, and changes nothing here", "flag", "--"+name)
	}
	for _, name := range f.gates.unchanged {
		log.Warn("feature gate is accepted, and cannot be changed here", "gate", name)
	}
	if err := f.certificate(); err != nil {
		return err
	}
	return serve(f.options(log), func(a *app.App) {
		log.Info("serving", "url", a.URL(), "took", time.Since(started).Round(time.Millisecond))
	})
}

// options are those of a server that keeps no files of its own.
func (f *apiServerFlags) options(log *slog.Logger) app.Options {
	if f.authentication.Anonymous == nil && f.authentication.ConfigFile == "" {
		everywhere := true
		f.authentication.Anonymous = &everywhere
	}
	f.serveFlags.gates.offer = f.gates.offer
	f.controllers = app.OwnControllers(os.Getenv(controllersVariable))
	if len(f.etcd.Servers) == 1 && etcddoor.Is(context.Background(), f.etcd.Servers[0]) {
		f.etcd = app.Etcd{}
	}
	return f.serveFlags.options(log)
}

// certificate finds the serving certificate in the directory, or makes it.
func (f *apiServerFlags) certificate() error {
	if f.certDir == "" || f.certFile != "" || f.keyFile != "" {
		return nil
	}
	f.certFile, f.keyFile = filepath.Join(f.certDir, "apiserver.crt"), filepath.Join(f.certDir, "apiserver.key")
	if exists(f.certFile) && exists(f.keyFile) {
		return nil
	}
	made, err := pki.Open("", pki.Hosts(f.bindAddress.String()))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.certDir, 0o755); err != nil {
		return fmt.Errorf("--cert-dir: %w", err)
	}
	if err := atomicfile.Replace(f.keyFile, made.Serving().KeyPEM(), 0o600); err != nil {
		return err
	}
	return atomicfile.Replace(f.certFile, append(made.Serving().CertPEM(), made.CA()...), 0o644)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
