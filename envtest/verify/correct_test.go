package verify

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// children keeps as many Secrets as the ConfigMap says, with names that depend on it alone, and prunes others.
func children(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
	size, err := strconv.Atoi(m.Data["size"])
	if err != nil || m.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	wanted := map[string]bool{}
	for i := range size {
		s := secret(m, fmt.Sprint(m.Name, "-", i))
		wanted[s.Name] = true
		if err := client.IgnoreAlreadyExists(c.Create(ctx, owned(c, m, s))); err != nil {
			return ctrl.Result{}, err
		}
	}
	all, err := secrets(ctx, c, m)
	for _, s := range all {
		if err == nil && !wanted[s.Name] {
			err = client.IgnoreNotFound(c.Delete(ctx, &s))
		}
	}
	return ctrl.Result{}, err
}

// cleaned has a finalizer before the Secret that belongs to it, and removes it after that Secret.
func cleaned(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
	if m.DeletionTimestamp != nil {
		if err := c.Delete(ctx, secret(m, m.Name)); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		if !controllerutil.RemoveFinalizer(m, finalizer) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, m))
	}
	if controllerutil.AddFinalizer(m, finalizer) {
		return ctrl.Result{}, c.Update(ctx, m)
	}
	return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, secret(m, m.Name)))
}

// applied applies a Secret with its fields, and records the size in the ConfigMap afterwards.
func applied(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
	if m.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	s := &object{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"size": m.Data["size"]},
		"metadata": map[string]any{"name": m.Name, "namespace": m.Namespace, "ownerReferences": []any{map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "name": m.Name, "uid": string(m.UID), "controller": true,
		}}},
	}}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(s), client.FieldOwner("maps"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	if m.Annotations["applied"] == m.Data["size"] {
		return ctrl.Result{}, nil
	}
	before := m.DeepCopy()
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, "applied", m.Data["size"])
	return ctrl.Result{}, c.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// polling waits for a Secret of the user. It does not watch that Secret.
func polling(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
	var s corev1.Secret
	if err := c.Get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: "token"}, &s); apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: 3 * time.Second}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, set(ctx, c, m, "token", string(s.Data["t"]))
}

// expiring deletes the ConfigMap a while after the time that it records in it.
func expiring(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
	since, err := time.Parse(time.RFC3339, m.Annotations["since"])
	if err != nil {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, "since", time.Now().Format(time.RFC3339))
		return ctrl.Result{}, c.Update(ctx, m)
	}
	if left := time.Until(since.Add(8 * time.Second)); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(c.Delete(ctx, m, client.Preconditions{UID: &m.UID}))
}

// random makes a Secret with a password, a time and a resourceVersion, with a name that it records before.
func random(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
	if m.Annotations["secret"] == "" {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, "secret", "s-"+rand.Text())
		return ctrl.Result{}, c.Update(ctx, m)
	}
	s := owned(c, m, secret(m, "x"))
	s.Name = "s-" + fmt.Sprintf("%x", m.Annotations["secret"][2:8])
	s.StringData = map[string]string{"password": rand.Text(), "at": fmt.Sprint(time.Now().Unix()), "of": m.ResourceVersion}
	return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, s))
}

// retried updates the newest state of the ConfigMap, until there is no conflict.
func retried(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
	return ctrl.Result{}, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var now corev1.ConfigMap
		if err := c.Get(ctx, client.ObjectKeyFromObject(m), &now); err != nil {
			return client.IgnoreNotFound(err)
		}
		return set(ctx, c, &now, "double", now.Data["size"]+now.Data["size"])
	})
}

