package pods_test

import (
	"testing"

	"github.com/anykind/anykind/internal/admission/admissiontest"
	"github.com/anykind/anykind/internal/admission/pods"
	"github.com/anykind/anykind/internal/object/gate"
)

// A new PodGroup gets a finalizer, once.
func TestGroupProtection(t *testing.T) {
	for _, test := range []struct {
		on          bool
		given, want string
	}{
		{true, ``, `["scheduling.k8s.io/podgroup-protection"]`},
		{true, `example.com/a`, `["example.com/a","scheduling.k8s.io/podgroup-protection"]`},
		{true, `scheduling.k8s.io/podgroup-protection`, `["scheduling.k8s.io/podgroup-protection"]`},
		{false, ``, ``},
	} {
		w := admissiontest.NewWithGates(t, gate.With(map[gate.Name]bool{gate.GenericWorkload: test.on}), func(*admissiontest.World) []any {
			return []any{pods.GroupProtection{}}
		})
		made, err := w.Create("{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: g, finalizers: [" + test.given + "]}, spec: {schedulingPolicy: {basic: {}}}}")
		if got := admissiontest.Field(made, "metadata.finalizers"); err != nil || got != test.want {
			t.Errorf("%t, %s: %s, %v, want %s", test.on, test.given, got, err, test.want)
		}
	}
}
