package verify

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if name := os.Getenv(programVariable); name != "" {
		fmt.Fprintln(os.Stderr, runProgram(name))
		os.Exit(1)
	}
	m.Run()
}

var (
	plansFlag = flag.Int("plans", 0, "plans for each correct controller")
	seedsFlag = flag.Int("seeds", 20, "seeds whose runs are repeated")
	timeFlag  = flag.Duration("time", 2*time.Minute, "time for each correct controller")
)

// managerOptions are the options that each manager in a World needs.
func managerOptions() ctrl.Options {
	skip := true
	return ctrl.Options{Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip}}
}

// A reconciler is the Reconcile of a controller of ConfigMaps that owns Secrets.
type reconciler func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error)

// start is the World.Start of a manager with the reconciler.
func (f reconciler) start(ctx context.Context, c *rest.Config) error {
	m, err := ctrl.NewManager(c, managerOptions())
	if err != nil {
		return err
	}
	reconcileMap := func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		var m2 corev1.ConfigMap
		if err := m.GetClient().Get(ctx, request.NamespacedName, &m2); err != nil || m2.Labels["mine"] == "" {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		return f(ctx, m.GetClient(), &m2)
	}
	if err := ctrl.NewControllerManagedBy(m).Named("maps").For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(reconcile.Func(reconcileMap)); err != nil {
		return err
	}
	return m.Start(ctx)
}

// configMap is a ConfigMap of the reconciler.
func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"mine": "yes"}}, Data: data}
}

// applyOne is the scenario with one ConfigMap.
func applyOne(s *Scenario) {
	s.Apply(configMap("m", map[string]string{"size": "3"}))
	s.Settle()
}

// three keeps three Secrets with generated names, and counts them in a cache.
func three(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
	var all corev1.SecretList
	if err := c.List(ctx, &all, client.InNamespace(m.Namespace), client.MatchingLabels{"of": m.Name}); err != nil {
		return ctrl.Result{}, err
	}
	for i := len(all.Items); i < 3; i++ {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, GenerateName: m.Name + "-", Labels: map[string]string{"of": m.Name}}}
		if err := ctrl.SetControllerReference(m, s, c.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := c.Create(ctx, s); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

// named keeps one Secret with the name and the data of the ConfigMap.
func named(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
	_, err := ctrl.CreateOrUpdate(ctx, c, s, func() error {
		s.Data = map[string][]byte{"size": []byte(m.Data["size"])}
		return ctrl.SetControllerReference(m, s, c.Scheme())
	})
	return ctrl.Result{}, err
}

// A sound controller has no bug: it is level-triggered, and each of its writes can be lost or repeated.
type sound struct {
	name  string
	world World
	play  func(*Scenario)
}

// testSound expects no findings, and a number of writes at least.
func testSound(t *testing.T, all []sound, leastWrites int) {
	for i, c := range all {
		if testing.Short() && i%3 > 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			w := c.world
			w.Plans, w.Time = cmp.Or(*plansFlag, 20), *timeFlag
			began := time.Now()
			r := Explore(t, w, c.play)
			for _, f := range r.Findings {
				t.Error(f)
			}
			if len(r.Writes) < leastWrites || r.Plans < 8 || slices.Contains(r.Writes, "") {
				t.Errorf("only %d plans for the writes %q", r.Plans, r.Writes)
			}
			t.Logf("%d plans for %d writes, %.1f per second; exhausted: %v", r.Plans, len(r.Writes), float64(r.Plans)/time.Since(began).Seconds(), r.Exhausted)
		})
	}
}
