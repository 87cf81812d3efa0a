package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	upstreamwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/generic"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	"k8s.io/apiserver/pkg/authentication/user"
	webhookclient "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	ourschema "github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

var requests = flag.Int("requests", 20_000, "number of random requests to match with random webhooks")

// Random webhooks and random requests: the same webhooks are called, for the same resource and kind,
// or there is the same error.
func TestWebhooks(t *testing.T) {
	w, requests := newWebhooks(t), volume(*requests)
	for i := range requests {
		if i%4 == 0 {
			w.replace()
		}
		w.send(t, w.randomRequest())
	}
	t.Logf("%d decisions on %d requests: %d calls, %d of them about an equivalent resource, and %d errors", w.decisions, requests, w.calls, w.equivalent, w.errors)
	if w.calls < requests/10 || w.equivalent < requests/100 || w.errors < requests/100 {
		t.Error("that is too little of something to show anything")
	}
}

// The exempt kinds, for which no webhook is called, are Kubernetes'.
func TestExempt(t *testing.T) {
	for _, d := range builtin.Definitions() {
		a := admission.NewAttributesRecord(nil, nil, d.GroupVersionKind(d.StorageVersion().Name), "", "", schema.GroupVersionResource{}, "", admission.Create, nil, false, nil)
		if got, want := match.Exempt(d), rules.IsExemptAdmissionConfigurationResource(a); got != want {
			t.Errorf("%s: %v, want %v", d.GroupResource(), got, want)
		}
	}
}

// A decision tells whether a webhook is called, with the resource and kind.
type decision struct {
	Called   bool
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
	Refused  string
}

// A path is a served resource or subresource, and the operations on it.
type path struct {
	resource    schema.GroupVersionResource
	subresource string
	kind        schema.GroupVersionKind
	operations  []string
}

// served are the paths of requests, in the order in which a kube-apiserver registers them: the path,
// its kind with the group if it differs, and the operations. A cluster-scoped resource called
// namespaces, like that of example.org, has no path by its name.
const served = `
v1 events                                     Event                               CREATE UPDATE DELETE
v1 namespaces                                 Namespace                           CREATE UPDATE DELETE
v1 namespaces/finalize                        Namespace                           UPDATE
v1 namespaces/status                          Namespace                           UPDATE
v1 nodes                                      Node                                CREATE UPDATE DELETE
v1 nodes/proxy                                NodeProxyOptions                    CONNECT
v1 nodes/status                               Node                                UPDATE
v1 pods                                       Pod                                 CREATE UPDATE DELETE
v1 pods/attach                                PodAttachOptions                    CONNECT
v1 pods/binding                               Binding                             CREATE
v1 pods/eviction                              policy/v1/Eviction                  CREATE
v1 pods/exec                                  PodExecOptions                      CONNECT
v1 pods/status                                Pod                                 UPDATE
v1 serviceaccounts                            ServiceAccount                      CREATE UPDATE DELETE
v1 serviceaccounts/token                      authentication.k8s.io/v1/TokenRequest CREATE
apps/v1 deployments                           Deployment                          CREATE UPDATE DELETE
apps/v1 deployments/scale                     autoscaling/v1/Scale                UPDATE
apps/v1 deployments/status                    Deployment                          UPDATE
autoscaling/v2 horizontalpodautoscalers       HorizontalPodAutoscaler             CREATE UPDATE DELETE
autoscaling/v2 horizontalpodautoscalers/status HorizontalPodAutoscaler            UPDATE
autoscaling/v1 horizontalpodautoscalers       HorizontalPodAutoscaler             CREATE UPDATE DELETE
autoscaling/v1 horizontalpodautoscalers/status HorizontalPodAutoscaler            UPDATE
events.k8s.io/v1 events                       Event                               CREATE UPDATE DELETE
example.com/v1alpha1 widgets                  Widget                              CREATE UPDATE DELETE
example.com/v1beta1 widgets                   Widget
example.com/v1beta1 widgets/status            Widget
example.com/v1 widgets                        Widget                              CREATE UPDATE DELETE
example.com/v1 widgets/status                 Widget                              UPDATE
example.com/v1 widgets/scale                  autoscaling/v1/Scale                UPDATE
example.com/v2 widgets                        Widget                              CREATE UPDATE DELETE
example.com/v2 widgets/scale                  autoscaling/v1/Scale                UPDATE
example.com/v1 gadgets                        Gadget                              CREATE UPDATE DELETE
example.com/v1 gadgets/status                 Gadget                              UPDATE
example.com/v1beta1 gadgets                   Gadget                              CREATE UPDATE DELETE
example.net/v1 namespaces                     Namespace                           CREATE UPDATE DELETE
example.net/v1 namespaces/status              Namespace                           UPDATE
example.org/v1 namespaces                     Namespace                           CREATE`

