package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var moreSoundControllers = []sound{
	{"claims of a shared object with optimistic locks", World{Start: manage(ctrl.Options{}, claim)}, func(s *Scenario) {
		s.Apply(newMap("x", "one"), newMap("y", "one"), newSite("a", siteSpec{Config: "x"}), newSite("b", siteSpec{Config: "x"}))
		s.Settle()
		s.Apply(newSite("a", siteSpec{Config: "y"}))
		s.Settle()
		s.Delete(newSite("b", siteSpec{}))
	}},

	{"two controllers that hand over", World{Start: manage(ctrl.Options{}, ofSites(deploy, &appsv1.Deployment{}), rollOut)},
		applyThenDelete(siteSpec{Size: 2, Color: "red"}, siteSpec{Size: 3, Color: "red"})},

	{"a ConfigMap that many sites use", World{Start: manage(ctrl.Options{}, render)}, func(s *Scenario) {
		s.Apply(newMap("x", "one"), newSite("a", siteSpec{Config: "x"}), newSite("b", siteSpec{Config: "y"}), newSite("c", siteSpec{Config: "x"}))
		s.Settle()
		s.Apply(newMap("y", "one"))
		s.Settle()
		s.Apply(newMap("x", "two"))
		s.Settle()
		s.Delete(newSite("a", siteSpec{}))
	}},

	{"expiry at a recorded time", World{Quiet: 6 * time.Minute, Start: manage(ctrl.Options{}, ofSites(expire, &corev1.Secret{}))},
		applyThenDelete(siteSpec{Color: "red"}, siteSpec{Color: "blue"})},

	{"adoption and release by label", World{Start: manage(ctrl.Options{}, adopt)}, func(s *Scenario) {
		labelled := func(name, of string) client.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"site": of}}}
		}
		s.Apply(labelled("s", "a"), newSite("a", siteSpec{}), newSite("b", siteSpec{}))
		s.Settle()
		s.Apply(labelled("t", "a"), labelled("s", "b"))
		s.Settle()
		s.Apply(labelled("t", "none"))
	}},

	{"metadata alone", World{Start: manage(ctrl.Options{}, labelTeam)}, func(s *Scenario) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s", Annotations: map[string]string{"team": "red"}}}
		s.Apply(secret)
		s.Settle()
		secret.Annotations["team"] = "blue"
		s.Apply(secret)
		s.Settle()
		secret.Annotations = nil
		s.Apply(secret)
	}},

	{"no work for an invalid object", World{Start: manage(ctrl.Options{}, ofSites(valid, &corev1.Secret{}))}, func(s *Scenario) {
		s.Apply(newSite("b", siteSpec{Size: -1}))
		applyThenDelete(siteSpec{Size: -1}, siteSpec{Size: 2})(s)
	}},

	{"a Pod that runs once for each generation", World{Kubelet: true, Start: manage(ctrl.Options{}, ofSites(once, &corev1.Pod{}))},
		applyThenDelete(siteSpec{Color: "red"}, siteSpec{Color: "blue"})},

	{"an object in each namespace", World{Start: manage(ctrl.Options{}, provision)}, func(s *Scenario) {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"team": "red"}}}
		s.Apply(n)
		s.Settle()
		n.Labels["team"] = "blue"
		s.Apply(n)
		s.Settle()
		s.Delete(n)
	}},

	{"replacement of an immutable child", World{Start: manage(ctrl.Options{}, ofSites(replace, &corev1.Secret{}))},
		applyThenDelete(siteSpec{Color: "red"}, siteSpec{Color: "blue"}, siteSpec{Color: "red"})},

	{"a child with many owners", World{Start: manage(ctrl.Options{}, share)}, func(s *Scenario) {
		s.Apply(newSite("a", siteSpec{Config: "x"}), newSite("b", siteSpec{Config: "x"}))
		s.Settle()
		s.Delete(newSite("a", siteSpec{}))
		s.Settle()
		s.Delete(newSite("b", siteSpec{}))
	}},

	{"setup and teardown in order", World{Start: manage(ctrl.Options{}, ofLabelled(inOrder, &corev1.Secret{}, &corev1.ConfigMap{}))}, func(s *Scenario) {
		s.Always("each ConfigMap has its Secret", func(state *State) error {
			var all corev1.ConfigMapList
			if err := state.List(&all, client.HasLabels{"site"}); err != nil {
				return err
			}
			for _, m := range all.Items {
				if err := state.Get(client.ObjectKeyFromObject(&m), &corev1.Secret{}); err != nil {
					return err
				}
			}
			return nil
		})
		applyThenDelete(siteSpec{Color: "red"}, siteSpec{Color: "blue"})(s)
	}},
}

