package verify

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A site is a custom resource.
type site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              siteSpec   `json:"spec,omitempty"`
	Status            siteStatus `json:"status,omitempty"`
}

type siteSpec struct {
	Size   int32  `json:"size,omitempty"`
	Color  string `json:"color,omitempty"`
	Config string `json:"config,omitempty"` // the name of an object that the user makes
}

type siteStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	Ready              int32              `json:"ready,omitempty"`
	Result             string             `json:"result,omitempty"`
	Expires            *metav1.Time       `json:"expires,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (s *site) DeepCopyObject() runtime.Object { return s.copied() }

func (s *site) copied() *site {
	out := *s
	out.ObjectMeta = *s.ObjectMeta.DeepCopy()
	out.Status.Conditions = append([]metav1.Condition(nil), s.Status.Conditions...)
	out.Status.Expires = s.Status.Expires.DeepCopy()
	return &out
}

// child is the metadata of an object that belongs to the site.
func (s *site) child(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Labels: map[string]string{"site": s.Name}}
}

type siteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []site `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *siteList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]site, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].copied()
	}
	return &out
}

var siteKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"}

// siteScheme has the types of client-go, and sites.
var siteScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	s.AddKnownTypeWithName(siteKind, &site{})
	s.AddKnownTypeWithName(siteKind.GroupVersion().WithKind("SiteList"), &siteList{})
	metav1.AddToGroupVersion(s, siteKind.GroupVersion())
	return s
}()

// siteDefinition is the CustomResourceDefinition of sites. Its schema accepts all fields of spec and status.
func siteDefinition() *apiextensionsv1.CustomResourceDefinition {
	open := true
	fields := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "sites.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: siteKind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "sites", Singular: "site", Kind: siteKind.Kind, ListKind: "SiteList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: siteKind.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": fields, "status": fields},
				}},
			}},
		},
	}
}

// manage is the World.Start of a manager with controllers.
func manage(o ctrl.Options, add ...func(ctrl.Manager) error) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, c *rest.Config) error {
		o, needed := o, managerOptions()
		o.Scheme, o.Metrics, o.Controller = siteScheme, needed.Metrics, needed.Controller
		if o.Client.Cache != nil {
			cache := *o.Client.Cache // a manager changes it
			o.Client.Cache = &cache
		}
		m, err := ctrl.NewManager(c, o)
		if err != nil {
			return err
		}
		for _, a := range add {
			if err := a(m); err != nil {
				return err
			}
		}
		return m.Start(ctx)
	}
}

// ofSites is a controller of sites. It watches the objects that they own, too.
func ofSites(f func(context.Context, client.Client, *site) (ctrl.Result, error), owns ...client.Object) func(ctrl.Manager) error {
	return func(m ctrl.Manager) error {
		b := ctrl.NewControllerManagedBy(m).For(&site{}).WithOptions(controller.Options{MaxConcurrentReconciles: 2})
		for _, o := range owns {
			b = b.Owns(o)
		}
		return b.Complete(siteReconciler(m.GetClient(), f))
	}
}

// ofLabelled is a controller of sites. It watches objects that have the label of a site and no owner, too.
func ofLabelled(f func(context.Context, client.Client, *site) (ctrl.Result, error), kinds ...client.Object) func(ctrl.Manager) error {
	return func(m ctrl.Manager) error {
		b := ctrl.NewControllerManagedBy(m).For(&site{})
		for _, o := range kinds {
			b = b.Watches(o, handler.EnqueueRequestsFromMapFunc(bySiteLabel))
		}
		return b.Complete(siteReconciler(m.GetClient(), f))
	}
}

// bySiteLabel requests the site that the labels of an object name.
func bySiteLabel(_ context.Context, o client.Object) []reconcile.Request {
	key := client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetLabels()["site"]}
	if key.Namespace == "" {
		key.Namespace = o.GetLabels()["namespace"]
	}
	if key.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// siteReconciler reads the site of a request from the cache.