func paths(t *testing.T) (all []path) {
	for line := range strings.Lines(strings.TrimSpace(served)) {
		words := strings.Fields(line)
		gv, err := schema.ParseGroupVersion(words[0])
		if err != nil {
			t.Fatal(err)
		}
		plural, subresource, _ := strings.Cut(words[1], "/")
		p := path{resource: gv.WithResource(plural), subresource: subresource, kind: gv.WithKind(words[2]), operations: words[3:]}
		if k := strings.Split(words[2], "/"); len(k) == 3 {
			p.kind = schema.GroupVersionKind{Group: k[0], Version: k[1], Kind: k[2]}
		}
		all = append(all, p)
	}
	return all
}

// custom returns the kinds of served that are not built in.
func custom(t *testing.T) []*resource.Definition {
	version := func(name string, served bool, subresources ...string) *resource.Version {
		v := &resource.Version{Name: name, Served: served}
		for _, s := range subresources {
			of := resource.Subresource{Name: s}
			if s == "scale" {
				of.Kind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
				of.Projection = &resource.Projection{Show: asScale, Open: asScale, Merge: func(_, _ map[string]any) error { return nil }}
			}
			v.Subresources = append(v.Subresources, of)
		}
		return v
	}
	kind := func(group, plural, name string, namespaced bool, storage string, order ...*resource.Version) *resource.Definition {
		preferred := slices.Clone(order)
		slices.Reverse(preferred)
		d := resource.New(resource.Definition{Group: group, Plural: plural, Kind: name, Namespaced: namespaced, UID: plural, StoragePrefix: resource.CustomPrefix(group, plural), Versions: preferred, Order: order})
		d.Version(storage).Storage = true
		for _, v := range order {
			anything := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
			of, err := ourschema.Parse(anything, model.Kind{Group: group, Version: v.Name, Kind: name, ListKind: name + "List", Plural: plural})
			if err != nil {
				t.Fatal(err)
			}
			v.Schema = of
		}
		return d
	}
	return []*resource.Definition{
		kind("example.com", "widgets", "Widget", true, "v1", version("v1alpha1", true), version("v1beta1", false, "status"), version("v1", true, "status", "scale"), version("v2", true, "scale")),
		kind("example.com", "gadgets", "Gadget", false, "v1", version("v1", true, "status"), version("v1beta1", true)),
		kind("example.net", "namespaces", "Namespace", true, "v1", version("v1", true, "status")),
		kind("example.org", "namespaces", "Namespace", false, "v1", version("v1", true)),
	}
}

func asScale(obj map[string]any) (map[string]any, error) {
	metadata := object.CloneTree(obj)["metadata"]
	return map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata}, nil
}

// webhooks has the inputs for the decisions of both.
type webhooks struct {
	rng      *rand.Rand
	paths    []path
	catalog  *resource.Catalog
	registry *registry.Registry

	hooks      []*admissionregistrationv1.ValidatingWebhook
	index      match.Index[int]
	namespaces *stored.Lister[corev1.Namespace]

	upstream  *generic.Webhook
	accessors []upstreamwebhook.WebhookAccessor
	admission.ObjectInterfaces
	equivalents runtime.EquivalentResourceRegistry

	now                                  *sending
	decisions, calls, equivalent, errors int
	t                                    *testing.T
}

func (w *webhooks) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return w.equivalents
}

// labelled are the existing namespaces with their labels.
var labelled = map[string]map[string]string{"prod": {"env": "prod", "app": "web"}, "dev": {"env": "dev"}, "bare": nil}