// runInformers copies ConfigMaps with a label to Secrets with their names.
func runInformers(ctx context.Context, config *rest.Config) error {
	k, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	factory := informers.NewSharedInformerFactory(k, 0)
	sources, copies := factory.Core().V1().ConfigMaps(), factory.Core().V1().Secrets()
	add := func(o any) {
		if name, err := cache.DeletionHandlingObjectToName(o); err == nil {
			queue.Add(name)
		}
	}
	for _, i := range []cache.SharedIndexInformer{sources.Informer(), copies.Informer()} {
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) }, DeleteFunc: add})
		if err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	factory.WaitForCacheSync(ctx.Done())
	defer context.AfterFunc(ctx, queue.ShutDown)()
	for {
		name, down := queue.Get()
		if down {
			return nil
		}
		if err := copyMap(ctx, k, sources.Lister(), copies.Lister(), name); err != nil {
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

// copyMap makes the Secret of one ConfigMap as it must be.
func copyMap(ctx context.Context, k kubernetes.Interface, sources corelisters.ConfigMapLister, copies corelisters.SecretLister, name cache.ObjectName) error {
	m, err := sources.ConfigMaps(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil // the garbage collector deletes the Secret
	}
	if err != nil {
		return err
	}
	secrets := k.CoreV1().Secrets(name.Namespace)
	s, err := copies.Secrets(name.Namespace).Get(name.Name)
	wanted := m.Labels["copy"] == "yes"
	data := map[string][]byte{"value": []byte(m.Data["value"])}
	switch {
	case apierrors.IsNotFound(err) && !wanted:
		return nil
	case apierrors.IsNotFound(err):
		owner := *metav1.NewControllerRef(m, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: m.Name, OwnerReferences: []metav1.OwnerReference{owner}}, Data: data}
		_, err = secrets.Create(ctx, s, metav1.CreateOptions{})
		return err
	case err != nil:
		return err
	case !metav1.IsControlledBy(s, m) && wanted:
		return fmt.Errorf("the Secret %s belongs to another object", name)
	case !metav1.IsControlledBy(s, m):
		return nil
	case !wanted:
		err = secrets.Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
		return client.IgnoreNotFound(err)
	case maps.EqualFunc(s.Data, data, slices.Equal):
		return nil
	}
	s = s.DeepCopy()
	s.Data = data
	_, err = secrets.Update(ctx, s, metav1.UpdateOptions{})
	return err
}

// allSites requests all sites in the namespace of an object.
func allSites(c client.Client) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) (all []reconcile.Request) {
		var sites siteList
		_ = c.List(ctx, &sites, client.InNamespace(o.GetNamespace()))
		for _, s := range sites.Items {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&s)})
		}
		return all
	})
}

// claim notes the names of sites in an annotation of the ConfigMaps that they use.
func claim(m ctrl.Manager) error {
	live := m.GetAPIReader()
	return ctrl.NewControllerManagedBy(m).For(&site{}).Watches(&corev1.ConfigMap{}, allSites(m.GetClient())).
		Complete(siteReconciler(m.GetClient(), func(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
			leaves := !s.DeletionTimestamp.IsZero()
			if leaves && !controllerutil.ContainsFinalizer(s, siteFinalizer) {
				return ctrl.Result{}, nil
			}
			if !leaves && controllerutil.AddFinalizer(s, siteFinalizer) {
				if err := c.Update(ctx, s); err != nil {
					return ctrl.Result{}, err
				}
			}
			var all corev1.ConfigMapList // the finalizer stays until no claim is left, so the cache is not enough
			if err := live.List(ctx, &all, client.InNamespace(s.Namespace)); err != nil {
				return ctrl.Result{}, err
			}
			for _, m := range all.Items {
				if err := setClaim(ctx, live, c, client.ObjectKeyFromObject(&m), s.Name, !leaves && m.Name == s.Spec.Config); err != nil {
					return ctrl.Result{}, err
				}
			}
			if leaves {
				controllerutil.RemoveFinalizer(s, siteFinalizer)
				return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, s))
			}
			return ctrl.Result{}, nil
		}))
}

