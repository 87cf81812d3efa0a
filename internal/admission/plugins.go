package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/registry"
)

// A Plugin is a constructor of an admission plugin with its Kubernetes name.
type Plugin struct {
	Name string
	// Make returns the plugin for its part of the configuration file, which is nil if the file does
	// not have one. A plugin is a registry.Mutator, a registry.Validator, a registry.Resolver, or
	// several of them.
	Make func(config []byte) (any, error)
}

// Always returns a Make for a plugin without configuration.
func Always(plugin any) func([]byte) (any, error) {
	return func([]byte) (any, error) { return plugin, nil }
}

// Select returns the enabled plugins in Kubernetes' order: the defaults and the enabled ones,
// without the disabled ones.
//
// An unknown name is an error. A plugin of Kubernetes that is not among plugins can be disabled but
// not enabled, so that command lines for kube-apiserver work unchanged.
func Select(plugins []Plugin, enable, disable []string) (on []Plugin, err error) {
	if err := checkNames(plugins, enable, disable); err != nil {
		return nil, err
	}
	for _, known := range kubernetes() {
		i := slices.IndexFunc(plugins, func(p Plugin) bool { return p.Name == known.name })
		if i >= 0 && (known.on || slices.Contains(enable, known.name)) && !slices.Contains(disable, known.name) {
			on = append(on, plugins[i])
		}
	}
	return on, nil
}

// Make calls Make of each plugin with its part of the configuration file. metrics observes the
// duration of the plugins.
func Make(plugins []Plugin, configs map[string][]byte, metrics *Metrics) (made registry.Plugins, err error) {
	for _, p := range plugins {
		plugin, err := p.Make(configs[p.Name])
		if err != nil {
			return made, fmt.Errorf("admission plugin %s: %w", p.Name, err)
		}
		metrics.add(&made, p.Name, plugin)
	}
	return made, nil
}

func checkNames(plugins []Plugin, enable, disable []string) error {
	for _, name := range enable {
		switch {
		case !known(name):
			return fmt.Errorf("enable-admission-plugins plugin %q is unknown", name)
		case slices.Contains(disable, name):
			return fmt.Errorf("%q is in enable-admission-plugins and in disable-admission-plugins: it can only be in one of them", name)
		case !slices.ContainsFunc(plugins, func(p Plugin) bool { return p.Name == name }):
			return fmt.Errorf("enable-admission-plugins plugin %q is not part of anykind: leave it out", name)
		}
	}
	for _, name := range disable {
		if !known(name) {
			return fmt.Errorf("disable-admission-plugins plugin %q is unknown", name)
		}
	}
	return nil
}

func known(name string) bool {
	return slices.ContainsFunc(kubernetes(), func(k knownPlugin) bool { return k.name == name })
}

type knownPlugin struct {
	name string
	on   bool // by default
}

// kubernetes returns the plugins of kube-apiserver in the order in which it calls them.
func kubernetes() []knownPlugin {
	var all []knownPlugin
	for name := range strings.FieldsSeq(names) {
		name, off := strings.CutPrefix(name, "-")
		all = append(all, knownPlugin{name: name, on: !off})
	}
	return all
}

// names lists all plugins, with a minus if off by default.
const names = `
-AlwaysAdmit -NamespaceAutoProvision NamespaceLifecycle -NamespaceExists
-LimitPodHardAntiAffinityTopology LimitRanger ServiceAccount -NodeRestriction
TaintNodesByCondition -AlwaysPullImages -ImagePolicyWebhook PodSecurity
-PodNodeSelector Priority DefaultTolerationSeconds -PodTolerationRestriction
-EventRateLimit -ExtendedResourceToleration DefaultStorageClass
StorageObjectInUseProtection PodGroupProtection
-OwnerReferencesPermissionEnforcement PersistentVolumeClaimResize RuntimeClass
CertificateApproval CertificateSigning ClusterTrustBundleAttest
CertificateSubjectRestriction DefaultIngressClass -DenyServiceExternalIPs
PodTopologyLabels NodeDeclaredFeatureValidator PodResizeValidator
MutatingAdmissionPolicy MutatingAdmissionWebhook ValidatingAdmissionPolicy
ValidatingAdmissionWebhook ResourceQuota -AlwaysDeny`