func newWebhooks(t *testing.T) *webhooks {
	w := &webhooks{t: t, rng: rand.New(rand.NewPCG(5, 6)), paths: paths(t), catalog: &resource.Catalog{}}
	set := resource.NewSet(append(builtin.Definitions(), custom(t)...))
	w.catalog.Swap(set)
	backend := memkv.New(memkv.Options{})
	caching := watchcache.New(backend, watchcache.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- caching.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; _ = backend.Close() })
	var plugins registry.Plugins
	plugins.Add(w)
	w.registry = registry.New(backend, caching, registry.Options{Plugins: plugins})
	w.namespaces = stored.List[corev1.Namespace](caching, set, corev1.Resource("namespaces"))
	w.store(t, backend)
	w.equivalents = runtime.NewEquivalentResourceRegistryWithIdentity(func(of schema.GroupResource) string {
		if of.Resource == "events" {
			return "events" // of both groups
		}
		return ""
	})
	for _, p := range w.paths {
		w.equivalents.RegisterKindFor(p.resource, p.subresource, p.kind)
	}
	w.upstream = upstreamMatcher(t)
	return w
}

// store stores objects for updates and deletes, of each resource, in each namespace, with different
// labels.
func (w *webhooks) store(t *testing.T, backend kv.Backend) {
	for _, p := range w.paths {
		if p.subresource != "" {
			continue
		}
		d := w.catalog.Set().Lookup(p.resource.Group, p.resource.Resource)
		for _, namespace := range places(d) {
			for _, name := range names(d) {
				metadata := map[string]any{"name": name, "uid": namespace + name}
				if namespace != "" {
					metadata["namespace"] = namespace
				}
				if l := randomLabels(w.rng); d.GroupResource() == corev1.Resource("namespaces") {
					metadata["labels"] = labelled[name]
				} else if l != nil {
					metadata["labels"] = l
				}
				v := d.StorageVersion().Name
				o := map[string]any{"apiVersion": d.APIVersion(v), "kind": d.Kind, "metadata": metadata}
				if d.Kind == "Deployment" {
					o["spec"] = map[string]any{"replicas": 1} // for its Scale
				}
				data, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				key := d.Key(namespace, name)
				if _, err := backend.Commit(t.Context(), kv.Write{Key: key, Value: data}); err != nil && !errors.As(err, new(*kv.ConflictError)) {
					t.Fatal(err)
				}
			}
		}
	}
}

// places returns the namespaces with objects of a kind.
func places(d *resource.Definition) []string {
	if !d.Namespaced {
		return []string{""}
	}
	return []string{"prod", "dev", "bare", "gone"}
}

func names(d *resource.Definition) []string {
	if d.GroupResource() == corev1.Resource("namespaces") {
		return []string{"prod", "dev", "bare"}
	}
	return []string{"a", "b", "c"}
}

// A here client returns 404 for namespaces that are not listed.
type here struct{ kubernetes.Interface }

func (here) CoreV1() clientv1.CoreV1Interface { return hereCore{} }

type hereCore struct{ clientv1.CoreV1Interface }

func (hereCore) Namespaces() clientv1.NamespaceInterface { return hereNamespaces{} }

type hereNamespaces struct{ clientv1.NamespaceInterface }

func (hereNamespaces) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
}

// upstreamMatcher returns the part of Kubernetes' plugins that decides which webhooks are called.
func upstreamMatcher(t *testing.T) *generic.Webhook {
	u, err := generic.NewWebhook(admission.NewHandler(admission.Create), nil, nil, func(*webhookclient.ClientManager) generic.Dispatcher { return nil })
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(here{}, 0)
	u.SetExternalKubeClientSet(here{})
	u.SetExternalKubeInformerFactory(factory)
	for name, l := range labelled {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: l}}
		if err := factory.Core().V1().Namespaces().Informer().GetIndexer().Add(n); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// replace replaces all webhooks.
func (w *webhooks) replace() {
	w.hooks, w.accessors = nil, nil
	var entries []match.Entry[int]
	for i := range 1 + w.rng.IntN(4) {
		h := w.randomWebhook()
		w.hooks = append(w.hooks, h)
		w.accessors = append(w.accessors, upstreamwebhook.NewValidatingWebhookAccessor(fmt.Sprint(i), "random", h))
		entries = append(entries, match.Entry[int]{Criteria: match.ByRules(h.Rules, h.MatchPolicy, h.NamespaceSelector, h.ObjectSelector), Of: i})
	}
	w.index.Replace(entries)
}

// A sending is a request to a path.
type sending struct {
	path
	operation, namespace, name, generateName string
	labels                                   map[string]any
	bare                                     bool // without metadata
}

