package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"k8s.io/apimachinery/pkg/util/version"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"

	"github.com/anykind/anykind/internal/object/gate"
)

// own are flags that Start sets, or that no flag can set.
var own = []string{"bind-address", "secure-port", "cert-dir", "token-auth-file", "feature-gates", "emulated-version", "min-compatibility-version"}

// Flags returns the flags of options without their default values. It reads the values of the flag
// sets, which other code may have changed.
func Flags(sets cliflag.NamedFlagSets) []string {
	var flags []string
	for _, name := range sets.Order {
		sets.FlagSets[name].VisitAll(func(f *pflag.Flag) {
			value := f.Value.String()
			if value == f.DefValue || slices.Contains(own, f.Name) {
				return
			}
			several, ok := f.Value.(pflag.SliceValue)
			switch {
			case f.Value.Type() == "namedCertKey":
				for one := range strings.SplitSeq(strings.Trim(value, "[]"), ";") {
					flags = append(flags, "--"+f.Name+"="+one)
				}
			case f.Value.Type() == "stringSlice": // it may be in another Value that is no SliceValue
				flags = append(flags, "--"+f.Name+"="+strings.Trim(value, "[]"))
			case ok && f.Value.Type() == "stringArray":
				for _, one := range several.GetSlice() {
					flags = append(flags, "--"+f.Name+"="+one)
				}
			case ok:
				flags = append(flags, "--"+f.Name+"="+strings.Join(several.GetSlice(), ","))
			default:
				flags = append(flags, "--"+f.Name+"="+value)
			}
		})
	}
	return flags
}

// Gates returns the flags for the release of feature gates, and for the gates that differ from their defaults in that
// release. Some tests emulate releases that a kube-apiserver of v1.37 rejects. anykind then emulates its oldest release,
// and the flags omit gates that are locked there.
func Gates(gates featuregate.MutableVersionedFeatureGate) []string {
	release, flags := emulated(gates)
	var changed []string
	for name, specs := range gates.GetAllVersioned() {
		there, on := specAt(specs, release), gates.Enabled(name)
		if there != nil && on != there.Default && !there.LockToDefault && name != "AllAlpha" && name != "AllBeta" {
			changed = append(changed, fmt.Sprintf("%s=%t", name, on))
		}
	}
	if len(changed) > 0 {
		slices.Sort(changed)
		flags = append(flags, "--feature-gates="+strings.Join(changed, ","))
	}
	return flags
}

// Emulates reports whether anykind can emulate a release. The gates of a test for a server of another release emulate it, too.
func Emulates(release string) bool {
	v, err := version.Parse(release)
	return err == nil && !v.LessThan(version.MustParse(gate.Oldest.String()))
}

// emulated returns the release that anykind emulates for feature gates, and its flags.
func emulated(gates featuregate.MutableVersionedFeatureGate) (release *version.Version, flags []string) {
	oldest := version.MustParse(gate.Oldest.String())
	release, compatible := gates.EmulationVersion(), gates.MinCompatibilityVersion()
	switch {
	case release.EqualTo(version.MustParse(gate.Current.String())):
		return release, nil
	case release.LessThan(oldest):
		release = oldest
	}
	flags = []string{"--emulated-version=" + release.String()}
	if compatible != nil && !compatible.LessThan(oldest) {
		flags = append(flags, "--min-compatibility-version="+compatible.String())
	}
	return release, flags
}

// specAt returns the state of a gate in a release, or nil.
func specAt(specs featuregate.VersionedSpecs, release *version.Version) *featuregate.FeatureSpec {
	for i := range slices.Backward(specs) {
		if !specs[i].Version.GreaterThan(release) {
			return &specs[i]
		}
	}
	return nil
}

// Served returns the flag for the API versions whose state differs from the default.
func Served(config *serverstorage.ResourceConfig) []string {
	if config == nil {
		return nil
	}
	var changed []string
	usual := controlplane.DefaultAPIResourceConfigSource()
	for version, on := range config.GroupVersionConfigs {
		if !legacyscheme.Scheme.IsVersionRegistered(version) {
			continue // of an older Kubernetes, without a flag
		}
		if was, known := usual.GroupVersionConfigs[version]; !known || was != on {
			changed = append(changed, fmt.Sprintf("%s=%t", version, on))
		}
	}
	for resource, on := range config.ResourceConfigs {
		if was, known := usual.ResourceConfigs[resource]; !known || was != on {
			changed = append(changed, fmt.Sprintf("%s/%s=%t", resource.GroupVersion(), resource.Resource, on))
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	return []string{"--runtime-config=" + strings.Join(changed, ",")}
}