func siteReconciler(c client.Client, f func(context.Context, client.Client, *site) (ctrl.Result, error)) reconcile.Func {
	return func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		var s site
		if err := c.Get(ctx, request.NamespacedName, &s); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		return f(ctx, c, &s)
	}
}

// report writes the status of a site, with its condition, if it changes.
func report(ctx context.Context, c client.Client, s *site, ready bool, reason string, change ...func(*siteStatus)) error {
	before := s.copied()
	for _, f := range change {
		f(&s.Status)
	}
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: reason, ObservedGeneration: s.Generation}
	if ready {
		condition.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&s.Status.Conditions, condition)
	s.Status.ObservedGeneration = s.Generation
	if equality.Semantic.DeepEqual(before.Status, s.Status) {
		return nil
	}
	return c.Status().Update(ctx, s)
}

// newSite is a site of the user.
func newSite(name string, spec siteSpec) *site {
	return &site{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
}

// newMap is a ConfigMap of the user.
func newMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"value": value}}
}

// applyThenDelete applies one site with each spec in turn, and deletes it.
func applyThenDelete(specs ...siteSpec) func(*Scenario) {
	return func(s *Scenario) {
		for _, spec := range specs {
			s.Apply(newSite("a", spec))
			s.Settle()
		}
		s.Delete(newSite("a", siteSpec{}))
	}
}

// No plan finds a problem of a correct controller.
func TestCorrectSites(t *testing.T) {
	all := slices.Concat(soundControllers, moreSoundControllers)
	for i := range all {
		all[i].world.Scheme, all[i].world.CRDs = siteScheme, []*apiextensionsv1.CustomResourceDefinition{siteDefinition()}
	}
	testSound(t, all, 2)
}

var soundControllers = []sound{
	{"CreateOrUpdate of a child, and conditions", World{Start: manage(ctrl.Options{}, ofSites(deploy, &appsv1.Deployment{}))},
		applyThenDelete(siteSpec{Size: 2, Color: "red"}, siteSpec{Size: 3, Color: "blue"})},

	{"server-side apply of a child", World{Start: manage(ctrl.Options{}, ofSites(applyChild, &corev1.ConfigMap{}))}, func(s *Scenario) {
		s.Apply(newSite("a", siteSpec{Color: "red"}))
		s.Settle()
		s.Do("deletes all children", func(ctx context.Context) error {
			return s.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"), client.HasLabels{"site"})
		})
		s.Apply(newSite("a", siteSpec{Color: "blue", Size: 1}))
		s.Settle()
		s.Apply(newSite("a", siteSpec{Color: "blue"}))
		s.Settle()
		s.Delete(newSite("a", siteSpec{}))
	}},

	// A namespaced object cannot own one of the cluster.
	{"finalizer around an object of the cluster", World{Start: manage(ctrl.Options{}, ofLabelled(withRole, &rbacv1.ClusterRole{}))}, func(s *Scenario) {
		s.Apply(newSite("a", siteSpec{Color: "red"}), newSite("b", siteSpec{Color: "red"}))
		s.Settle()
		s.Apply(newSite("a", siteSpec{Color: "blue"}))
		s.Settle()
		s.Delete(newSite("a", siteSpec{}))
	}},

	// Secrets are read from the server, and nothing watches them.
	{"polling for a Secret", World{
		Quiet: time.Minute, // longer than the pause between two polls
		Start: manage(ctrl.Options{Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}},
			ofSites(poll, &corev1.ConfigMap{})),
	}, func(s *Scenario) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "login"}, Data: map[string][]byte{"user": []byte("one")}}
		s.Apply(newSite("a", siteSpec{Config: "login"}))
		s.Settle()
		s.Apply(secret)
		s.Settle()
		secret.Data["user"] = []byte("two")
		s.Apply(secret)
		s.Settle()
		s.Delete(newSite("a", siteSpec{}))
	}},

	{"children by number", World{Start: manage(ctrl.Options{}, ofSites(scale, &corev1.Secret{}))},
		applyThenDelete(siteSpec{Size: 3}, siteSpec{Size: 1}, siteSpec{Size: 2})},

	{"renamed children pruned by label", World{Start: manage(ctrl.Options{}, ofSites(prune, &corev1.ConfigMap{}))},
		applyThenDelete(siteSpec{Color: "red"}, siteSpec{Color: "blue"}, siteSpec{Color: "red"})},

	{"informers without controller-runtime", World{Start: runInformers}, func(s *Scenario) {
		m := newMap("a", "one")
		m.Labels = map[string]string{"copy": "yes"}
		s.Apply(m)
		s.Settle()
		m.Data["value"] = "two"
		s.Apply(m)
		s.Settle()
		s.Delete(m)
	}},

	{"leader election", World{
		Quiet: time.Minute, // longer than a lease that is not released lives
		Start: manage(ctrl.Options{
			LeaderElection: true, LeaderElectionID: "sites", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
		}, ofSites(deploy, &appsv1.Deployment{})),
	}, applyThenDelete(siteSpec{Size: 2}, siteSpec{Size: 3})},

	// The count comes from the server. Creations that are not in the cache yet count, too.
	{"generated names counted in the server", World{Start: manage(ctrl.Options{}, countLive)},
		applyThenDelete(siteSpec{Size: 3}, siteSpec{Size: 1}, siteSpec{Size: 2})},
}

