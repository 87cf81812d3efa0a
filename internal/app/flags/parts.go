package flags

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/controller/expiry"
	"github.com/anykind/anykind/internal/object/gate"
)

// addPlugins adds the flags of admission plugins.
func (f *Serve) addPlugins(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.admission.Enable, "enable-admission-plugins", nil,
		"admission plugins to enable besides the default ones")
	flags.StringSliceVar(&f.admission.Disable, "disable-admission-plugins", nil,
		"admission plugins to disable, such as NamespaceLifecycle")
	flags.StringVar(&f.admission.ConfigFile, "admission-control-config-file", "",
		"file with an AdmissionConfiguration: configurations of admission plugins")
	f.admission.NotReadySeconds = flags.Int64("default-not-ready-toleration-seconds", 300,
		"tolerationSeconds for node.kubernetes.io/not-ready:NoExecute, added to pods without such a toleration")
	f.admission.UnreachableSeconds = flags.Int64("default-unreachable-toleration-seconds", 300,
		"tolerationSeconds for node.kubernetes.io/unreachable:NoExecute, added to pods without such a toleration")
}

func (f *Serve) addControllers(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.controllers, "controllers", []string{"*"},
		"controllers to run: '*' enables all, 'foo' enables foo, '-foo' disables foo; of "+strings.Join(app.Controllers(), ", "))
}

// addAPI adds the flags of serve that enable and restrict kinds.
func (f *Serve) addAPI(flags *pflag.FlagSet) {
	flags.StringVar(&f.crds, "crds", "",
		"file with CustomResourceDefinitions, or folder of such files; the server creates them at the start and follows changes of the files")
	f.addKinds(flags)
}

// addKinds adds the flags of built-in kinds.
func (f *Serve) addKinds(flags *pflag.FlagSet) {
	flags.DurationVar(&f.eventTTL, "event-ttl", expiry.DefaultTTL,
		"time for which an Event is kept after its last write; 0 keeps Events")
	flags.Var(&f.runtimeConfig, "runtime-config",
		"built-in versions and resources to enable or disable: GROUP/VERSION=BOOL, GROUP/VERSION/RESOURCE=BOOL, v1=BOOL for the core group; api/all, api/ga, api/beta and api/alpha stand for all such versions. Beta and alpha versions are disabled by default")
	flags.Var(&f.gates, "feature-gates",
		"feature gates of Kubernetes, NAME=BOOL, with the defaults of kube-apiserver. The log names gates that do not change this server")
	releases := gate.Oldest.String() + " to " + gate.Current.String()
	flags.StringSliceVar(&f.gates.Emulated, "emulated-version", nil,
		"release of Kubernetes, "+releases+", whose kinds, feature gates and defaults the server has")
	flags.StringSliceVar(&f.gates.Compatible, "min-compatibility-version", nil,
		"oldest release of other servers with the same store, "+releases+": they can read what this server writes (default: the release before the emulated one)")
	flags.BoolVar(&f.gates.ServesNewer, "emulation-forward-compatible", false,
		"with --emulated-version, serve newer stable and beta versions of the kinds that the release serves")
	flags.BoolVar(&f.gates.ServesNamed, "runtime-config-emulation-forward-compatible", false,
		"with --emulated-version, serve newer versions that --runtime-config names, which are an error without this flag")
	flags.BoolVar(&f.privileged, "allow-privileged", false,
		"allow privileged containers and Windows HostProcess containers")
}
