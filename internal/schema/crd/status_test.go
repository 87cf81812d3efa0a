package crd_test

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A write of the status is validated only by its accepted names. Wrong values of other fields are
// corrected.
func TestStatusIsValidated(t *testing.T) {
	const label = "a DNS-1035 label must consist of lower case alphanumeric characters"
	type status = v1.CustomResourceDefinitionStatus
	for _, tt := range []struct {
		name   string
		change func(*status)
		want   []string // messages of the error; none for success
		stored string
	}{
		{"nothing", func(s *status) { *s = status{} }, nil, "v1"},
		{"no accepted names", func(s *status) { s.AcceptedNames = v1.CustomResourceDefinitionNames{} }, nil, "v1"},
		{"names of another", func(s *status) { s.AcceptedNames.Plural, s.AcceptedNames.Kind = "gadgets", "Gadget" }, nil, "v1"},
		{"plural", func(s *status) { s.AcceptedNames.Plural = "Foo_" },
			[]string{`status.acceptedNames.plural: Invalid value: "Foo_": ` + label}, ""},
		{"singular", func(s *status) { s.AcceptedNames.Singular = "-" },
			[]string{`status.acceptedNames.singular: Invalid value: "-": ` + label}, ""},
		{"kind", func(s *status) { s.AcceptedNames.Kind = "a_b" },
			[]string{`status.acceptedNames.kind: Invalid value: "a_b": may have mixed case, but should otherwise match: ` + label}, ""},
		{"kind and list kind", func(s *status) { s.AcceptedNames.ListKind = s.AcceptedNames.Kind },
			[]string{`status.acceptedNames.listKind: Invalid value: "Widget": kind and listKind may not be the same`}, ""},
		{"short names and categories", func(s *status) {
			s.AcceptedNames.ShortNames, s.AcceptedNames.Categories = []string{"a", "B"}, []string{"c_"}
		}, []string{`status.acceptedNames.shortNames[1]: Invalid value: "B": `, `status.acceptedNames.categories[0]: Invalid value: "c_": `}, ""},
		{"no stored version", func(s *status) { s.StoredVersions = nil }, nil, "v1"},
		{"a stored version twice", func(s *status) { s.StoredVersions = []string{"v1", "v1"} }, nil, "v1 v1"},
		{"a stored version that is not there", func(s *status) { s.StoredVersions = []string{"v0"} }, nil, "v0"},
		{"conditions of others", func(s *status) { s.Conditions = append(s.Conditions, condition("Shiny")) }, nil, "v1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t)
			before := s.define(widgets)
			after, err := s.change(before.Name, "status", func(c *v1.CustomResourceDefinition) { tt.change(&c.Status) })
			if len(tt.want) > 0 {
				if err == nil {
					t.Fatalf("accepted, want %q", tt.want)
				}
				for _, want := range tt.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("refused with %v, want %s", err, want)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(after.Status.StoredVersions, " "); got != tt.stored {
				t.Errorf("stored versions are %s, want %s", got, tt.stored)
			}
			if got, want := after.Status.AcceptedNames, before.Status.AcceptedNames; got.Plural != want.Plural || got.Kind != want.Kind {
				t.Errorf("accepted names are %+v, want %+v", got, want)
			}
		})
	}
}

func condition(kind string) v1.CustomResourceDefinitionCondition {
	return v1.CustomResourceDefinitionCondition{Type: v1.CustomResourceDefinitionConditionType(kind), Status: v1.ConditionTrue}
}

// A write of the status may set any storedVersions. The next write of the object itself is rejected
// while they are wrong; it also adds the storage version.
func TestStoredVersionsAreCheckedByTheNextWrite(t *testing.T) {
	s := start(t)
	name := s.define(widgets).Name
	say := func(versions ...string) {
		t.Helper()
		if _, err := s.change(name, "status", func(c *v1.CustomResourceDefinition) { c.Status.StoredVersions = versions }); err != nil {
			t.Fatal(err)
		}
	}
	label := func() (*v1.CustomResourceDefinition, error) {
		return s.change(name, "", func(c *v1.CustomResourceDefinition) { c.Labels = map[string]string{"a": "b"} })
	}
	say("v0")
	const want = `status.storedVersions[0]: Invalid value: "v0": missing from spec.versions; v0 was previously a storage version`
	if _, err := label(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("found %v, want %s", err, want)
	}
	say("v1")
	c, err := label()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Status.StoredVersions, []string{"v1"}) {
		t.Errorf("stored versions are %v", c.Status.StoredVersions)
	}
}
