package flags

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/app/etcddoor"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/store/atomicfile"
)

// ControllersVariable is the environment variable with additional controllers besides those of
// kube-apiserver, in the syntax of --controllers.
const ControllersVariable = "ANYKIND_CONTROLLERS"

// APIServer has the flags of kube-apiserver.
type APIServer struct {
	Serve
	Version ReportedVersion

	certDir string
	strict  []string
	minimum uint32 // seconds
	gates   kubernetesGates
	taken   takenFlags
}

// Add adds the flags.
func (f *APIServer) Add(flags *pflag.FlagSet) {
	f.all = flags
	flags.SortFlags = false
	flags.IPVar(&f.bindAddress, "bind-address", net.IPv4zero, "IP address to listen on; 0.0.0.0 or :: for all of this machine")
	flags.Uint16Var(&f.securePort, "secure-port", 6443, "port to listen on; 0 for any that is free")
	flags.StringVar(&f.certDir, "cert-dir", "",
		"directory with apiserver.crt and apiserver.key, which are made if they are not there; used where --tls-cert-file is not given (default: certificates are kept nowhere)")
	f.addEtcd(flags)
	f.addIdentity(flags)
	f.addAuthorization(flags, app.AllowAlways)
	f.addTokens(flags)
	f.addServices(flags)
	f.addPlugins(flags)
	f.addKinds(flags)
	flags.Var(&f.gates, "feature-gates", "feature gates of Kubernetes, NAME=BOOL; those that cannot be changed here are named in the log")
	flags.IntVarP(&f.verbosity, "v", "v", 0, "how much to log on stderr: 0 warnings, 2 what happens, 4 every request")
	flags.StringSliceVar(&f.strict, "strict-transport-security-directives", nil,
		"directives of the header Strict-Transport-Security of every answer, such as max-age=31536000,includeSubDomains; empty sends no header")
	flags.Uint32Var(&f.minimum, "min-request-timeout", 1800,
		"seconds that a watch lasts at least of which the client does not say how long; it lasts up to twice that, and with 0 without an end")
	flags.Var(&f.Version, "version", "print the version, and end; --version=vX.Y.Z... sets the version that clients are told")
	flags.Lookup("version").NoOptDefVal = "true"
	f.taken.add(flags)
}

// endless is longer than the life of a server.
const endless = 100 * 365 * 24 * time.Hour

// Options returns the options of a server that stores files only in --cert-dir, where it generates
// missing ones. It logs flags without effect. controllers is the value of ControllersVariable.
func (f *APIServer) Options(log *slog.Logger, controllers string) (app.Options, error) {
	if err := errors.Join(f.taken.refused(), checkDirectives(f.strict)); err != nil {
		return app.Options{}, err
	}
	for _, name := range f.taken.given() {
		log.Warn("flag is accepted, and changes nothing here", "flag", "--"+name)
	}
	for _, name := range f.gates.unchanged {
		log.Warn("feature gate is accepted, and cannot be changed here", "gate", name)
	}
	f.gates.inVain(func(gate, why string) {
		log.Warn("feature gate has no effect here; leave it out for the whole cluster", "gate", gate, "why", why)
	})
	if err := f.certificate(); err != nil {
		return app.Options{}, err
	}
	f.authentication.Open = true
	if f.authorization.ConfigFile == "" && len(f.authorization.Modes) == 0 {
		f.authorization.Modes = []string{app.AllowAlways}
	}
	f.Serve.gates.offer = f.gates.offer
	f.controllers = app.OwnControllers(controllers)
	if len(f.etcd.Servers) == 1 && etcddoor.Is(context.Background(), f.etcd.Servers[0]) {
		f.etcd = app.Etcd{}
	}
	o, err := f.Serve.Options(log)
	if err != nil {
		return app.Options{}, err
	}
	o.Version, o.StrictTransport = f.Version.Serve, f.strict
	o.MinWatch = time.Duration(f.minimum) * time.Second
	if f.minimum == 0 {
		o.MinWatch = endless
	}
	o.Kubeconfig = "" // like kube-apiserver
	return o, nil
}

// EtcdServers returns the values of --etcd-servers. Without one, the server keeps its objects in
// memory, unlike kube-apiserver.
func (f *APIServer) EtcdServers() []string { return f.etcd.Servers }

// certificate reads or generates the serving certificate in --cert-dir. It has an RSA key, as that
// of Kubernetes: every client accepts one.
func (f *APIServer) certificate() error {
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
	serving, err := made.ServingRSA()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.certDir, 0o755); err != nil {
		return fmt.Errorf("--cert-dir: %w", err)
	}
	if err := atomicfile.Replace(f.keyFile, serving.KeyPEM(), 0o600); err != nil {
		return err
	}
	return atomicfile.Replace(f.certFile, append(serving.CertPEM(), made.CA()...), 0o644)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
