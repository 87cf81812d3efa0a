// Package flags defines the flags of a server: those of anykind serve, and those of kube-apiserver.
//
// It knows their names, defaults and help, and turns their values into options for internal/app. It
// starts nothing, and knows no signals and no terminal.
package flags

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/access/audit"
	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/store/kv"
)

// Serve are the flags of serve. Flags shared with kube-apiserver keep its names.
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
	encryption     app.Encryption
	audit          audit.Options
	limits         limitFlags
	protocol       protocolFlags
	metrics        metricFlags
	dataDir        string
	inMemory       bool
	open, restore  string
	history        keeping
	historyEvery   intervals
	maxObjectBytes uint32
	eventTTL       time.Duration
	leaders        controller.Term
	etcd           app.Etcd
	etcdOverrides  []string
	kubeconfig     string
	admission      app.Admission
	controllers    []string
	runtimeConfig  builtin.RuntimeConfig
	privileged     bool
	services       app.Services
	peers          app.Peers
	endpoints      bool // call the endpoints of Services, not their cluster IPs
	gates          gate.Flag
	verbosity      int
	tracing        string
	level          slog.LevelVar // of the log
	logFormat      logFormat
	all            *pflag.FlagSet
	crds           string
	cluster        app.Cluster
	faults         bool
	console        bool
	// StopWithStdin stops the server when the standard input ends.
	StopWithStdin bool
	given         func(name string) bool // reports whether a flag is set; nil for kube-apiserver
}

// DefaultDataDir is the default of --data-dir.
const DefaultDataDir = "anykind-data"

// AdministratorFile is the default file of the administrator's kubeconfig.
func AdministratorFile(dataDir string) string { return filepath.Join(dataDir, "admin.kubeconfig") }

// Add adds the flags.
func (f *Serve) Add(flags *pflag.FlagSet) {
	f.all, f.given = flags, flags.Changed
	flags.SortFlags = false
	AddSection(flags, "Storage", f.addStorage)
	AddSection(flags, "Etcd", f.addEtcd)
	AddSection(flags, "Encryption at rest", f.addEncryption)
	AddSection(flags, "Secure serving", func(section *pflag.FlagSet) { f.addServing(section, net.IPv4(127, 0, 0, 1)) })
	f.addAccess(flags, app.AuthorizeByRoles)
	AddSection(flags, "API enablement", f.addAPI)
	AddSection(flags, "Admission", f.addPlugins)
	AddSection(flags, "Controllers", f.addControllers)
	AddSection(flags, "Coordinated leader election", f.addLeaders)
	AddSection(flags, "Services", f.addServices)
	AddSection(flags, "Outgoing connections", f.addOutgoing)
	AddSection(flags, "Auditing", f.addAudit)
	AddSection(flags, "Request limits", f.limits.add)
	AddSection(flags, "Extended cluster", f.addCluster)
	AddSection(flags, "Metrics, logs and traces", f.addLogs)
	AddSection(flags, "Console", f.addConsole)
	AddSection(flags, "Test", f.addTests)
}

func (f *Serve) addConsole(flags *pflag.FlagSet) {
	flags.BoolVar(&f.console, "console", false,
		"serve a console for browsers at /console/. Users sign in with bearer tokens, and have their own rights")
}

func (f *Serve) addTests(flags *pflag.FlagSet) {
	flags.BoolVar(&f.faults, "fault-injection", false,
		"for tests only: serve /faults, where users with rights on this path make requests of any user fail")
	flags.BoolVar(&f.StopWithStdin, "stop-with-stdin", false,
		"stop when the standard input ends, so with the process that started the server")
}

func (f *Serve) addStorage(flags *pflag.FlagSet) {
	flags.StringVar(&f.dataDir, "data-dir", DefaultDataDir,
		"directory for objects, certificates and the kubeconfig; created if missing")
	flags.BoolVar(&f.inMemory, "in-memory", false,
		"store objects in memory only; certificates and the kubeconfig stay in --data-dir")
	flags.StringVar(&f.open, "open", "",
		"data directory of a stopped server, or file with a snapshot of etcd, whose objects are served read-only; certificates and the kubeconfig are in --data-dir")
	flags.StringVar(&f.restore, "restore", "",
		"backup, data directory of a stopped server, or snapshot of etcd, whose objects are written to a new store in --data-dir")
	flags.Var(&f.history, "history",
		"keep earlier states of all objects in --data-dir: for a time such as 30d or 12h, up to a size such as 2GiB, both as 30d,2GiB, or forever (default: five minutes of changes)")
	flags.Var(&f.historyEvery, "history-interval",
		"resources with coarser histories, such as leases.coordination.k8s.io=1h,events=10m: of the updates of an object in an interval, --history keeps the last one. Creations and deletions are kept")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "",
		"file for the administrator's kubeconfig (default admin.kubeconfig in --data-dir)")
	flags.Uint32Var(&f.maxObjectBytes, "max-object-bytes", kv.DefaultMaxValueBytes,
		"maximum size of an object as stored JSON; larger objects are rejected. The default fits a request of etcd. A larger value with --etcd-servers needs a --max-request-bytes of etcd that is at least 8192 larger")
}

