package verify

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

type namer struct{ client.Client }

// Reconcile keeps three Secrets for each ConfigMap with the label three=yes.
func (r *namer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var m corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if m.Labels["three"] != "yes" {
		return ctrl.Result{}, nil
	}
	var all corev1.SecretList
	if err := r.List(ctx, &all, client.InNamespace(m.Namespace), client.MatchingLabels{"of": m.Name}); err != nil {
		return ctrl.Result{}, err
	}
	for i := len(all.Items); i < 3; i++ {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, GenerateName: m.Name + "-", Labels: map[string]string{"of": m.Name}}}
		if err := ctrl.SetControllerReference(&m, s, r.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Create(ctx, s); err != nil {
			return ctrl.Result{}, err
		}
	}
	if m.Data["secrets"] != "3" {
		m.Data = map[string]string{"secrets": "3"}
		return ctrl.Result{}, r.Update(ctx, &m)
	}
	return ctrl.Result{}, nil
}

func startNamer(ctx context.Context, c *rest.Config) error {
	skip := true
	m, err := ctrl.NewManager(c, ctrl.Options{Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip}})
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(m).Named("namer").For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(&namer{m.GetClient()}); err != nil {
		return err
	}
	return m.Start(ctx)
}

func TestFirst(t *testing.T) {
	log.SetLogger(logr.Discard())
	began := time.Now()
	r := Explore(t, World{Start: startNamer}, func(s *Scenario) {
		s.Apply(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", Labels: map[string]string{"three": "yes"}}})
		s.Settle()
		s.Finally("three secrets", func(st *State) error {
			var l corev1.SecretList
			if err := st.List(&l, client.InNamespace("default")); err != nil {
				return err
			}
			if len(l.Items) != 3 {
				return fmt.Errorf("%d secrets", len(l.Items))
			}
			return nil
		})
	})
	t.Log(r.Plans, r.Writes, time.Since(began))
	for _, f := range r.Findings {
		t.Log(f)
	}
}
