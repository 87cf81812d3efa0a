package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	serverstorage "k8s.io/apiserver/pkg/server/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
)

// set by Start, or not by flags at all.
var own = []string{"bind-address", "secure-port", "cert-dir", "token-auth-file", "feature-gates", "emulated-version", "min-compatibility-version"}

// Flags returns the flags of options that are not as they are by default. Options are what the
// sets of flags lead to, and may have been changed otherwise than by flags.
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
			case f.Value.Type() == "stringSlice": // which may be in another Value that is no SliceValue
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

// Gates returns the flag for feature gates that are not as they are by default.
func Gates(gate featuregate.MutableVersionedFeatureGate) []string {
	var changed []string
	for name, spec := range gate.GetAll() {
		if on := gate.Enabled(name); on != spec.Default && name != "AllAlpha" && name != "AllBeta" {
			changed = append(changed, fmt.Sprintf("%s=%t", name, on))
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	return []string{"--feature-gates=" + strings.Join(changed, ",")}
}

// Older is the older version that a gate is to behave as, if it is.
func Older(gate featuregate.MutableVersionedFeatureGate) string {
	if v := gate.EmulationVersion(); !v.EqualTo(utilfeature.DefaultMutableFeatureGate.DeepCopy().EmulationVersion()) {
		return v.String()
	}
	return ""
}

// Served returns the flag for what a configuration serves otherwise than by default.
func Served(config *serverstorage.ResourceConfig) []string {
	if config == nil {
		return nil
	}
	var changed []string
	usual := controlplane.DefaultAPIResourceConfigSource()
	for version, on := range config.GroupVersionConfigs {
		if !legacyscheme.Scheme.IsVersionRegistered(version) {
			continue // of an older Kubernetes, which flags cannot name
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