// setClaim adds a name to the claims of a ConfigMap, or removes it.
func setClaim(ctx context.Context, live client.Reader, c client.Client, key client.ObjectKey, name string, wanted bool) error {
	const claims = "example.com/claims"
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var m corev1.ConfigMap
		if err := live.Get(ctx, key, &m); err != nil {
			return err
		}
		names := strings.FieldsFunc(m.Annotations[claims], func(r rune) bool { return r == ',' })
		if slices.Contains(names, name) == wanted {
			return nil
		}
		patch := client.MergeFromWithOptions(m.DeepCopy(), client.MergeFromWithOptimisticLock{})
		if wanted {
			names = append(names, name)
			slices.Sort(names)
		} else {
			names = slices.DeleteFunc(names, func(n string) bool { return n == name })
		}
		delete(m.Annotations, claims)
		if len(names) > 0 {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, claims, strings.Join(names, ","))
		}
		return c.Patch(ctx, &m, patch)
	})
	return client.IgnoreNotFound(err)
}

// rollOut is a controller that makes the Pods of Deployments ready at once.
func rollOut(m ctrl.Manager) error {
	c := m.GetClient()
	return ctrl.NewControllerManagedBy(m).For(&appsv1.Deployment{}).Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		var d appsv1.Deployment
		if err := c.Get(ctx, request.NamespacedName, &d); err != nil || d.DeletionTimestamp != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		n := *d.Spec.Replicas
		status := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
		if equality.Semantic.DeepEqual(d.Status, status) {
			return ctrl.Result{}, nil
		}
		d.Status = status
		return ctrl.Result{}, c.Status().Update(ctx, &d)
	}))
}

// render copies the ConfigMap that a site names to a Secret of the site.
func render(m ctrl.Manager) error {
	c := m.GetClient()
	const config = "spec.config"
	if err := m.GetFieldIndexer().IndexField(context.Background(), &site{}, config, func(o client.Object) []string { return []string{o.(*site).Spec.Config} }); err != nil {
		return err
	}
	users := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) (all []reconcile.Request) {
		var sites siteList
		_ = c.List(ctx, &sites, client.InNamespace(o.GetNamespace()), client.MatchingFields{config: o.GetName()})
		for _, s := range sites.Items {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&s)})
		}
		return all
	})
	return ctrl.NewControllerManagedBy(m).For(&site{}).Owns(&corev1.Secret{}).Watches(&corev1.ConfigMap{}, users).
		Complete(siteReconciler(c, func(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
			var m corev1.ConfigMap
			err := c.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Spec.Config}, &m)
			if apierrors.IsNotFound(err) {
				return ctrl.Result{}, report(ctx, c, s, false, "NoConfigMap")
			}
			if err != nil {
				return ctrl.Result{}, err
			}
			child := &corev1.Secret{ObjectMeta: s.child(s.Name)}
			_, err = controllerutil.CreateOrUpdate(ctx, c, child, func() error {
				child.Data = map[string][]byte{"value": []byte(m.Data["value"])}
				return controllerutil.SetControllerReference(s, child, c.Scheme())
			})
			if err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, report(ctx, c, s, true, "Rendered")
		}))
}

// expire keeps a Secret for five minutes after each change of the site.
func expire(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
	if s.Status.Expires == nil || s.Status.ObservedGeneration != s.Generation {
		at := metav1.NewTime(time.Now().Add(5 * time.Minute))
		if err := report(ctx, c, s, false, "Starting", func(status *siteStatus) { status.Expires = &at }); err != nil {
			return ctrl.Result{}, err
		}
	}
	child := &corev1.Secret{ObjectMeta: s.child(s.Name)}
	left := time.Until(s.Status.Expires.Time)
	if left <= 0 {
		if err := c.Delete(ctx, child); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, report(ctx, c, s, false, "Expired")
	}
	if err := controllerutil.SetControllerReference(s, child, c.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := c.Create(ctx, child); client.IgnoreAlreadyExists(err) != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: left}, report(ctx, c, s, true, "Valid")
}

