package crd_test

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/crd"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

func TestKindIsServedWhenCreateReturns(t *testing.T) {
	s := start(t)
	got := s.define(widgets)
	want := `widgets widget Widget WidgetList [wd]
NamesAccepted=True NoConflicts: no conflicts found
Established=True InitialNamesAccepted: the initial names have been accepted`
	if summary(got) != want {
		t.Errorf("the created object says\n%s\nwant\n%s", summary(got), want)
	}
	if v := got.Status.StoredVersions; len(v) != 1 || v[0] != "v1" {
		t.Errorf("storedVersions = %v, want [v1]", v)
	}
	if c := got.Spec.Conversion; c == nil || c.Strategy != v1.NoneConverter {
		t.Errorf("conversion = %+v, want the default None", c)
	}
	made, err := s.try(s.target("example.com", "widgets", "", ""), widget)
	if err != nil {
		t.Fatal(err)
	}
	if spec := made["spec"].(object.Tree); spec["size"] != int64(3) || spec["colour"] != nil {
		t.Errorf("spec = %v, want it pruned by the schema", spec)
	}
}

// A definition in a version of a group with built-in kinds is accepted and established, but not
// served. Other versions of the group are available.
func TestVersionsOfBuiltInKindsAreTheirs(t *testing.T) {
	store := memkv.New(memkv.Options{})
	t.Cleanup(func() { store.Close() })
	gears := resource.New(resource.Definition{
		Group: "example.com", Plural: "gears", Kind: "Gear", StoragePrefix: resource.BuiltInPrefix("gears"),
		Versions: []*resource.Version{{Name: "v1", Served: true, Storage: true}, {Name: "v2"}},
	})
	s := startWith(t, store, crd.Options{BuiltIn: []*resource.Definition{gears}})
	if got := summary(s.define(widgets)); !strings.Contains(got, "Established=True") {
		t.Errorf("the definition says\n%s", got)
	}
	s.define(strings.NewReplacer("widget", "gadget", "Widget", "Gadget", "wd", "gd", "name: v1", "name: v2").Replace(widgets))
	s.define(strings.NewReplacer("example.com", "apiextensions.k8s.io", "metadata: {", "metadata: {annotations: {api-approved.kubernetes.io: unapproved}, ").Replace(widgets)) // beside definitions themselves
	for kind, want := range map[string]bool{"gears.example.com": true, "widgets.example.com": false, "gadgets.example.com": true, "widgets.apiextensions.k8s.io": false} {
		plural, group, _ := strings.Cut(kind, ".")
		if got := s.catalog.Set().Lookup(group, plural).Versions[0].Served; got != want {
			t.Errorf("%s are served: %v, want %v", kind, got, want)
		}
	}
}

func TestFirstComeFirstServed(t *testing.T) {
	s := start(t)
	s.define(widgets)
	loser := s.define(gadgets)
	want := `gadgets gadget Gadget GadgetList []
NamesAccepted=False ShortNamesConflict: "wd" is already in use
Established=False NotAccepted: not all names are accepted`
	if summary(loser) != want {
		t.Errorf("the loser says\n%s\nwant\n%s", summary(loser), want)
	}
	if s.catalog.Set().Lookup("example.com", "gadgets") != nil {
		t.Error("a kind that did not get its names is served")
	}

	// The names are free again, and the rejected definition gets them.
	s.delete(s.crds("widgets.example.com"))
	s.eventually("gadgets.example.com", "the loser gets its names", func(c *v1.CustomResourceDefinition) bool {
		return strings.Contains(summary(c), "Established=True")
	})
	s.target("example.com", "gadgets", "", "")
}

func TestNamesAreGivenBackByAnUpdate(t *testing.T) {
	s := start(t)
	s.define(widgets)
	s.define(gadgets)
	_, err := s.change("widgets.example.com", "", func(c *v1.CustomResourceDefinition) { c.Spec.Names.ShortNames = nil })
	if err != nil {
		t.Fatal(err)
	}
	s.eventually("gadgets.example.com", "the loser gets its names", func(c *v1.CustomResourceDefinition) bool {
		return strings.Contains(summary(c), "Established=True")
	})
}

// Of several definitions that wait for a name, the first to wait gets it, in any order of their names.
func TestNamesGoToWhoWaitedLongest(t *testing.T) {
	s := start(t)
	s.define(widgets)
	for _, plural := range []string{"zebras", "apes", "mice"} {
		s.define(strings.NewReplacer("gadgets", plural, "kind: Gadget", "kind: Widget").Replace(gadgets))
	}
	s.delete(s.crds("widgets.example.com"))
	s.eventually("zebras.example.com", "the first one gets the kind", func(c *v1.CustomResourceDefinition) bool {
		return c.Status.AcceptedNames.Kind == "Widget"
	})
	for _, plural := range []string{"apes", "mice"} {
		if kind := s.stored(plural + ".example.com").Status.AcceptedNames.Kind; kind != "" {
			t.Errorf("%s have the kind %s", plural, kind)
		}
	}
}

