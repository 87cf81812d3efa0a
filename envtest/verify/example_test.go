package verify_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/anykind/anykind/envtest/verify"
)

// A team is a ConfigMap with a label. Its controller keeps a Secret with the name of the team.
func reconcileTeam(ctx context.Context, c client.Client, team *corev1.ConfigMap) error {
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team.Namespace, Name: team.Name}}
	_, err := ctrl.CreateOrUpdate(ctx, c, token, func() error {
		token.Data = map[string][]byte{"color": []byte(team.Data["color"])}
		return ctrl.SetControllerReference(team, token, c.Scheme())
	})
	return err
}

// startManager starts the operator as its main function does.
func startManager(ctx context.Context, c *rest.Config) error {
	skip := true
	m, err := ctrl.NewManager(c, ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			var team corev1.ConfigMap
			if err := m.GetClient().Get(ctx, r.NamespacedName, &team); err != nil || team.Labels["team"] == "" {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			return reconcile.Result{}, reconcileTeam(ctx, m.GetClient(), &team)
		}))
	if err != nil {
		return err
	}
	return m.Start(ctx)
}

func TestTeams(t *testing.T) {
	team := func(color string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blue-team", Labels: map[string]string{"team": "yes"}},
			Data:       map[string]string{"color": color},
		}
	}
	verify.Run(t, verify.World{Start: startManager, Plans: 40}, func(s *verify.Scenario) {
		s.Always("at most one Secret", func(state *verify.State) error {
			var secrets corev1.SecretList
			if err := state.List(&secrets, client.InNamespace("default")); err != nil || len(secrets.Items) < 2 {
				return err
			}
			return fmt.Errorf("%d Secrets", len(secrets.Items))
		})
		s.Apply(team("blue"))
		s.Settle()
		s.Apply(team("navy"))
		s.Settle()
		s.Delete(team("navy"))
	})
}