// adopt makes the Secrets with the label of a site its own.
func adopt(m ctrl.Manager) error {
	live := m.GetAPIReader()
	byLabel := handler.EnqueueRequestsFromMapFunc(bySiteLabel)
	return ctrl.NewControllerManagedBy(m).For(&site{}).Owns(&corev1.Secret{}).Watches(&corev1.Secret{}, byLabel).
		Complete(siteReconciler(m.GetClient(), func(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
			var all corev1.SecretList
			if err := c.List(ctx, &all, client.InNamespace(s.Namespace)); err != nil || !s.DeletionTimestamp.IsZero() {
				return ctrl.Result{}, err
			}
			var count int32
			for _, child := range all.Items {
				if err := claimSecret(ctx, live, c, s, &child); client.IgnoreNotFound(err) != nil {
					return ctrl.Result{}, err
				}
				if child.Labels["site"] == s.Name && metav1.IsControlledBy(&child, s) {
					count++
				}
			}
			return ctrl.Result{}, report(ctx, c, s, true, "Counted", func(status *siteStatus) { status.Ready = count })
		}))
}

// claimSecret adopts or releases one Secret.
func claimSecret(ctx context.Context, live client.Reader, c client.Client, s *site, child *corev1.Secret) error {
	mine, labelled := metav1.IsControlledBy(child, s), child.Labels["site"] == s.Name
	if !child.DeletionTimestamp.IsZero() || mine == labelled || !mine && metav1.GetControllerOf(child) != nil {
		return nil
	}
	patch := client.MergeFromWithOptions(child.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if mine {
		if err := controllerutil.RemoveControllerReference(s, child, c.Scheme()); err != nil {
			return err
		}
		return c.Patch(ctx, child, patch)
	}
	if err := stillThere(ctx, live, s); err != nil {
		return err
	}
	if err := controllerutil.SetControllerReference(s, child, c.Scheme()); err != nil {
		return err
	}
	return c.Patch(ctx, child, patch)
}

// stillThere returns an error if the cached site is deleted: it must adopt nothing.
func stillThere(ctx context.Context, live client.Reader, s *site) error {
	var now site
	if err := live.Get(ctx, client.ObjectKeyFromObject(s), &now); err != nil {
		return err
	}
	if now.UID != s.UID || !now.DeletionTimestamp.IsZero() {
		return fmt.Errorf("the site %s is deleted", s.Name)
	}
	return nil
}

// labelTeam is a controller that copies an annotation of Secrets to a label. It never reads their data.
func labelTeam(m ctrl.Manager) error {
	c := m.GetClient()
	return ctrl.NewControllerManagedBy(m).For(&corev1.Secret{}, builder.OnlyMetadata).Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		var s metav1.PartialObjectMetadata
		s.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		if err := c.Get(ctx, request.NamespacedName, &s); err != nil || s.Labels["team"] == s.Annotations["team"] {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		patch := client.MergeFrom(s.DeepCopy())
		delete(s.Labels, "team")
		if team := s.Annotations["team"]; team != "" {
			metav1.SetMetaDataLabel(&s.ObjectMeta, "team", team)
		}
		return ctrl.Result{}, client.IgnoreNotFound(c.Patch(ctx, &s, patch))
	}))
}

// valid scales only a site with a valid size.
func valid(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
	if s.Spec.Size < 0 {
		return ctrl.Result{}, report(ctx, c, s, false, "Invalid")
	}
	return scale(ctx, c, s)
}

// once runs a Pod for each generation of a site, and deletes those of the generations before.
func once(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
	result := "result of " + s.Spec.Color
	if !s.DeletionTimestamp.IsZero() || s.Status.Result == result && s.Status.ObservedGeneration == s.Generation {
		return ctrl.Result{}, nil
	}
	pod := &corev1.Pod{ObjectMeta: s.child(fmt.Sprintf("%s-%d", s.Name, s.Generation))}
	err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	switch {
	case apierrors.IsNotFound(err):
		pod.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "run", Image: "run:1"}}}
		if err := controllerutil.SetControllerReference(s, pod, c.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, c.Create(ctx, pod)
	case err != nil:
		return ctrl.Result{}, err
	case !metav1.IsControlledBy(pod, s):
		return ctrl.Result{}, fmt.Errorf("the Pod %s belongs to another object", pod.Name)
	case pod.Status.Phase == corev1.PodFailed:
		return ctrl.Result{}, report(ctx, c, s, false, "Failed")
	case pod.Status.Phase != corev1.PodSucceeded:
		return ctrl.Result{}, report(ctx, c, s, false, "Running", func(status *siteStatus) { status.Result = "" })
	}
	var all corev1.PodList
	if err := c.List(ctx, &all, client.InNamespace(s.Namespace), client.MatchingLabels{"site": s.Name}); err != nil {
		return ctrl.Result{}, err
	}
	for _, old := range all.Items {
		if old.Name != pod.Name && metav1.IsControlledBy(&old, s) {
			if err := c.Delete(ctx, &old); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
		}
	}
	return ctrl.Result{}, report(ctx, c, s, true, "Done", func(status *siteStatus) { status.Result = result })
}

