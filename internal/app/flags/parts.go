package flags

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
)

// addPlugins adds the flags of admission plugins.
func (f *Serve) addPlugins(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.admission.Enable, "enable-admission-plugins", nil,
		"admission plugins, by their Kubernetes names, that run besides those that do by default")
	flags.StringSliceVar(&f.admission.Disable, "disable-admission-plugins", nil,
		"admission plugins, by their Kubernetes names, that must not run, such as NamespaceLifecycle")
	flags.StringVar(&f.admission.ConfigFile, "admission-control-config-file", "",
		"file with an AdmissionConfiguration: what admission plugins are told")
	f.admission.NotReadySeconds = flags.Int64("default-not-ready-toleration-seconds", 300,
		"how long a pod that says nothing of it stays on a node that is not ready")
	f.admission.UnreachableSeconds = flags.Int64("default-unreachable-toleration-seconds", 300,
		"how long a pod that says nothing of it stays on a node that cannot be reached")
}

// addParts adds the flags that enable and disable parts of the server.
func (f *Serve) addParts(flags *pflag.FlagSet) {
	f.addPlugins(flags)
	flags.StringSliceVar(&f.controllers, "controllers", []string{"*"},
		"controllers that run: '*' is all, 'foo' the one of that name, '-foo' not that one; of "+strings.Join(app.Controllers(), ", "))
	flags.StringVar(&f.crds, "crds", "",
		"file with CustomResourceDefinitions, or folder of such files: they are there from the start, and follow the files as these change")
	f.addKinds(flags)
	flags.Var(&f.gates, "feature-gates",
		"feature gates of Kubernetes, NAME=BOOL; CBORServingAndStorage=true speaks application/cbor with clients that want it, and stores custom objects so in etcd")
}

// addKinds adds the flags that select built-in kinds and restrict their objects.
func (f *Serve) addKinds(flags *pflag.FlagSet) {
	flags.Var(&f.runtimeConfig, "runtime-config",
		"versions and resources of the built-in kinds that are served or not: GROUP/VERSION=BOOL, GROUP/VERSION/RESOURCE=BOOL, v1=BOOL for the core group, and api/all, api/ga, api/beta and api/alpha for all such versions; beta and alpha versions are not served unless said so")
	flags.BoolVar(&f.privileged, "allow-privileged", false,
		"let containers be privileged, and those of Windows be processes of their host")
}