// deploy keeps a Deployment for a site.
func deploy(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, c, d, func() error {
		labels := map[string]string{"site": s.Name}
		size := s.Spec.Size
		d.Spec.Replicas = &size
		if d.CreationTimestamp.IsZero() {
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		}
		d.Spec.Template.Labels = labels
		if len(d.Spec.Template.Spec.Containers) != 1 {
			d.Spec.Template.Spec.Containers = make([]corev1.Container, 1)
		}
		web := &d.Spec.Template.Spec.Containers[0]
		web.Name, web.Image, web.Env = "web", "web:1", []corev1.EnvVar{{Name: "COLOR", Value: s.Spec.Color}}
		return controllerutil.SetControllerReference(s, d, c.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	ready := d.Status.ReadyReplicas
	if d.Status.ObservedGeneration < d.Generation {
		ready = 0
	}
	return ctrl.Result{}, report(ctx, c, s, ready >= s.Spec.Size, "Deployed", func(status *siteStatus) { status.Ready = ready })
}

// applyChild applies a ConfigMap. A field that the site no longer needs is left out of it.
func applyChild(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	data := map[string]string{"color": s.Spec.Color}
	if s.Spec.Size > 0 {
		data["size"] = fmt.Sprint(s.Spec.Size)
	}
	owner := metav1apply.OwnerReference().WithAPIVersion(siteKind.GroupVersion().String()).WithKind(siteKind.Kind).
		WithName(s.Name).WithUID(s.UID).WithController(true).WithBlockOwnerDeletion(true)
	m := corev1apply.ConfigMap(s.Name, s.Namespace).WithLabels(map[string]string{"site": s.Name}).WithOwnerReferences(owner).WithData(data)
	return ctrl.Result{}, c.Apply(ctx, m, client.FieldOwner("sites"), client.ForceOwnership)
}

// withRole keeps a ClusterRole as long as the site lives.
func withRole(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "site-" + s.Namespace + "-" + s.Name}}
	if !s.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(s, siteFinalizer) {
			return ctrl.Result{}, nil
		}
		if err := c.Delete(ctx, role); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		controllerutil.RemoveFinalizer(s, siteFinalizer)
		return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, s))
	}
	if controllerutil.AddFinalizer(s, siteFinalizer) {
		if err := c.Update(ctx, s); err != nil {
			return ctrl.Result{}, err
		}
	}
	_, err := controllerutil.CreateOrUpdate(ctx, c, role, func() error {
		role.Labels = map[string]string{"site": s.Name, "namespace": s.Namespace}
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{s.Spec.Color}, Verbs: []string{"get"}}}
		return nil
	})
	return ctrl.Result{}, err
}

