package apply

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// Configuration merges an apply configuration into t, an object of a version. Unlike server-side
// apply, it records no manager and removes nothing. It must not replace an atomic list or map. The
// result may share parts with both.
func Configuration(v *resource.Version, t, configuration object.Tree) (object.Tree, error) {
	of := parseableOf(v)
	wanted, err := of.FromUnstructured(configuration)
	if err != nil {
		return nil, fmt.Errorf("failed to convert patch object to typed object: %w", err)
	}
	if whole := atomics(nil, wanted.Schema(), wanted.TypeRef(), wanted.AsValue()); len(whole) > 0 {
		slices.Sort(whole)
		return nil, fmt.Errorf("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %v", strings.Join(whole, ", "))
	}
	live, err := of.FromUnstructured(t, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("failed to convert original object to typed object: %w", err)
	}
	merged, err := live.Merge(wanted)
	if err != nil {
		return nil, fmt.Errorf("failed to merge patch: %w", err)
	}
	out, ok := merged.AsValue().Unstructured().(object.Tree)
	if !ok {
		return nil, fmt.Errorf("failed to convert typed object to object: an object was expected, not %T", merged.AsValue().Unstructured())
	}
	return out, nil
}

// atomics returns the paths of the atomic lists and maps in a value.
func atomics(path fieldpath.Path, s *smd.Schema, ref smd.TypeRef, v value.Value) (found []string) {
	a, ok := s.Resolve(ref)
	if !ok {
		return nil
	}
	if v.IsMap() && a.Map != nil {
		if a.Map.ElementRelationship == smd.Atomic {
			found = append(found, path.String())
		}
		v.AsMap().Iterate(func(key string, below value.Value) bool {
			if field, ok := a.Map.FindField(key); ok {
				found = append(found, atomics(append(path, fieldpath.PathElement{FieldName: &key}), s, field.Type, below)...)
			}
			return true
		})
	}
	if v.IsList() && a.List != nil {
		if a.List.ElementRelationship == smd.Atomic {
			found = append(found, path.String())
		}
		list := v.AsList()
		for i := range list.Length() {
			found = append(found, atomics(append(path, fieldpath.PathElement{Index: &i}), s, a.List.ElementType, list.At(i))...)
		}
	}
	return found
}
