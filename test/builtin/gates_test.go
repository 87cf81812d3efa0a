package builtin

import (
	"os"
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	_ "k8s.io/kubernetes/pkg/features" // registers the gates
)

// TestGates compares the feature gates of the flags with Kubernetes': + marks enabled gates, -
// disabled ones, and ! locked ones.
func TestGates(t *testing.T) {
	data, err := os.ReadFile("../../internal/app/flags/gates.txt")
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		ours[strings.TrimSpace(line)] = true
	}
	theirs := utilfeature.DefaultFeatureGate.(featuregate.MutableFeatureGate).GetAll()
	if len(theirs) < 100 {
		t.Fatalf("there are only %d gates", len(theirs))
	}
	for name, spec := range theirs {
		want := "-" + string(name)
		if spec.Default {
			want = "+" + string(name)
		}
		if spec.LockToDefault {
			want += "!"
		}
		if !ours[want] && name != "AllAlpha" && name != "AllBeta" {
			t.Errorf("%s is not in gates.txt", want)
		}
	}
}