const siteFinalizer = "example.com/site"

// poll copies a Secret that nothing watches.
func poll(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
	const interval = 30 * time.Second
	var secret corev1.Secret
	err := c.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Spec.Config}, &secret)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: interval}, report(ctx, c, s, false, "NoSecret")
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	m := &corev1.ConfigMap{ObjectMeta: s.child(s.Name)}
	_, err = controllerutil.CreateOrUpdate(ctx, c, m, func() error {
		m.Data = map[string]string{"user": string(secret.Data["user"])}
		return controllerutil.SetControllerReference(s, m, c.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: interval}, report(ctx, c, s, true, "Copied")
}

// scale keeps Secrets with the numbers below the size.
func scale(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	wanted := map[string]bool{}
	for i := range s.Spec.Size {
		child := &corev1.Secret{ObjectMeta: s.child(fmt.Sprintf("%s-%d", s.Name, i))}
		wanted[child.Name] = true
		_, err := controllerutil.CreateOrUpdate(ctx, c, child, func() error { return controllerutil.SetControllerReference(s, child, c.Scheme()) })
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	var all corev1.SecretList
	if err := c.List(ctx, &all, client.InNamespace(s.Namespace), client.MatchingLabels{"site": s.Name}); err != nil {
		return ctrl.Result{}, err
	}
	for _, child := range all.Items {
		if wanted[child.Name] || !metav1.IsControlledBy(&child, s) {
			continue
		}
		if err := c.Delete(ctx, &child); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, report(ctx, c, s, true, "Scaled", func(status *siteStatus) { status.Ready = s.Spec.Size })
}

// prune keeps one ConfigMap, whose name changes, and deletes the others.
func prune(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	m := &corev1.ConfigMap{ObjectMeta: s.child(s.Name + "-" + s.Spec.Color), Data: map[string]string{"color": s.Spec.Color}}
	if err := controllerutil.SetControllerReference(s, m, c.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := c.Create(ctx, m); client.IgnoreAlreadyExists(err) != nil {
		return ctrl.Result{}, err
	}
	var all corev1.ConfigMapList
	if err := c.List(ctx, &all, client.InNamespace(s.Namespace), client.MatchingLabels{"site": s.Name}); err != nil {
		return ctrl.Result{}, err
	}
	for _, old := range all.Items {
		if old.Name == m.Name || !metav1.IsControlledBy(&old, s) {
			continue
		}
		if err := c.Delete(ctx, &old, client.Preconditions{UID: &old.UID}); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

// countLive is a controller of Secrets with generated names, as many as the size says.
func countLive(m ctrl.Manager) error {
	live := m.GetAPIReader()
	return ofSites(func(ctx context.Context, c client.Client, s *site) (ctrl.Result, error) {
		var all corev1.SecretList
		if err := live.List(ctx, &all, client.InNamespace(s.Namespace), client.MatchingLabels{"site": s.Name}); err != nil || !s.DeletionTimestamp.IsZero() {
			return ctrl.Result{}, err
		}
		var count int32
		for _, child := range all.Items {
			if !metav1.IsControlledBy(&child, s) || !child.DeletionTimestamp.IsZero() {
				continue
			}
			if count++; count <= s.Spec.Size {
				continue
			}
			if err := c.Delete(ctx, &child); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
		}
		for ; count < s.Spec.Size; count++ {
			child := &corev1.Secret{ObjectMeta: s.child("")}
			child.GenerateName = s.Name + "-"
			if err := controllerutil.SetControllerReference(s, child, c.Scheme()); err != nil {
				return ctrl.Result{}, err
			}
			if err := c.Create(ctx, child); err != nil {
				return ctrl.Result{}, err
			}
		}
		return ctrl.Result{}, nil
	}, &corev1.Secret{})(m)
}
