package server

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
)

// The flags are those of the nearest release that anykind emulates, and of gates that differ from their defaults there.
func TestGates(t *testing.T) {
	minor := func(n uint) *version.Version { return version.MajorMinor(1, n) }
	for _, tt := range []struct {
		name    string
		emulate uint
		values  map[string]bool
		want    []string
	}{
		{"nothing", 37, nil, nil},
		{"a gate", 37, map[string]bool{"Young": false}, []string{"--feature-gates=Young=false"}},
		{"as by default", 37, map[string]bool{"Young": true}, nil},
		{"a release", 36, nil, []string{"--emulated-version=1.36", "--min-compatibility-version=1.35"}},
		{"a gate of a release", 34, map[string]bool{"Young": true}, []string{"--emulated-version=1.34", "--feature-gates=Young=true"}},
		{"a release that is too old", 33, nil, []string{"--emulated-version=1.34"}},
		{"a gate that is locked in the nearest one", 33, map[string]bool{"Old": false}, []string{"--emulated-version=1.34"}},
	} {
		gates := featuregate.NewVersionedFeatureGate(minor(37))
		err := gates.AddVersioned(map[featuregate.Feature]featuregate.VersionedSpecs{
			"Young": {{Version: minor(33), PreRelease: featuregate.Alpha}, {Version: minor(35), Default: true, PreRelease: featuregate.Beta}},
			"Old":   {{Version: minor(30), Default: true, PreRelease: featuregate.Beta}, {Version: minor(34), Default: true, LockToDefault: true}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if tt.emulate != 37 {
			if err := gates.SetEmulationVersionAndMinCompatibilityVersion(minor(tt.emulate), minor(tt.emulate-1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := gates.SetFromMap(tt.values); err != nil {
			t.Fatal(err)
		}
		if got := Gates(gates); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
