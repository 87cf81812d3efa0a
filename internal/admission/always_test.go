package admission

import (
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
)

// AlwaysDeny names the object in its error, or the resource if there is no name. AlwaysAdmit
// rejects nothing.
func TestAlways(t *testing.T) {
	d := resource.New(resource.Definition{Plural: "pods", Kind: "Pod"})
	const why = "is forbidden: admission control is denying all modifications"
	for name, a := range map[string]*registry.Admission{
		`pods "a" ` + why:       {Target: registry.Target{Definition: d, Name: "a"}},
		`pods "b" ` + why:       {Target: registry.Target{Definition: d}, Object: object.Tree{"metadata": object.Tree{"name": "b", "generateName": "c-"}}},
		`pods "c-" ` + why:      {Target: registry.Target{Definition: d}, Object: object.Tree{"metadata": object.Tree{"generateName": "c-"}}},
		`pods "Unknown" ` + why: {Target: registry.Target{Definition: d}},
	} {
		if err := (AlwaysDeny{}).Mutate(t.Context(), a); errorText(err) != name || errorText(a.Forbidden(err)) != name {
			t.Errorf("%v, want %s", err, name)
		}
		if err := (AlwaysAdmit{}).Validate(t.Context(), a); err != nil {
			t.Error(err)
		}
	}
}
