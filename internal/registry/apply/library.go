package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry/fieldset"
)

// typesKey is the key of the type among the data derived from a version.
type typesKey struct{}

// typesOf returns the type of the objects of a version.
func typesOf(v *resource.Version) *fieldset.Type {
	return v.Derived(typesKey{}, func() any {
		t := parseableType(v)
		return fieldset.TypeOf(t.Schema, t.TypeRef)
	}).(*fieldset.Type)
}

func parseableType(v *resource.Version) typed.ParseableType {
	model := v.Schema.Model()
	s, err := schemaconv.ToSchemaFromOpenAPI(model.Schemas, false)
	if err != nil {
		// Without a type, every field is managed as a whole.
		return typed.DeducedParseableType
	}
	return typed.ParseableType{Schema: s, TypeRef: smd.TypeRef{NamedType: &model.Name}}
}

// library returns the field manager of Kubernetes. ctx limits its conversions.
func (f *Fields) library(ctx context.Context) (*managedfields.FieldManager, error) {
	versions := &versions{ctx, f.definition}
	filters := map[fieldpath.APIVersion]fieldpath.Filter{}
	for _, of := range f.definition.Versions {
		if filter := f.kept.filter(); filter != nil {
			filters[fieldpath.APIVersion(f.definition.APIVersion(of.Name))] = filter
		}
	}
	// Results are in the written version, not in the storage version.
	manager, err := managedfields.NewDefaultCRDFieldManager(versions, versions, versions, versions, f.kind, f.kind.GroupVersion(), f.subresource, filters)
	if err != nil {
		return nil, fmt.Errorf("making a field manager for %s: %w", f.kind, err)
	}
	return manager, nil
}

// filter returns take as a filter of the field manager, or nil.
func (k kept) filter() fieldpath.Filter {
	switch {
	case len(k.except) > 0:
		set := fieldpath.NewSet()
		for _, name := range k.except {
			set.Insert(fieldpath.MakePathOrDie(name))
		}
		return fieldpath.NewExcludeSetFilter(set)
	case len(k.only) > 0:
		var matchers []*fieldpath.SetMatcher
		for _, path := range k.only {
			var parts []any
			for name := range strings.SplitSeq(path, ".") {
				if name == "*" {
					parts = append(parts, fieldpath.MatchAnyPathElement())
				} else {
					parts = append(parts, name)
				}
			}
			matchers = append(matchers, fieldpath.MakePrefixMatcherOrDie(parts...))
		}
		return fieldpath.NewIncludeMatcherFilter(matchers...)
	default:
		return nil
	}
}

func (f *Fields) applyByLibrary(ctx context.Context, old, wanted object.Tree, manager string, force bool) (object.Tree, error) {
	m, err := f.library(ctx)
	if err != nil {
		return nil, err
	}
	out, err := m.Apply(object.AccessorOf(object.CloneTree(old)), object.AccessorOf(object.CloneTree(wanted)), manager, force)
	if err != nil {
		return nil, err
	}
	return object.CloneTree(content(out)), nil
}

// content returns the tree of an object of a field manager.
func content(o runtime.Object) object.Tree { return unwrapped(o).Object }

// unwrapped returns an object in the form of the type converters.
func unwrapped(o runtime.Object) *unstructured.Unstructured {
	if a, ok := o.(object.Accessor); ok {
		return a.Unstructured
	}
	return o.(*unstructured.Unstructured)
}

// versions provides the field manager with the versions of a resource: types of objects, and
// conversion between versions.
type versions struct {
	ctx        context.Context // of the request: the interfaces of the field manager have no context
	definition *resource.Definition
}

// parseableKey is the key of the field manager's own type among the data derived from a version.
type parseableKey struct{}

func parseableOf(v *resource.Version) typed.ParseableType {
	return v.Derived(parseableKey{}, func() any { return parseableType(v) }).(typed.ParseableType)
}

func (v *versions) ObjectToTyped(o runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	kind := o.GetObjectKind().GroupVersionKind()
	version := v.definition.Version(kind.Version)
	if version == nil {
		return nil, runtime.NewNotRegisteredErrForKind("anykind", kind)
	}
	return parseableOf(version).FromUnstructured(content(o), opts...)
}

func (v *versions) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	t, ok := value.AsValue().Unstructured().(object.Tree)
	if !ok {
		return nil, fmt.Errorf("an object was expected, not %T", value.AsValue().Unstructured())
	}
	return object.AccessorOf(t), nil
}

func (v *versions) ConvertToVersion(o runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	from := o.GetObjectKind().GroupVersionKind()
	kind, ok := to.KindForGroupVersionKinds([]schema.GroupVersionKind{from})
	switch {
	case ok && kind.Version == from.Version:
		return o, nil
	case ok && v.definition.Version(kind.Version) != nil:
	case v.definition.Dialect.ForgetsOwners:
		return nil, runtime.NewNotRegisteredErrForKind("anykind", kind)
	case ok:
		return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", kind.GroupVersion())
	default:
		return nil, fmt.Errorf("%v is unstructured and is not suitable for converting to %q", from, to)
	}
	t, err := convert(v.ctx, v.definition, content(o), kind.Version)
	if err != nil {
		return nil, err
	}
	return object.AccessorOf(t), nil
}

// convert returns t in another version. It shares nothing with t.
func convert(ctx context.Context, d *resource.Definition, t object.Tree, version string) (object.Tree, error) {
	t = object.CloneTree(t)
	if d.Convert != nil {
		out, err := d.Convert(ctx, []map[string]any{t}, version)
		if err != nil {
			return nil, err
		}
		t = out[0]
	}
	t["apiVersion"] = d.APIVersion(version)
	return t, nil
}

func (*versions) Convert(in, out, context any) error {
	return errors.New("objects are converted by version")
}

func (*versions) ConvertFieldLabel(kind schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default does nothing: the schema sets defaults.
func (*versions) Default(runtime.Object) {}

// New returns an empty object of a kind.
func (v *versions) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	version := v.definition.Version(kind.Version)
	if version == nil {
		return nil, runtime.NewNotRegisteredErrForKind("anykind", kind)
	}
	return object.AccessorOf(empty(v.definition, version)), nil
}
