package verify

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// A controller that cleans up by name deletes the Secret of the next object with the same name, when a restart shows it the
// object that is being deleted. With the uid of the owner in the name, it does not.
func TestRewind(t *testing.T) {
	cleaning := func(unique bool) reconciler {
		return func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
			s := secret(m, m.Name)
			if unique {
				s.Name += "-" + string(m.UID)
			}
			if m.DeletionTimestamp == nil {
				if controllerutil.AddFinalizer(m, finalizer) {
					return ctrl.Result{}, c.Update(ctx, m)
				}
				return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, s))
			}
			if err := c.Delete(ctx, s); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
			controllerutil.RemoveFinalizer(m, finalizer)
			return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, m))
		}
	}
	again := func(s *Scenario) {
		remove(s)
		applyOne(s)
	}
	w := World{Start: cleaning(false).start, WithoutWatchList: true, Lasting: []string{"Secret"}, Plans: 300, Findings: 1}
	r := Explore(t, w, again)
	if len(r.Findings) != 1 || r.Findings[0].Plan[0].Kind != Rewind || !strings.Contains(r.Findings[0].Text, "Secret default/m was deleted and created again") {
		t.Errorf("%v", r.Findings)
	}
	w.Start = cleaning(true).start
	for _, resource := range []string{"configmaps", "secrets"} {
		for n := range 4 {
			w.Plan = Fault{Kind: Rewind, Resource: resource, At: n + 1}.String()
			if r := Explore(t, w, again); len(r.Findings) > 0 {
				t.Errorf("with unique names: %v", r.Findings)
			}
		}
	}
}
