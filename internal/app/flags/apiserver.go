package flags

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/app/fakeetcd"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/store/atomicfile"
)

// ControllersVariable is the environment variable with the controllers to run besides those of
// kube-apiserver, in the syntax of --controllers.
const ControllersVariable = "ANYKIND_CONTROLLERS"

// APIServer has the flags of kube-apiserver.
type APIServer struct {
	Serve
	Version ReportedVersion

	certDir string
	strict  []string
	minimum uint32 // seconds
	taken   takenFlags
}

// Add adds the flags.
func (f *APIServer) Add(flags *pflag.FlagSet) {
	f.all = flags
	flags.SortFlags = false
	AddSection(flags, "Etcd", f.addEtcd)
	AddSection(flags, "Encryption at rest", f.addEncryption)
	AddSection(flags, "Secure serving", f.addServing)
	f.addAccess(flags, app.AllowAlways)
	AddSection(flags, "API enablement", f.addKinds)
	AddSection(flags, "Admission", f.addPlugins)
	AddSection(flags, "Coordinated leader election", f.addLeaders)
	AddSection(flags, "Services", f.addServices)
	AddSection(flags, "Outgoing connections", f.addOutgoing)
	AddSection(flags, "Auditing", f.addAudit)
	AddSection(flags, "Request limits", f.addLimits)
	AddSection(flags, "Metrics, logs and traces", f.addLogs)
	flags.Var(&f.Version, "version", "print the version and exit; --version=vX.Y.Z... sets the version that the server reports")
	flags.Lookup("version").NoOptDefVal = "true"
	f.taken.add(flags)
}

func (f *APIServer) addServing(flags *pflag.FlagSet) {
	f.Serve.addServing(flags, net.IPv4zero)
	flags.StringVar(&f.certDir, "cert-dir", "",
		"directory with apiserver.crt and apiserver.key, generated if missing; used without --tls-cert-file (default: generated certificates are not stored)")
	flags.StringSliceVar(&f.strict, "strict-transport-security-directives", nil,
		"directives of the response header Strict-Transport-Security, such as max-age=31536000,includeSubDomains; without any, no header is sent")
}

func (f *APIServer) addLimits(flags *pflag.FlagSet) {
	f.limits.add(flags)
	flags.Uint32Var(&f.minimum, "min-request-timeout", 1800,
		"minimum timeout in seconds of a watch without timeoutSeconds; the server adds up to the same time again; 0 for no timeout")
}

// endless is longer than a server runs.
const endless = 100 * 365 * 24 * time.Hour

// Options returns the options that the flags set, for a server without files of its own except those
// of --cert-dir, which it generates if they are missing. The log names flags without effect.
// controllers is the value of ControllersVariable.
func (f *APIServer) Options(log *slog.Logger, controllers string) (app.Options, error) {
	if err := checkDirectives(f.strict); err != nil {
		return app.Options{}, err
	}
	for _, name := range f.taken.given() {
		log.Warn("the flag has no effect in anykind", "flag", "--"+name)
	}
	if err := f.certificate(); err != nil {
		return app.Options{}, err
	}
	f.authentication.Open = true
	if f.authorization.ConfigFile == "" && len(f.authorization.Modes) == 0 {
		f.authorization.Modes = []string{app.AllowAlways}
	}
	f.controllers = app.OwnControllers(controllers)
	if len(f.etcd.Servers) == 1 && fakeetcd.Is(context.Background(), f.etcd.Servers[0]) {
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
	o.Kubeconfig = "" // kube-apiserver writes none
	return o, nil
}

// EtcdServers returns the value of --etcd-servers. Without one, a server stores objects in memory;
// kube-apiserver does not start.
func (f *APIServer) EtcdServers() []string { return f.etcd.Servers }

// certificate reads the serving certificate from --cert-dir, or generates it there, with an RSA key, as Kubernetes does:
// every client accepts one.
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
