package builtin

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	logs "k8s.io/component-base/logs/api/v1"
	metrics "k8s.io/component-base/metrics/features"
	_ "k8s.io/controller-manager/pkg/features/register" // registers gates
	_ "k8s.io/kubernetes/pkg/features"                  // registers the gates
)

var update = flag.Bool("update", false, "write gates.txt")

// TestGates compares the table of feature gates with the gates of kube-apiserver. With -update, it writes
// the table.
func TestGates(t *testing.T) {
	const name = "../../internal/object/gate/gates.txt"
	gates := utilfeature.DefaultFeatureGate.(featuregate.MutableVersionedFeatureGate)
	for _, add := range []func(featuregate.MutableVersionedFeatureGate) error{logs.AddFeatureGates, metrics.AddFeatureGates} {
		if err := add(gates); err != nil { // kube-apiserver adds them at its start
			t.Fatal(err)
		}
	}
	all, needs := gates.GetAllVersioned(), gates.Dependencies()
	if len(all) < 100 {
		t.Fatalf("there are only %d gates", len(all))
	}
	var want strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == "AllAlpha" || name == "AllBeta" {
			continue // every set of gates has them
		}
		var specs []string
		for _, spec := range all[name] {
			specs = append(specs, words(spec))
		}
		fmt.Fprintf(&want, "%s %s", name, strings.Join(specs, ", "))
		if of := needs[name]; len(of) > 0 {
			fmt.Fprintf(&want, " needs %s", strings.Trim(fmt.Sprint(of), "[]"))
		}
		want.WriteString("\n")
	}
	if *update {
		if err := os.WriteFile(name, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want.String() {
		for line := range strings.Lines(want.String()) {
			if !strings.Contains("\n"+string(got), "\n"+line) {
				t.Errorf("gates.txt lacks: %s", line)
			}
		}
		t.Error("gates.txt differs from the gates of Kubernetes; write it with -update")
	}
}

// words returns a specification as gates.txt has it.
func words(spec featuregate.FeatureSpec) string {
	stage := map[string]string{"PRE-ALPHA": "prealpha", "ALPHA": "alpha", "BETA": "beta", "": "stable", "DEPRECATED": "deprecated"}[string(spec.PreRelease)]
	out := []string{spec.Version.String(), stage, "off"}
	if spec.Default {
		out[2] = "on"
	}
	if spec.LockToDefault {
		out = append(out, "locked")
	}
	if v := spec.MinCompatibilityVersion; v != nil {
		out = append(out, "compatible="+v.String())
	}
	return strings.Join(out, " ")
}