// provision is a controller that keeps a ConfigMap in each namespace of a team.
func provision(m ctrl.Manager) error {
	c := m.GetClient()
	return ctrl.NewControllerManagedBy(m).For(&corev1.Namespace{}).Owns(&corev1.ConfigMap{}).Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		var n corev1.Namespace
		if err := c.Get(ctx, request.NamespacedName, &n); err != nil || n.DeletionTimestamp != nil || n.Labels["team"] == "" {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Name, Name: "team"}}
		_, err := controllerutil.CreateOrUpdate(ctx, c, m, func() error {
			m.Data = map[string]string{"team": n.Labels["team"]}
			return controllerutil.SetControllerReference(&n, m, c.Scheme())
		})
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, err
	}))
}

// replace keeps an immutable Secret: a change is a deletion and a creation.
func replace(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	child, immutable := &corev1.Secret{ObjectMeta: s.child(s.Name)}, true
	var old corev1.Secret
	err := c.Get(ctx, client.ObjectKeyFromObject(child), &old)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return ctrl.Result{}, err
	case err == nil && !metav1.IsControlledBy(&old, s):
		return ctrl.Result{}, fmt.Errorf("the Secret %s belongs to another object", old.Name)
	case err == nil && string(old.Data["color"]) == s.Spec.Color:
		return ctrl.Result{}, nil
	case err == nil:
		if err := c.Delete(ctx, &old, client.Preconditions{UID: &old.UID}); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	child.Immutable, child.Data = &immutable, map[string][]byte{"color": []byte(s.Spec.Color)}
	if err := controllerutil.SetControllerReference(s, child, c.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, c.Create(ctx, child)
}

// share is a controller of ConfigMaps that sites own together.
func share(m ctrl.Manager) error {
	owners := handler.EnqueueRequestForOwner(m.GetScheme(), m.GetRESTMapper(), &site{})
	return ctrl.NewControllerManagedBy(m).For(&site{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).Watches(&corev1.ConfigMap{}, owners).
		Complete(siteReconciler(m.GetClient(), func(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
			if !s.DeletionTimestamp.IsZero() {
				return ctrl.Result{}, nil
			}
			shared := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "shared-" + s.Spec.Config}}
			_, err := controllerutil.CreateOrUpdate(ctx, c, shared, func() error {
				return controllerutil.SetOwnerReference(s, shared, c.Scheme())
			})
			if err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, report(ctx, c, s, true, "Shared")
		}))
}

// inOrder creates a Secret before a ConfigMap that needs it, and deletes them in the other order.
func inOrder(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
	secret, m := &corev1.Secret{ObjectMeta: s.child(s.Name)}, &corev1.ConfigMap{ObjectMeta: s.child(s.Name)}
	if s.DeletionTimestamp.IsZero() {
		if controllerutil.AddFinalizer(s, siteFinalizer) {
			return ctrl.Result{}, c.Update(ctx, s)
		}
		if _, err := controllerutil.CreateOrUpdate(ctx, c, secret, func() error {
			secret.Data = map[string][]byte{"color": []byte(s.Spec.Color)}
			return nil
		}); err != nil {
			return ctrl.Result{}, err
		}
		_, err := controllerutil.CreateOrUpdate(ctx, c, m, func() error {
			m.Data = map[string]string{"color": s.Spec.Color}
			return nil
		})
		return ctrl.Result{}, err
	}
	if !controllerutil.ContainsFinalizer(s, siteFinalizer) {
		return ctrl.Result{}, nil
	}
	if err := c.Delete(ctx, m); !apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: time.Second}, err // until it is gone
	}
	if err := c.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	controllerutil.RemoveFinalizer(s, siteFinalizer)
	return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, s))
}
