package verify

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A controller that counts the changes that it sees ends differently if it misses one.
func TestMiss(t *testing.T) {
	counting := func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		if m.Annotations["seen"] == m.Data["size"] {
			return ctrl.Result{}, nil
		}
		m.Annotations = map[string]string{"seen": m.Data["size"], "changes": m.Annotations["changes"] + "I"}
		return ctrl.Result{}, c.Update(ctx, m)
	}
	there := func(s *Scenario) {
		resize(s)
		s.Apply(configMap("m", map[string]string{"size": "3"}))
	}
	w := World{Start: reconciler(counting).start, Faults: []FaultKind{Miss}, Plans: 20, Findings: 1}
	r := Explore(t, w, there)
	if len(r.Findings) != 1 || r.Findings[0].Plan[0].Kind != Miss {
		t.Errorf("%v", r.Findings)
	}
	w.Start = reconciler(named).start
	if r := Explore(t, w, there); len(r.Findings) > 0 || r.Plans < 2 || !r.Exhausted {
		t.Errorf("%d plans: %v", r.Plans, r.Findings)
	}
}
