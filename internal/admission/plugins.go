package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/registry"
)

// A Plugin has the name that Kubernetes has for it, and one or both of the others.
type Plugin struct {
	Name      string
	Mutator   registry.Mutator
	Validator registry.Validator
}

// Select returns the plugins that are not disabled, in the order in which they are
// given. All of them are on to begin with; to enable one only says
// that it has to be there.
//
// A name that Kubernetes does not know is an error. One that it does, of a plugin
// that is not among the given ones, can be disabled, so that a command line made
// for kube-apiserver need not be changed, but not enabled.
func Select(plugins []Plugin, enable, disable []string) (on []Plugin, err error) {
	if err := checkNames(plugins, enable, disable); err != nil {
		return nil, err
	}
	for _, p := range plugins {
		if !slices.Contains(disable, p.Name) {
			on = append(on, p)
		}
	}
	return on, nil
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
	return slices.Contains(strings.Fields(names), name)
}

// names are those of all plugins of kube-apiserver v1.37.
const names = `
AlwaysAdmit NamespaceAutoProvision NamespaceLifecycle NamespaceExists
LimitPodHardAntiAffinityTopology LimitRanger ServiceAccount NodeRestriction
TaintNodesByCondition AlwaysPullImages ImagePolicyWebhook PodSecurity
PodNodeSelector Priority DefaultTolerationSeconds PodTolerationRestriction
EventRateLimit ExtendedResourceToleration DefaultStorageClass
StorageObjectInUseProtection PodGroupProtection
OwnerReferencesPermissionEnforcement PersistentVolumeClaimResize RuntimeClass
CertificateApproval CertificateSigning ClusterTrustBundleAttest
CertificateSubjectRestriction DefaultIngressClass DenyServiceExternalIPs
PodTopologyLabels NodeDeclaredFeatureValidator PodResizeValidator
MutatingAdmissionPolicy MutatingAdmissionWebhook ValidatingAdmissionPolicy
ValidatingAdmissionWebhook ResourceQuota AlwaysDeny`