// addAccess adds the sections of authentication and authorization. mode is the default authorizer.
func (f *Serve) addAccess(flags *pflag.FlagSet, mode string) {
	AddSection(flags, "Authentication", f.addAuthentication)
	AddSection(flags, "OpenID Connect", f.addOIDC)
	AddSection(flags, "Front proxy", f.addFrontProxy)
	AddSection(flags, "Service account token", f.addTokens)
	AddSection(flags, "Authorization", func(section *pflag.FlagSet) { f.addAuthorization(section, mode) })
}

// addOutgoing adds the flags of connections to kubelets, webhooks and other API servers.
func (f *Serve) addOutgoing(flags *pflag.FlagSet) {
	f.network.addEgress(flags)
	flags.BoolVar(&f.endpoints, "enable-aggregator-routing", true,
		"call webhooks and other API servers at the endpoints of their Services; false calls the cluster IPs, which needs a kube-proxy on this host")
	f.addPeers(flags)
	f.addKubelet(flags)
}

func (f *Serve) addLogs(flags *pflag.FlagSet) {
	f.metrics.add(flags)
	f.logFormat = logText
	flags.Var(&f.logFormat, "logging-format", "format of the log on stderr: text, or json for one JSON object a line with the field names of Kubernetes")
	flags.StringVar(&f.tracing, "tracing-config-file", "",
		"file with a TracingConfiguration: the collector of traces (OTLP over gRPC) and the sampling rate")
	flags.IntVarP(&f.verbosity, "v", "v", 0, "log level on stderr: 0 warnings, 2 information, 4 every request")
}

// values returns the values of all flags.
func (f *Serve) values() map[string]string {
	values := map[string]string{}
	f.all.VisitAll(func(flag *pflag.Flag) { values[flag.Name] = flag.Value.String() })
	return values
}

// checkOpen returns the error for flags that have no meaning for an opened file.
func (f *Serve) checkOpen() error {
	if f.open == "" {
		return nil
	}
	for _, other := range []string{"etcd-servers", "in-memory", "controllers", "cluster-kubeconfig"} {
		if f.all.Lookup(other) != nil && f.given(other) {
			return fmt.Errorf("--open and --%s are mutually exclusive", other)
		}
	}
	return nil
}

// Options returns the options that the flags set.
func (f *Serve) Options(log *slog.Logger) (app.Options, error) {
	protocol, invalid := f.protocol.options()
	if err := errors.Join(f.limits.check(), f.checkLeaders(), invalid, refuseOverrides(f.etcdOverrides), checkMediaType(f.etcd.MediaType), f.checkOpen()); err != nil {
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
		log.Warn("the reconciler "+app.ReconcileByLease+" replaces a deprecated one", "flag", "--endpoint-reconciler-type="+app.ReconcileByCount)
	}
	gates, err := f.gates.Gates()
	if err != nil {
		return app.Options{}, err
	}
	logIdleGates(log, gates)
	o := app.Options{
		Address:                  net.JoinHostPort(f.bindAddress.String(), strconv.Itoa(int(f.securePort))),
		Dir:                      f.dataDir,
		InMemory:                 f.inMemory,
		Open:                     f.open,
		Restore:                  f.restore,
		History:                  f.history.remembering(f.historyEvery),
		Etcd:                     f.etcd,
		MaxObjectBytes:           int(f.maxObjectBytes),
		EventTTL:                 cmp.Or(f.eventTTL, -1),
		LeaderElection:           f.leaders,
		Gates:                    gates,
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
		TracingFile:              f.tracing,
		GoawayChance:             float64(f.network.goaway),
		Encryption:               f.encryption,
		Audit:                    f.audit,
		Limits:                   f.limits.options(),
		Unclassified:             !f.limits.fair,
		Timeout:                  f.limits.timeout,
		Protocol:                 protocol,
		Metrics:                  metrics,
		Kubeconfig:               f.kubeconfig,
		Log:                      log,
		Admission:                f.admission,
		RuntimeConfig:            f.runtimeConfig,
		AllowPrivileged:          f.privileged,
		Controllers:              f.controllers,
		Services:                 f.services, Peers: f.peers,
		CRDs:           f.crds,
		FaultInjection: f.faults,
		Console:        f.console,
		FlagValues:     f.values(),
		SetVerbosity:   f.setVerbosity,
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