var errAsked = errors.New("nothing is written")

// send sends a request, for which both decide on its way. The request writes nothing.
func (w *webhooks) send(t *testing.T, s *sending) {
	w.now = s
	before := w.decisions
	d := w.catalog.Set().Lookup(s.resource.Group, s.resource.Resource)
	target := registry.Target{Definition: d, Version: d.Version(s.resource.Version), Namespace: s.namespace, Name: s.name, Subresource: s.subresource}
	var err error
	switch s.operation {
	case "CREATE":
		body := registry.Given(s.body())
		if target.Creater() != nil {
			_, err = w.registry.Answer(t.Context(), target, body, registry.WriteOptions{})
			break
		}
		target.Name = ""
		_, err = w.registry.Create(t.Context(), target, body, registry.WriteOptions{})
	case "UPDATE":
		_, err = w.registry.Modify(t.Context(), target, func(old object.Tree) (object.Tree, error) {
			next := object.CloneTree(old)
			if delete(next["metadata"].(map[string]any), "labels"); s.labels != nil {
				next["metadata"].(map[string]any)["labels"] = s.labels
			}
			return next, nil
		}, registry.WriteOptions{})
	case "DELETE":
		_, err = w.registry.Delete(t.Context(), target, &metav1.DeleteOptions{}, registry.WriteOptions{})
	case "CONNECT":
		var options runtime.Object
		if options, err = target.Version.Subresource(s.subresource).ReadOptions(url.Values{}); err == nil {
			_, err = w.registry.Connect(t.Context(), target, resource.Connection{Method: "GET", Options: options}, nil)
		}
	}
	if !errors.Is(err, errAsked) || w.decisions == before {
		t.Fatalf("%+v: %v", s, err)
	}
}

// body returns the body of a create.
func (s *sending) body() object.Tree {
	apiVersion, kind := s.kind.ToAPIVersionAndKind()
	body := object.Tree{"apiVersion": apiVersion, "kind": kind}
	if s.bare {
		return body
	}
	metadata := map[string]any{}
	if s.generateName != "" {
		metadata["generateName"] = s.generateName
	} else {
		metadata["name"] = s.name
	}
	if s.labels != nil {
		metadata["labels"] = s.labels
	}
	body["metadata"] = metadata
	return body
}

// Mutate compares the decisions of both for a request.
func (w *webhooks) Mutate(ctx context.Context, a *registry.Admission) error {
	attributes := w.attributes(ctx, a)
	found, write := w.index.Find(w.catalog, a), match.NewWrite(a, w.namespaces)
	for i, h := range w.hooks {
		var got, want decision
		if j := slices.IndexFunc(found, func(c match.Candidate[int]) bool { return c.Of == i }); j >= 0 {
			form, err := found[j].Match(ctx, write)
			if err != nil {
				got.Refused = verdictOf(err, nil, nil).Refused
			} else if form != nil {
				got = decision{Called: true, Resource: form.Resource, Kind: form.Kind}
			}
		}
		if call, err := w.upstream.ShouldCallHook(ctx, w.accessors[i], attributes, w, nil); err != nil {
			want.Refused = verdictOf(err, nil, nil).Refused
		} else if call != nil {
			want = decision{Called: true, Resource: call.Resource, Kind: call.Kind}
		}
		if d := cmp.Diff(want, got); d != "" {
			configured, _ := json.MarshalIndent(h, "", " ")
			w.t.Fatalf("-Kubernetes +anykind\n%s\n%+v\n%s", d, w.now, configured)
		}
		w.count(&want)
	}
	return errAsked
}

func (w *webhooks) count(d *decision) {
	w.decisions++
	if d.Called {
		w.calls++
		if d.Resource != w.now.resource {
			w.equivalent++
		}
	}
	if d.Refused != "" {
		w.errors++
	}
}

