// Package flags has the flags of anykind serve, and those of kube-apiserver for programs that start
// one.
//
// It defines names, defaults and help, and turns flags into options for internal/app. It starts
// nothing, and handles neither signals nor terminals.
package flags

import (
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/store/kv"
)

// Serve has the flags of serve. Flags with a counterpart in kube-apiserver have the same name.
type Serve struct {
	securePort     uint16
	bindAddress    net.IP
	certFile       string
	keyFile        string
	named          namedCertificates
	clientCAFile   string
	tokenFile      string
	authentication app.Authentication
	authorization  app.Authorization
	tokens         tokenFlags
	kubelet        kubeletFlags
	network        networkFlags
	limits         limitFlags
	metrics        metricFlags
	dataDir        string
	inMemory       bool
	maxObjectBytes uint32
	etcd           app.Etcd
	etcdOverrides  []string
	kubeconfig     string
	admission      app.Admission
	controllers    []string
	runtimeConfig  builtin.RuntimeConfig
	privileged     bool
	services       app.Services
	endpoints      bool // connect to endpoints of Services, not to cluster IPs
	gates          gates
	verbosity      int
	level          slog.LevelVar // of the log
	all            *pflag.FlagSet
	crds           string
	cluster        app.Cluster
	given          func(name string) bool // whether a flag was set
}

// DefaultDataDir is the default data directory.
const DefaultDataDir = "anykind-data"

// AdministratorFile returns the default path of the administrator's kubeconfig.
func AdministratorFile(dataDir string) string { return filepath.Join(dataDir, "admin.kubeconfig") }

// Add adds the flags.
func (f *Serve) Add(flags *pflag.FlagSet) {
	f.all = flags
	flags.SortFlags = false
	flags.StringVar(&f.dataDir, "data-dir", DefaultDataDir,
		"directory for what is kept: objects, certificates, the kubeconfig; it is made if it does not exist")
	flags.BoolVar(&f.inMemory, "in-memory", false,
		"keep objects in memory only; certificates and the kubeconfig are still kept in --data-dir")
	flags.Uint32Var(&f.maxObjectBytes, "max-object-bytes", kv.DefaultMaxValueBytes,
		"how large an object may be as it is stored, as JSON; what is larger is refused. Unless said otherwise, it is what fits a request of etcd; with --etcd-servers, to raise it takes a --max-request-bytes of etcd that is at least 8192 more")
	f.addEtcd(flags)
	flags.StringVar(&f.kubeconfig, "kubeconfig", "",
		"file to write the administrator's kubeconfig to (default admin.kubeconfig in --data-dir)")
	flags.IPVar(&f.bindAddress, "bind-address", net.IPv4(127, 0, 0, 1),
		"IP address to listen on; 0.0.0.0 or :: for all of this machine")
	flags.Uint16Var(&f.securePort, "secure-port", 6443,
		"port to listen on; 0 for any that is free")
	f.addIdentity(flags)
	f.addAuthorization(flags, app.AuthorizeByRoles)
	f.addTokens(flags)
	f.addServices(flags)
	f.addParts(flags)
	f.addCluster(flags)
	flags.IntVarP(&f.verbosity, "v", "v", 0,
		"how much to log on stderr: 0 warnings, 2 what happens, 4 every request")
}

// values returns the values of all flags.
func (f *Serve) values() map[string]string {
	values := map[string]string{}
	f.all.VisitAll(func(flag *pflag.Flag) { values[flag.Name] = flag.Value.String() })
	return values
}

// Options converts the flags to options.
func (f *Serve) Options(log *slog.Logger) (app.Options, error) {
	if err := errors.Join(f.limits.check(), refuseOverrides(f.etcdOverrides)); err != nil {
		return app.Options{}, err
	}
	metrics, err := f.metrics.options()
	if err != nil {
		return app.Options{}, err
	}
	if f.kubeconfig == "" {
		f.kubeconfig = AdministratorFile(f.dataDir)
	}
	f.services.ClusterIPs = !f.endpoints
	if f.services.Reconciler == app.ReconcileByCount {
		log.Warn("endpoints of the Service kubernetes are kept by "+app.ReconcileByLease, "flag", "--endpoint-reconciler-type="+app.ReconcileByCount)
	}
	o := app.Options{
		Address:                  net.JoinHostPort(f.bindAddress.String(), strconv.Itoa(int(f.securePort))),
		Dir:                      f.dataDir,
		InMemory:                 f.inMemory,
		Etcd:                     f.etcd,
		MaxObjectBytes:           int(f.maxObjectBytes),
		Offer:                    f.gates.offer,
		CertFile:                 f.certFile,
		KeyFile:                  f.keyFile,
		NamedCertificates:        f.named,
		ClientCAFile:             f.clientCAFile,
		TokenFile:                f.tokenFile,
		Authentication:           f.authentication,
		Authorization:            f.authorization,
		ServiceAccounts:          f.tokens.options(),
		LegacyTokenCleanUpPeriod: f.tokens.cleanUpPeriod,
		Kubelet:                  f.kubelet.Options,
		EgressSelectorFile:       f.network.egress,
		GoawayChance:             float64(f.network.goaway),
		Limits:                   f.limits.options(),
		Metrics:                  metrics,
		Kubeconfig:               f.kubeconfig,
		Log:                      log,
		Admission:                f.admission,
		RuntimeConfig:            f.runtimeConfig,
		AllowPrivileged:          f.privileged,
		Controllers:              f.controllers,
		Services:                 f.services,
		CRDs:                     f.crds,
		FlagValues:               f.values(),
		SetVerbosity:             f.setVerbosity,
	}
	if f.given != nil {
		o.Cluster = f.clusterOptions()
	}
	if o.Cluster.File != "" {
		f.extend(&o)
	}
	if o.Cluster.AuthenticationFile != "" {
		o.Authentication = delegated(o.Authentication)
	}
	if o.Cluster.Authorization.File != "" && !f.given("authorization-mode") {
		o.Authorization.Modes = nil
	}
	return o, nil
}