// adopting makes Secrets with its label its own, but those of another owner.
func adopting(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
	all, err := secrets(ctx, c, m)
	if err != nil || m.DeletionTimestamp != nil {
		return ctrl.Result{}, err
	}
	for _, s := range all {
		if metav1.GetControllerOf(&s) == nil {
			if err := c.Update(ctx, owned(c, m, &s)); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	return ctrl.Result{RequeueAfter: 4 * time.Second}, nil // Secrets without an owner start nothing
}

// mapped is a manager of ConfigMaps that name a Secret of the user. Several ConfigMaps can name the same Secret.
func mapped(ctx context.Context, c *rest.Config) error {
	o := managerOptions()
	o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace, o.LeaderElectionReleaseOnCancel = true, "mapped", "default", true
	m, err := ctrl.NewManager(c, o)
	if err != nil {
		return err
	}
	users := func(ctx context.Context, o client.Object) (all []reconcile.Request) {
		var maps corev1.ConfigMapList
		_ = m.GetClient().List(ctx, &maps, client.InNamespace(o.GetNamespace()))
		for _, m := range maps.Items {
			if m.Data["from"] == o.GetName() {
				all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&m)})
			}
		}
		return all
	}
	read := func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		var of corev1.ConfigMap
		if err := m.GetClient().Get(ctx, r.NamespacedName, &of); err != nil || of.Data["from"] == "" {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		var s corev1.Secret
		if err := m.GetClient().Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: of.Data["from"]}, &s); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		return reconcile.Result{}, set(ctx, m.GetClient(), &of, "value", string(s.Data["t"]))
	}
	err = ctrl.NewControllerManagedBy(m).Named("mapped").For(&corev1.ConfigMap{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(users)).Complete(reconcile.Func(read))
	if err != nil {
		return err
	}
	return m.Start(ctx)
}

// plain is a controller without controller-runtime.
func plain(ctx context.Context, config *rest.Config) error {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	f := informers.NewSharedInformerFactory(c, 0)
	maps := f.Core().V1().ConfigMaps()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	add := func(o any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
			queue.Add(key)
		}
	}
	if _, err := maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, DeleteFunc: add, UpdateFunc: func(_, o any) { add(o) },
	}); err != nil {
		return err
	}
	f.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())
	go func() { <-ctx.Done(); queue.ShutDown() }()
	for {
		key, over := queue.Get()
		if over {
			f.Shutdown()
			return nil
		}
		namespace, name, _ := cache.SplitMetaNamespaceKey(key)
		m, err := maps.Lister().ConfigMaps(namespace).Get(name)
		if err == nil && m.Labels["mine"] != "" {
			s := secret(m, name)
			s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
			_, err = c.CoreV1().Secrets(namespace).Create(ctx, s, metav1.CreateOptions{})
		}
		if client.IgnoreAlreadyExists(client.IgnoreNotFound(err)) != nil {
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

// grow changes the size from 3 to 5 and to 1, and deletes the ConfigMap.
func grow(s *Scenario) {
	resize(s)
	s.Apply(configMap("m", map[string]string{"size": "1"}))
	s.Settle()
	s.Delete(configMap("m", nil))
}

func token(s *Scenario, value string) {
	s.Apply(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "token"}, StringData: map[string]string{"t": value}})
}

// Small controllers of ConfigMaps.
var smallOnes = []sound{
	{"children by number", World{Start: reconciler(children).start, Inputs: true}, grow},
	{"finalizer around the work", World{Start: reconciler(cleaned).start, Inputs: true}, remove},
	{"finalizer and the same name again", World{Start: reconciler(cleaned).start, Inputs: true}, func(s *Scenario) {
		remove(s)
		applyOne(s)
	}},
	{"a child that the user deletes", World{Start: reconciler(named).start, Inputs: true}, func(s *Scenario) {
		applyOne(s)
		s.Delete(secret(configMap("m", nil), "m"))
	}},
	{"server-side apply", World{Start: reconciler(applied).start, Inputs: true}, grow},
	{"polling", World{Start: reconciler(polling).start, Inputs: true}, func(s *Scenario) {
		applyOne(s)
		token(s, "1")
	}},
	{"expiry", World{Start: reconciler(expiring).start, Inputs: true}, applyOne},
	{"random names and values", World{Start: reconciler(random).start, Inputs: true}, applyOne},
	{"retries of conflicts", World{Start: reconciler(retried).start, Inputs: true}, resize},
	{"adoption", World{Start: reconciler(adopting).start, Inputs: true}, func(s *Scenario) {
		applyOne(s)
		s.Apply(secret(configMap("m", nil), "orphan"))
	}},
	{"one Secret for many", World{Start: mapped, Inputs: true}, func(s *Scenario) {
		token(s, "1")
		for _, name := range []string{"a", "b"} {
			s.Apply(configMap(name, map[string]string{"from": "token"}))
		}
		s.Settle()
		token(s, "2")
	}},
	{"client-go alone", World{Start: plain, Inputs: true}, remove},
}

// No plan finds a problem of a correct controller: here small ones, and in TestCorrectSites those of a custom
// resource with a status.
func TestCorrectControllers(t *testing.T) { testSound(t, smallOnes, 1) }