// A served Definition stays the same, with all derived data, until its spec changes.
func TestDefinitionLivesAsLongAsItsSpec(t *testing.T) {
	s := start(t)
	s.define(widgets)
	first := s.target("example.com", "widgets", "", "").Definition

	if _, err := s.change("widgets.example.com", "", func(c *v1.CustomResourceDefinition) {
		c.Labels = map[string]string{"a": "b"}
	}); err != nil {
		t.Fatal(err)
	}
	if s.target("example.com", "widgets", "", "").Definition != first {
		t.Error("a new label made a new Definition")
	}
	if guard, _ := s.registrar.Source(first); guard.Revision != s.revision("widgets.example.com") {
		t.Error("the guard did not follow the object")
	}

	updated, err := s.change("widgets.example.com", "", func(c *v1.CustomResourceDefinition) {
		second := *c.Spec.Versions[0].DeepCopy()
		second.Name, c.Spec.Versions[0].Storage = "v2", false
		c.Spec.Versions = append(c.Spec.Versions, second)
	})
	if err != nil {
		t.Fatal(err)
	}
	if v := strings.Join(updated.Status.StoredVersions, " "); v != "v1 v2" {
		t.Errorf("storedVersions = %s, want v1 v2", v)
	}
	second := s.target("example.com", "widgets", "", "").Definition
	if second == first || second.StorageVersion().Name != "v2" {
		t.Errorf("the new version is not served: storage version is %s", second.StorageVersion().Name)
	}
	select {
	case <-s.catalog.Retired(first):
	default:
		t.Error("the old Definition is not retired")
	}
	// A write that was checked against the old Definition does not go through.
	if _, err := s.try(registry.StorageTarget(first, "", ""), widget); !errors.Is(err, registry.ErrStale) {
		t.Errorf("create with the old Definition: %v, want ErrStale", err)
	}
}

func TestRestart(t *testing.T) {
	s := start(t)
	s.define(widgets)
	s.define(gadgets)
	s.stop()
	for key, value := range map[string]string{
		"broken.example.com": `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"broken.example.com"},"spec":7}`,
		"cut.example.com":    `{"metadata":{"name":"cut.e`,
		// Written by a server that decides no names.
		"fresh.example.org": `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"fresh.example.org","uid":"1"},"spec":{"group":"example.org","scope":"Cluster","names":{"plural":"fresh","kind":"Fresh","singular":"fresh","listKind":"FreshList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`,
	} {
		if _, err := s.store.Commit(s.ctx(), kv.Write{Key: crd.Prefix + key, Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}

	s = startOver(t, s.store)
	s.target("example.com", "widgets", "", "")
	s.eventually("fresh.example.org", "served", func(c *v1.CustomResourceDefinition) bool {
		return strings.Contains(summary(c), "Established=True")
	})
	s.target("example.org", "fresh", "", "")
	s.stop()
	for _, name := range []string{"broken.example.com", "cut.example.com"} {
		if !strings.Contains(s.log.String(), name) {
			t.Errorf("nothing was logged about %s:\n%s", name, s.log)
		}
	}
}

// An undecodable definition can be deleted.
func TestUnreadableCanBeDeleted(t *testing.T) {
	s := start(t)
	key := crd.Prefix + "cut.example.com"
	if _, err := s.store.Commit(s.ctx(), kv.Write{Key: key, Value: []byte(`{"metadata":{"name":"cut.e`)}); err != nil {
		t.Fatal(err)
	}
	s.fresh()
	if _, err := s.objects.Delete(s.ctx(), s.crds("cut.example.com"), &metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: new(true)}, registry.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Get(s.ctx(), key, kv.Latest); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("get: %v, want it gone", err)
	}
}

func TestStatusWritesCannotUndoWhatWasDecided(t *testing.T) {
	s := start(t)
	s.define(widgets)
	got, err := s.change("widgets.example.com", "status", func(c *v1.CustomResourceDefinition) {
		c.Spec.Names.Kind = "Other" // a write of the status does not change it
		c.Status.AcceptedNames.ShortNames = nil
		c.Status.Conditions = append(c.Status.Conditions, v1.CustomResourceDefinitionCondition{
			Type: "Mine", Status: "True", LastTransitionTime: metav1.Now(), Reason: "R", Message: "M",
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `widgets widget Widget WidgetList [wd]
NamesAccepted=True NoConflicts: no conflicts found
Established=True InitialNamesAccepted: the initial names have been accepted
Mine=True R: M`
	if summary(got) != want || got.Spec.Names.Kind != "Widget" {
		t.Errorf("kind %s, status\n%s\nwant\n%s", got.Spec.Names.Kind, summary(got), want)
	}
}

func TestNothingChangesNothingIsWritten(t *testing.T) {
	s := start(t)
	s.define(widgets)
	before := s.revision("widgets.example.com")
	if _, err := s.change("widgets.example.com", "", func(*v1.CustomResourceDefinition) {}); err != nil {
		t.Fatal(err)
	}
	if after := s.revision("widgets.example.com"); after != before {
		t.Errorf("an update without a change moved the object from revision %d to %d", before, after)
	}
}

func TestUpdateIsValidated(t *testing.T) {
	s := start(t)
	s.define(widgets)
	_, err := s.change("widgets.example.com", "", func(c *v1.CustomResourceDefinition) {
		c.Spec.Scope, c.Spec.Names.Kind = v1.ClusterScoped, "Other"
		c.Spec.Versions[0].Name = "v2"
	})
	for _, want := range []string{
		`spec.scope: Invalid value: "Cluster": field is immutable`,
		`spec.names.kind: Invalid value: "Other": field is immutable`,
		`status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version`,
	} {
		if !status.Is(err, metav1.StatusReasonInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("update: %v\nwant %s", err, want)
		}
	}
}

func (s *server) revision(name string) int64 {
	s.Helper()
	s.fresh()
	o, err := s.cache.Resource(crd.Prefix).Get(s.ctx(), crd.Prefix+name)
	if err != nil || o == nil {
		s.Fatal(o, err)
	}
	return o.Revision
}
