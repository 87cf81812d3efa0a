package registry_test

import (
	"context"
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/memkv"
)

type validator func(*registry.Admission)

func (v validator) Validate(_ context.Context, a *registry.Admission) error { v(a); return nil }

// As in Kubernetes, validating plugins see objects in their stored form.
func TestValidatorsSeeTheCanonicalForm(t *testing.T) {
	d := *items(true)
	d.Canonicalize = func(obj map[string]any) { object.Metadata(obj)["labels"] = object.Tree{"canonical": "yes"} }
	backend := memkv.New(memkv.Options{})
	var seen any
	r := registry.New(backend, caching(t, backend), registry.Options{Plugins: registry.Plugins{Validators: []registry.Validator{
		validator(func(a *registry.Admission) { seen = object.Metadata(a.Object)["labels"] }),
	}}})
	new := object.Tree{"apiVersion": "example.com/v1", "kind": "Item", "metadata": object.Tree{"name": "a"}}
	if _, err := r.Create(t.Context(), registry.StorageTarget(resource.New(d), "", "a"), registry.Given(new), registry.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if !object.Equal(seen, object.Tree{"canonical": "yes"}) {
		t.Errorf("the validator saw %v", seen)
	}
}
