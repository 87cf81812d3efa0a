package main

import (
	"log/slog"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/kv"
)

// serveFlags are the flags of serve. Those that mean what they mean for
// kube-apiserver have its names.
type serveFlags struct {
	securePort     uint16
	bindAddress    net.IP
	certFile       string
	keyFile        string
	clientCAFile   string
	tokenFile      string
	authentication app.Authentication
	authorization  app.Authorization
	tokens         tokenFlags
	kubelet        kubeletFlags
	dataDir        string
	inMemory       bool
	maxObjectBytes uint32
	etcd           app.Etcd
	kubeconfig     string
	admission      app.Admission
	controllers    []string
	runtimeConfig  builtin.RuntimeConfig
	privileged     bool
	services       app.Services
	gates          gates
	verbosity      int
}

// defaultDataDir is the data directory if nobody says otherwise.
const defaultDataDir = "anykind-data"

func (f *serveFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.dataDir, "data-dir", defaultDataDir,
		"directory for what is kept: objects, certificates, the kubeconfig; it is made if it does not exist")
	flags.BoolVar(&f.inMemory, "in-memory", false,
		"keep objects in memory only; certificates and the kubeconfig are still kept in --data-dir")
	flags.Uint32Var(&f.maxObjectBytes, "max-object-bytes", kv.DefaultMaxValueBytes,
		"how large an object may be as it is stored, as JSON; what is larger is refused. Unless said otherwise, it is what fits a request of etcd; with --etcd-servers, to raise it takes a --max-request-bytes of etcd that is at least 8192 more")
	f.addEtcd(cmd)
	flags.StringVar(&f.kubeconfig, "kubeconfig", "",
		"file to write the administrator's kubeconfig to (default admin.kubeconfig in --data-dir)")
	flags.IPVar(&f.bindAddress, "bind-address", net.IPv4(127, 0, 0, 1),
		"IP address to listen on; 0.0.0.0 or :: for all of this machine")
	flags.Uint16Var(&f.securePort, "secure-port", 6443,
		"port to listen on; 0 for any that is free")
	f.addIdentity(cmd)
	f.addAuthorization(cmd)
	f.addTokens(cmd)
	f.addServices(cmd)
	f.addParts(cmd)
	flags.IntVarP(&f.verbosity, "v", "v", 0,
		"how much to log on stderr: 0 warnings, 2 what happens, 4 every request")
}

func (f *serveFlags) options(log *slog.Logger) app.Options {
	if f.kubeconfig == "" {
		f.kubeconfig = administratorFile(f.dataDir)
	}
	return app.Options{
		Address:                  net.JoinHostPort(f.bindAddress.String(), strconv.Itoa(int(f.securePort))),
		Dir:                      f.dataDir,
		InMemory:                 f.inMemory,
		Etcd:                     f.etcd,
		MaxObjectBytes:           int(f.maxObjectBytes),
		Offer:                    f.gates.offer,
		CertFile:                 f.certFile,
		KeyFile:                  f.keyFile,
		ClientCAFile:             f.clientCAFile,
		TokenFile:                f.tokenFile,
		Authentication:           f.authentication,
		Authorization:            f.authorization,
		ServiceAccounts:          f.tokens.options(),
		LegacyTokenCleanUpPeriod: f.tokens.cleanUpPeriod,
		Kubelet:                  f.kubelet.Options,
		Kubeconfig:               f.kubeconfig,
		Log:                      log,
		Admission:                f.admission,
		RuntimeConfig:            f.runtimeConfig,
		AllowPrivileged:          f.privileged,
		Controllers:              f.controllers,
		Services:                 f.services,
	}
}
