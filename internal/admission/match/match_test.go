package match

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// schemaless is the schema of objects with arbitrary fields.
type schemaless struct{ resource.Schema }

func (schemaless) Prune(map[string]any) []string { return nil }

func version(name string, subresources ...string) *resource.Version {
	v := &resource.Version{Name: name, Served: true, Schema: schemaless{}}
	for _, s := range subresources {
		v.Subresources = append(v.Subresources, resource.Subresource{Name: s})
	}
	return v
}

// world returns a catalog of a few kinds, and the namespace prod.
func world(t testing.TB) (*resource.Catalog, *stored.Lister[corev1.Namespace]) {
	t.Helper()
	storage := func(v *resource.Version) *resource.Version { v.Storage = true; return v }
	old, now := version("v1alpha1"), storage(version("v1", "status", "scale"))
	now.Subresources[1].Kind = corev1.SchemeGroupVersion.WithKind("Scale")
	beta := version("v1beta1", "status")
	beta.Served = false
	set := resource.NewSet([]*resource.Definition{
		resource.New(resource.Definition{Plural: "namespaces", Kind: "Namespace", StoragePrefix: "/registry/namespaces/", Versions: []*resource.Version{storage(version("v1", "status"))}}),
		resource.New(resource.Definition{Plural: "pods", Kind: "Pod", Namespaced: true, StoragePrefix: "/registry/pods/", Versions: []*resource.Version{storage(version("v1", "status", "exec"))}}),
		resource.New(resource.Definition{Plural: "events", Kind: "Event", Namespaced: true, StoragePrefix: "/registry/events/", GroupPriority: 2, Versions: []*resource.Version{storage(version("v1"))}}),
		resource.New(resource.Definition{Group: "events.k8s.io", Plural: "events", Kind: "Event", Namespaced: true, StoragePrefix: "/registry/events/", Versions: []*resource.Version{storage(version("v1"))}}),
		resource.New(resource.Definition{Group: "example.com", Plural: "widgets", Kind: "Widget", Namespaced: true, UID: "1", StoragePrefix: "/registry/example.com/widgets/",
			Versions: []*resource.Version{now, beta, old}, Order: []*resource.Version{old, beta, now}}),
	})
	catalog := &resource.Catalog{}
	catalog.Swap(set)
	backend := memkv.New(memkv.Options{})
	cache := watchcache.New(backend, watchcache.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- cache.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	prod := []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"prod","labels":{"env":"prod"}}}`)
	revision, err := backend.Commit(ctx, kv.Write{Key: "/registry/namespaces/prod", Value: prod})
	if err != nil {
		t.Fatal(err)
	}
	if err := cache.Wait(ctx, revision); err != nil {
		t.Fatal(err)
	}
	return catalog, stored.List[corev1.Namespace](cache, set, corev1.Resource("namespaces"))
}

// admission parses a write such as "CREATE v1 pods/exec prod/name".
func admission(t testing.TB, catalog *resource.Catalog, line string) *registry.Admission {
	t.Helper()
	words := strings.Fields(line)
	groupVersion, v := "", words[1]
	if i := strings.IndexByte(v, '/'); i > 0 {
		groupVersion, v = v[:i], v[i+1:]
	}
	plural, subresource, _ := strings.Cut(words[2], "/")
	d := catalog.Set().Lookup(groupVersion, plural)
	a := &registry.Admission{Operation: registry.Operation(words[0]), Target: registry.Target{Definition: d, Version: d.Version(v), Subresource: subresource}}
	a.Target.Namespace, a.Target.Name, _ = strings.Cut(words[3], "/")
	if !d.Namespaced {
		a.Target.Namespace, a.Target.Name = "", words[3]
	}
	a.Object = object.Tree{"apiVersion": d.APIVersion(v), "kind": d.Kind, "metadata": map[string]any{"name": a.Target.Name, "labels": map[string]any{"app": "web"}}}
	return a
}

func TestMatch(t *testing.T) {
	tests := []struct {
		name, criteria string // MatchResources
		yes, no        string // writes, one a line
		forms          string // of yes, if not the requested form
		err            string // of yes
	}{
		{name: "one resource, one operation", criteria: "resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}]",
			yes: "CREATE v1 pods prod/a",
			no:  "UPDATE v1 pods prod/a\nCREATE v1 pods/exec prod/a\nCREATE v1 events prod/a\nCREATE example.com/v1 widgets prod/a"},
		{name: "all of everything", criteria: "resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*']}]",
			yes: "CREATE v1 pods prod/a\nCONNECT v1 pods/exec prod/a\nDELETE example.com/v1alpha1 widgets prod/a\nUPDATE v1 namespaces prod"},
		{name: "a star has no subresources", criteria: "resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}]",
			yes: "CREATE v1 pods prod/a", no: "CONNECT v1 pods/exec prod/a"},
		{name: "all of one kind", criteria: "resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['pods/*']}]",
			yes: "CREATE v1 pods prod/a\nCONNECT v1 pods/exec prod/a", no: "UPDATE example.com/v1 widgets/status prod/a"},
		{name: "one subresource of all kinds", criteria: "resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/status']}]",
			yes: "UPDATE v1 pods/status prod/a\nUPDATE example.com/v1 widgets/status prod/a", no: "UPDATE v1 pods prod/a"},
		{name: "in namespaces", criteria: "resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], scope: Namespaced}]",
			yes: "UPDATE v1 pods prod/a", no: "UPDATE v1 namespaces prod"},
		{name: "of the cluster", criteria: "resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], scope: Cluster}]",
			yes: "UPDATE v1 namespaces prod", no: "UPDATE v1 pods prod/a"},
		{name: "names", criteria: "resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: [pods], resourceNames: [a, b]}]",
			yes: "UPDATE v1 pods prod/a", no: "UPDATE v1 pods prod/c"},
		{name: "exactly one version", criteria: "matchPolicy: Exact\nresourceRules: [{operations: ['*'], apiGroups: [example.com], apiVersions: [v1], resources: [widgets]}]",
			yes: "UPDATE example.com/v1 widgets prod/a", no: "UPDATE example.com/v1alpha1 widgets prod/a"},
		{name: "a version like it", criteria: "matchPolicy: Equivalent\nresourceRules: [{operations: ['*'], apiGroups: [example.com], apiVersions: [v1], resources: [widgets]}]",
			yes: "UPDATE example.com/v1alpha1 widgets prod/a", forms: "example.com/v1 Widget"},
		{name: "the first that the definition lists", criteria: "matchPolicy: Equivalent\nresourceRules: [{operations: ['*'], apiGroups: [example.com], apiVersions: [v1beta1, v1alpha1], resources: [widgets]}]",
			yes: "UPDATE example.com/v1 widgets prod/a", forms: "example.com/v1alpha1 Widget"},
		{name: "the first rule comes before that", criteria: "matchPolicy: Equivalent\nresourceRules:\n- {operations: ['*'], apiGroups: [example.com], apiVersions: [v1beta1], resources: [widgets]}\n- {operations: ['*'], apiGroups: [example.com], apiVersions: [v1alpha1], resources: [widgets]}",
			yes: "UPDATE example.com/v1 widgets prod/a", forms: "example.com/v1beta1 Widget"},
		{name: "only versions that have the subresource", criteria: "matchPolicy: Equivalent\nresourceRules: [{operations: ['*'], apiGroups: [example.com], apiVersions: [v1alpha1, v1beta1], resources: ['*/status']}]",
			yes: "UPDATE example.com/v1 widgets/status prod/a", forms: "example.com/v1beta1 Widget"},
		{name: "the kind of a subresource", criteria: "resourceRules: [{operations: ['*'], apiGroups: [example.com], apiVersions: [v1], resources: ['*/scale']}]",
			yes: "UPDATE example.com/v1 widgets/scale prod/a", forms: "v1 Scale"},
		{name: "another group", criteria: "matchPolicy: Equivalent\nresourceRules: [{operations: ['*'], apiGroups: [events.k8s.io], apiVersions: [v1], resources: [events]}]",
			yes: "CREATE v1 events prod/a", forms: "events.k8s.io/v1 Event"},
		{name: "what is excluded", criteria: "resourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}]\nexcludeResourceRules: [{operations: [DELETE], apiGroups: [''], apiVersions: [v1], resources: [pods], resourceNames: [a]}]",
			yes: "CREATE v1 pods prod/a\nDELETE v1 pods prod/b", no: "DELETE v1 pods prod/a"},
		{name: "what is like what is excluded", criteria: "matchPolicy: Equivalent\nresourceRules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}]\nexcludeResourceRules: [{operations: ['*'], apiGroups: [events.k8s.io], apiVersions: [v1], resources: [events]}]",
			no: "CREATE v1 events prod/a"},
		{name: "without rules", criteria: "matchPolicy: Equivalent", yes: "CREATE v1 pods prod/a\nCONNECT v1 pods/exec prod/a"},
		{name: "the namespace", criteria: "namespaceSelector: {matchLabels: {env: prod}}",
			yes: "CREATE v1 pods prod/a\nDELETE v1 namespaces prod", no: "CREATE v1 namespaces prod"},
		{name: "the namespace has to be there", criteria: "namespaceSelector: {matchLabels: {env: prod}}",
			yes: "CREATE v1 pods dev/a", err: `namespaces "dev" not found`},
		{name: "a new namespace has the labels that it gets", criteria: "namespaceSelector: {matchLabels: {app: web}}",
			yes: "CREATE v1 namespaces dev\nUPDATE v1 namespaces prod", no: "DELETE v1 namespaces prod\nUPDATE v1 namespaces/status prod"},
		{name: "the object", criteria: "objectSelector: {matchLabels: {app: web}}", yes: "CREATE v1 pods prod/a"},
		{name: "another object", criteria: "objectSelector: {matchLabels: {app: api}}", no: "CREATE v1 pods prod/a"},
		{name: "a selector with an unknown operator", criteria: "objectSelector: {matchExpressions: [{key: a, operator: Like}]}",
			yes: "CREATE v1 pods prod/a", err: `Internal error occurred: "Like" is not a valid label selector operator`},
		{name: "which does not matter", criteria: "objectSelector: {matchExpressions: [{key: a, operator: Like}]}\nnamespaceSelector: {matchLabels: {env: dev}}",
			no: "CREATE v1 pods prod/a"},
	}
	catalog, namespaces := world(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var resources admissionv1.MatchResources
			if err := yaml.UnmarshalStrict([]byte(test.criteria), &resources); err != nil {
				t.Fatal(err)
			}
			var x Index[string]
			x.Replace([]Entry[string]{{Criteria: ByResources(&resources), Of: "it"}})
			for line := range strings.Lines(test.yes) {
				a := admission(t, catalog, line)
				form, err := find(t, &x, catalog, namespaces, a)
				switch {
				case test.err != "":
					if err == nil || !strings.Contains(err.Error(), test.err) {
						t.Errorf("%s: error %v, want %s", line, err, test.err)
					}
				case err != nil || form == nil:
					t.Errorf("%s: does not match: %v", line, err)
				case test.forms != "" && shown(form) != test.forms:
					t.Errorf("%s: as %s, want %s", line, shown(form), test.forms)
				case test.forms == "" && (form.Kind.Kind != a.Target.Definition.Kind || form.Version != a.Target.Version):
					t.Errorf("%s: as %s", line, shown(form))
				}
			}
			for line := range strings.Lines(test.no) {
				if form, err := find(t, &x, catalog, namespaces, admission(t, catalog, line)); err != nil || form != nil {
					t.Errorf("%s: matches, or %v", line, err)
				}
			}
		})
	}
}

func shown(f *Form) string { return f.Kind.GroupVersion().String() + " " + f.Kind.Kind }

func find(t *testing.T, x *Index[string], catalog *resource.Catalog, namespaces *stored.Lister[corev1.Namespace], a *registry.Admission) (*Form, error) {
	t.Helper()
	found := x.Find(catalog, a)
	if again := x.Find(catalog, a); len(again) != len(found) {
		t.Errorf("found %d, and then %d", len(found), len(again))
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found[0].Match(t.Context(), NewWrite(a, namespaces))
}

// A webhook without rules is never called. Others are called in their order. Replace drops cached
// answers.
func TestIndex(t *testing.T) {
	catalog, _ := world(t)
	entry := func(of string, resources ...string) Entry[string] {
		var rules []admissionv1.RuleWithOperations
		for _, r := range resources {
			rules = append(rules, admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{"*"},
				Rule: admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{r}}})
		}
		return Entry[string]{Criteria: ByRules(rules, nil, nil, nil), Of: of}
	}
	var x Index[string]
	who := func(line string) (all string) {
		for _, c := range x.Find(catalog, admission(t, catalog, line)) {
			all += c.Of
		}
		return all
	}
	if !x.Empty() || who("CREATE v1 pods prod/a") != "" {
		t.Error("an empty Index has something")
	}
	x.Replace([]Entry[string]{entry("a", "pods"), entry("b"), entry("c", "widgets", "*"), entry("d", "*/exec")})
	for range 2 {
		for line, want := range map[string]string{"CREATE v1 pods prod/a": "ac", "CREATE v1 events prod/a": "c", "CONNECT v1 pods/exec prod/a": "d"} {
			if got := who(line); got != want {
				t.Errorf("%s: %s, want %s", line, got, want)
			}
		}
	}
	x.Replace([]Entry[string]{entry("e", "pods")})
	if got := who("CREATE v1 pods prod/a"); got != "e" {
		t.Errorf("found %s after it was replaced", got)
	}
	if x.Replace(nil); !x.Empty() || who("CREATE v1 pods prod/a") != "" {
		t.Error("an Index that was emptied has something")
	}
}

// A write that matches nothing does not allocate, with any number of entries.
func TestNothingMatches(t *testing.T) {
	catalog, _ := world(t)
	var x Index[int]
	a := admission(t, catalog, "CREATE v1 pods prod/a")
	for _, n := range []int{0, 1, 100} {
		var entries []Entry[int]
		for i := range n {
			entries = append(entries, Entry[int]{ByRules([]admissionv1.RuleWithOperations{{Rule: admissionv1.Rule{Resources: []string{fmt.Sprint(i)}}}}, nil, nil, nil), i})
		}
		x.Replace(entries)
		if allocated := testing.AllocsPerRun(100, func() {
			if len(x.Find(catalog, a)) > 0 {
				t.Error("found one")
			}
		}); allocated > 0 {
			t.Errorf("%v allocations for %d", allocated, n)
		}
	}
}

// A change in one form is visible in all others.
func TestViews(t *testing.T) {
	catalog, namespaces := world(t)
	d := catalog.Set().Lookup("example.com", "widgets")
	conversions := 0
	d.Convert = func(_ context.Context, objs []map[string]any, version string) ([]map[string]any, error) {
		conversions++
		for _, o := range objs {
			o["apiVersion"], o["through"] = d.APIVersion(version), fmt.Sprint(o["through"], version)
		}
		return objs, nil
	}
	a := admission(t, catalog, "UPDATE example.com/v1 widgets prod/a")
	a.Object["through"] = ""
	w := NewWrite(a, namespaces)
	forms := forms(catalog.Set(), d, a.Target.Version, "")
	view := func(i int, want string) *View {
		t.Helper()
		v, err := w.View(t.Context(), forms[i])
		if err != nil || v.Object["through"] != want || object.APIVersion(v.Object) != forms[i].Resource.GroupVersion().String() {
			t.Fatalf("%v, %v; want what went through %q", v, err, want)
		}
		return v
	}
	view(0, "")
	view(1, "v1alpha1")
	view(1, "v1alpha1")
	if conversions != 1 {
		t.Errorf("%d conversions", conversions)
	}
	changed := object.CloneTree(view(1, "v1alpha1").Object)
	changed["through"] = "changed "
	w.Change(view(1, "v1alpha1"), changed)
	view(1, "changed ")
	if a.Object["through"] != "" {
		t.Error("the object changed before a request for another version")
	}
	view(2, "changed v1v1beta1")
	if err := w.ConvertBack(t.Context()); err != nil || !a.Changed || a.Object["through"] != "changed v1" {
		t.Errorf("%v, %v", a.Object, err)
	}
}

func BenchmarkFind(b *testing.B) {
	catalog, _ := world(b)
	var x Index[int]
	var entries []Entry[int]
	for i := range 100 {
		entries = append(entries, Entry[int]{ByRules([]admissionv1.RuleWithOperations{{Rule: admissionv1.Rule{Resources: []string{fmt.Sprint(i)}}}}, nil, nil, nil), i})
	}
	x.Replace(entries)
	a := admission(b, catalog, "CREATE v1 pods prod/a")
	for b.Loop() {
		x.Find(catalog, a)
	}
}