// attributes returns the attributes of the request in kube-apiserver.
func (w *webhooks) attributes(ctx context.Context, a *registry.Admission) admission.Attributes {
	s := w.now
	old, err := a.Old(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	namespace := s.namespace
	if s.resource == corev1.SchemeGroupVersion.WithResource("namespaces") {
		namespace = s.name
	}
	return admission.NewAttributesRecord(w.typed(a.Object), w.typed(old), s.kind, namespace, s.name, s.resource, s.subresource,
		admission.Operation(s.operation), nil, false, &user.DefaultInfo{Name: "ada"})
}

// typed returns an object as kube-apiserver decodes it: built-in kinds have a Go type.
func (w *webhooks) typed(t object.Tree) runtime.Object {
	if t == nil {
		return nil
	}
	o, err := scheme.Scheme.New(w.now.kind)
	if err != nil {
		return &unstructured.Unstructured{Object: object.CloneTree(t)}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(t, o); err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *webhooks) randomRequest() *sending {
	s := &sending{labels: randomLabels(w.rng)}
	for len(s.operations) == 0 {
		s.path = w.paths[w.rng.IntN(len(w.paths))]
	}
	d := w.catalog.Set().Lookup(s.resource.Group, s.resource.Resource)
	s.operation, s.namespace, s.name = anyOf(w.rng, s.operations...), anyOf(w.rng, places(d)...), anyOf(w.rng, names(d)...)
	if s.operation == "CREATE" {
		switch {
		case s.subresource != "":
			s.bare = w.rng.IntN(4) == 0
		case w.rng.IntN(4) == 0:
			s.name, s.generateName = "", "new-"
		default:
			s.name = "new"
		}
	}
	return s
}

func randomLabels(rng *rand.Rand) map[string]any {
	if rng.IntN(4) == 0 {
		return nil
	}
	l := map[string]any{}
	for _, key := range []string{"app", "env"} {
		if rng.IntN(3) > 0 {
			l[key] = anyOf(rng, "web", "prod", "dev")
		}
	}
	return l
}

// randomWebhook returns a webhook in its stored form: every field has its default.
func (w *webhooks) randomWebhook() *admissionregistrationv1.ValidatingWebhook {
	policy := admissionregistrationv1.MatchPolicyType(anyOf(w.rng, "Exact", "Equivalent", "Equivalent"))
	h := &admissionregistrationv1.ValidatingWebhook{Name: "random.example.com", MatchPolicy: &policy, NamespaceSelector: randomSelector(w.rng), ObjectSelector: randomSelector(w.rng)}
	for range 1 + w.rng.IntN(3) {
		h.Rules = append(h.Rules, w.randomRule())
	}
	return h
}

func (w *webhooks) randomRule() (r admissionregistrationv1.RuleWithOperations) {
	scope := admissionregistrationv1.ScopeType(anyOf(w.rng, "*", "*", "*", "Namespaced", "Cluster"))
	r.Scope = &scope
	for range 1 + w.rng.IntN(2) {
		r.Operations = append(r.Operations, admissionregistrationv1.OperationType(anyOf(w.rng, "*", "CREATE", "UPDATE", "DELETE", "CONNECT")))
	}
	for range 1 + w.rng.IntN(3) {
		p := w.paths[w.rng.IntN(len(w.paths))]
		r.APIGroups = append(r.APIGroups, p.resource.Group)
		r.APIVersions = append(r.APIVersions, p.resource.Version)
		plural, sub := p.resource.Resource, p.subresource
		r.Resources = append(r.Resources, anyOf(w.rng, plural+"/*", "*/*", "*/status", "*/scale", "*", plural, strings.TrimSuffix(plural+"/"+sub, "/"), strings.TrimSuffix("*/"+sub, "/")))
	}
	if w.rng.IntN(3) == 0 {
		r.APIGroups = append(r.APIGroups, "*")
	}
	if w.rng.IntN(3) == 0 {
		r.APIVersions = append(r.APIVersions, "*")
	}
	return r
}

func randomSelector(rng *rand.Rand) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	if rng.IntN(2) == 0 {
		return s
	}
	key, value := anyOf(rng, "app", "env"), anyOf(rng, "web", "prod", "dev")
	switch rng.IntN(16) {
	case 0: // such an object cannot be stored, so no request may be allowed because of it
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: key, Operator: "Like"}}
	case 1, 2, 3, 4, 5, 6:
		s.MatchLabels = map[string]string{key: value}
	case 7, 8, 9:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: key, Operator: "NotIn", Values: []string{value, "other"}}}
	case 10, 11:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: key, Operator: "In", Values: []string{value, "dev"}}}
	case 12, 13:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: key, Operator: "DoesNotExist"}}
	default:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: key, Operator: "Exists"}}
	}
	return s
}
