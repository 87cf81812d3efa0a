package clients

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// A Gadget is the Go type of a gadget, as a controller has it.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Size `json:"spec,omitempty"`
	Status            Size `json:"status,omitempty"`
}

// Size is the spec and the status of a Gadget.
type Size struct {
	Size int64 `json:"size,omitempty"`
}

// GadgetList is a list of Gadgets.
type GadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gadget `json:"items"`
}

// DeepCopyObject makes a Gadget a runtime.Object.
func (g *Gadget) DeepCopyObject() runtime.Object {
	out := *g
	out.ObjectMeta = *g.ObjectMeta.DeepCopy()
	return &out
}

// DeepCopyObject makes a GadgetList a runtime.Object.
func (l *GadgetList) DeepCopyObject() runtime.Object {
	out := *l
	out.ListMeta = *l.ListMeta.DeepCopy()
	out.Items = make([]Gadget, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Gadget)
	}
	return &out
}

// A reconciler maintains a ConfigMap with the size of each Gadget, reports the size in the status, and
// cleans up with a finalizer.
type reconciler struct {
	client.Client
}

const finalizer = "clients.example.com/map"

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var g Gadget
	if err := r.Get(ctx, request.NamespacedName, &g); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}}
	if !g.DeletionTimestamp.IsZero() {
		if err := r.Delete(ctx, m); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		if controllerutil.RemoveFinalizer(&g, finalizer) {
			return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, &g))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&g, finalizer) {
		if err := r.Update(ctx, &g); err != nil {
			return ctrl.Result{}, err
		}
	}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, m, func() error {
		m.Data = map[string]string{"size": strconv.FormatInt(g.Spec.Size, 10)}
		return controllerutil.SetControllerReference(&g, m, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if g.Status.Size == g.Spec.Size {
		return ctrl.Result{}, nil
	}
	before := g.DeepCopyObject().(*Gadget)
	g.Status.Size = g.Spec.Size
	return ctrl.Result{}, r.Status().Patch(ctx, &g, client.MergeFrom(before))
}

func gadgetScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	s.AddKnownTypes(gadgets.GroupVersion(), &Gadget{}, &GadgetList{})
	metav1.AddToGroupVersion(s, gadgets.GroupVersion())
	return s
}

// manage runs a manager with the reconciler until the end of the test. It elects a leader with a Lease
// in a namespace, as a program in a cluster does.
func manage(t *testing.T, config *rest.Config, s *runtime.Scheme, namespace string) {
	t.Helper()
	log.SetLogger(logr.Discard())
	m, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: s, Metrics: server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "gadgets", LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewControllerManagedBy(m).Named(t.Name()).For(&Gadget{}).Owns(&corev1.ConfigMap{}).
		Complete(&reconciler{m.GetClient()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// eventually watches one object until it is in the expected state.
func eventually[T client.Object](ctx context.Context, t *testing.T, c client.WithWatch, list client.ObjectList, name, what string, ok func(T) bool) T {
	t.Helper()
	w, err := c.Watch(ctx, list, client.InNamespace("default"), client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for {
		e := receive(ctx, t, w.ResultChan(), what)
		o, is := e.Object.(T)
		if !is {
			t.Fatalf("%s: event %s %s", what, e.Type, text(e.Object))
		}
		if e.Type != watch.Deleted && ok(o) {
			return o
		}
	}
}

// A controller works: its owned objects exist and are recreated, the status follows the spec, and a
// deletion waits for the finalizer.
func TestManager(t *testing.T) {
	_, config := start(t, "", "")
	ctx := within(t)
	define(ctx, t, config)
	s := gadgetScheme(t)
	manage(t, config, s, "kube-system")
	reconciles(ctx, t, config, s)
}

// reconciles fails unless a manager works.
func reconciles(ctx context.Context, t *testing.T, config *rest.Config, s *runtime.Scheme) {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	const many = 20
	for i := range many {
		g := &Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("g%d", i)}, Spec: Size{Size: int64(i + 1)}}
		if err := c.Create(ctx, g); err != nil {
			t.Fatal(err)
		}
	}
	reported := func(size int64) func(*Gadget) bool {
		return func(g *Gadget) bool {
			return g.Status.Size == size && controllerutil.ContainsFinalizer(g, finalizer)
		}
	}
	for i := range many {
		eventually(ctx, t, c, &GadgetList{}, fmt.Sprintf("g%d", i), "the status", reported(int64(i+1)))
	}

	g := eventually(ctx, t, c, &GadgetList{}, "g3", "the status", reported(4))
	g.Spec.Size = 40
	if err := c.Update(ctx, g); err != nil {
		t.Fatal(err)
	}
	g = eventually(ctx, t, c, &GadgetList{}, "g3", "the new status", reported(40))
	if g.Generation != 2 {
		t.Errorf("generation %d", g.Generation)
	}
	m := eventually(ctx, t, c, &corev1.ConfigMapList{}, "g3", "the map", func(m *corev1.ConfigMap) bool { return m.Data["size"] == "40" })
	if !metav1.IsControlledBy(m, g) {
		t.Errorf("the map is not owned by its gadget: %s", text(m))
	}
	if err := c.Delete(ctx, m); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, c, &corev1.ConfigMapList{}, "g3", "the map's return", func(again *corev1.ConfigMap) bool { return again.UID != m.UID })

	away(ctx, t, c, g)
	if err := c.Get(ctx, client.ObjectKeyFromObject(g), m); !apierrors.IsNotFound(err) {
		t.Errorf("the map of a deleted gadget: %v", err)
	}
}

// away deletes a gadget and waits until it is gone.
func away(ctx context.Context, t *testing.T, c client.WithWatch, g *Gadget) {
	t.Helper()
	w, err := c.Watch(ctx, &GadgetList{}, client.InNamespace("default"), client.MatchingFields{"metadata.name": g.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	began := time.Now()
	if err := c.Delete(ctx, g, client.Preconditions{UID: &g.UID}); err != nil {
		t.Fatal(err)
	}
	for {
		e := receive(ctx, t, w.ResultChan(), "the deletion")
		now, ok := e.Object.(*Gadget)
		if e.Type == watch.Deleted {
			if !ok || now.DeletionTimestamp.IsZero() {
				t.Errorf("deleted as %s", text(e.Object))
			}
			t.Logf("the finalizer took %v", time.Since(began))
			return
		}
	}
}

// Server-side apply through the controller-runtime client: two owners, one object.
func TestManagerApply(t *testing.T) {
	_, config := start(t, "", "")
	ctx := within(t)
	define(ctx, t, config)
	c, err := client.New(config, client.Options{Scheme: gadgetScheme(t), FieldOwner: "one"})
	if err != nil {
		t.Fatal(err)
	}
	g := gadget("g", 1)
	g.SetNamespace("default")
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(g)); err != nil {
		t.Fatal(err)
	}
	other := gadget("g", 2)
	other.SetNamespace("default")
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(other), client.FieldOwner("two")); !apierrors.IsConflict(err) {
		t.Errorf("a field with another owner: %v", err)
	}
	other = gadget("g", 2)
	other.SetNamespace("default")
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(other), client.FieldOwner("two"), client.ForceOwnership); err != nil {
		t.Error(err)
	}
	var got Gadget
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "g"}, &got); err != nil || got.Spec.Size != 2 {
		t.Errorf("%s, %v", text(got), err)
	}
}
