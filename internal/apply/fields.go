package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// Fields keeps account of who owns which fields of the objects of one version,
// in metadata.managedFields, and merges what an owner applies.
type Fields struct {
	manager *managedfields.FieldManager
	kind    schema.GroupVersionKind
	empty   object.Tree // what every object of the kind has from the start

	definition *resource.Definition
}

// fieldsKey is where the Fields of a subresource are kept with their version.
type fieldsKey struct{ subresource string }

// made is what became of making Fields.
type made struct {
	fields *Fields
	err    error
}

// FieldsOf returns the Fields for writes to version v of d through a
// subresource, or "" for the resource itself. They are made when first needed.
func FieldsOf(d *resource.Definition, v *resource.Version, subresource string) (*Fields, error) {
	m := v.Derived(fieldsKey{subresource}, func() any {
		fields, err := newFields(d, v, subresource)
		return made{fields, err}
	}).(made)
	return m.fields, m.err
}

func newFields(d *resource.Definition, v *resource.Version, subresource string) (*Fields, error) {
	versions := &versions{d}
	filter := fieldpath.Filter(nil)
	if s := v.Subresource(subresource); s == nil {
		filter = except(v.Reset)
	} else {
		filter = only(s.Sets)
	}
	// What is kept from a writer is so in every version: nobody loses what they own
	// in another one because of a write that does not touch it.
	filters := map[fieldpath.APIVersion]fieldpath.Filter{}
	for _, of := range d.Versions {
		if filter != nil {
			filters[fieldpath.APIVersion(d.APIVersion(of.Name))] = filter
		}
	}
	kind := d.GroupVersionKind(v.Name)
	// What comes back is in the version that is written, whichever is stored.
	manager, err := managedfields.NewDefaultCRDFieldManager(versions, versions, versions, versions, kind, kind.GroupVersion(), subresource, filters)
	if err != nil {
		return nil, fmt.Errorf("making a field manager for %s: %w", kind, err)
	}
	return &Fields{manager: manager, kind: kind, empty: empty(d, v), definition: d}, nil
}

// except returns what leaves the outermost fields of these names out, or nil.
func except(names []string) fieldpath.Filter {
	if len(names) == 0 {
		return nil
	}
	set := fieldpath.NewSet()
	for _, name := range names {
		set.Insert(fieldpath.MakePathOrDie(name))
	}
	return fieldpath.NewExcludeSetFilter(set)
}

// only returns what leaves all but the outermost fields of these names out, or nil.
func only(names []string) fieldpath.Filter {
	if len(names) == 0 {
		return nil
	}
	var matchers []*fieldpath.SetMatcher
	for _, name := range names {
		matchers = append(matchers, fieldpath.MakePrefixMatcherOrDie(name))
	}
	return fieldpath.NewIncludeMatcherFilter(matchers...)
}

// empty returns an object of which nobody owns anything. Where the kind has a Go
// type, that is what the type writes of an empty value.
func empty(d *resource.Definition, v *resource.Version) object.Tree {
	t := object.Tree{}
	if v.New != nil {
		// What is written of a type can be read.
		if data, err := json.Marshal(v.New()); err == nil {
			_ = kjson.UnmarshalCaseSensitivePreserveInts(data, &t)
		}
	}
	t["apiVersion"], t["kind"], t["metadata"] = d.APIVersion(v.Name), d.Kind, object.Tree{}
	return t
}

// Update records in t that manager has made t of old, which is nil for a new
// object. It changes t and returns the result. What is not of the kind at all
// is left for others to refuse.
func (f *Fields) Update(old, t object.Tree, manager string) object.Tree {
	if apiVersion, kind := f.kind.ToAPIVersionAndKind(); object.APIVersion(t) != apiVersion || object.Kind(t) != kind {
		return t
	}
	if old == nil {
		old = object.CloneTree(f.empty)
	}
	old, t = f.adopt(old), f.adopt(t)
	out, err := f.manager.Update(object.AccessorOf(old), object.AccessorOf(t), manager)
	if err != nil {
		// What does not fit its schema cannot be accounted for, and is about to be
		// refused. Nobody loses what was accounted for before.
		metadata := object.Metadata(t)
		delete(metadata, "managedFields")
		if list, ok := object.Metadata(old)["managedFields"]; ok {
			metadata["managedFields"] = object.Clone(list)
		}
		return t
	}
	return content(out)
}

// content is the tree of what a field manager returns.
func content(o runtime.Object) object.Tree { return plain(o).Object }

// plain is an object as the type converters know it.
func plain(o runtime.Object) *unstructured.Unstructured {
	if a, ok := o.(object.Accessor); ok {
		return a.Unstructured
	}
	return o.(*unstructured.Unstructured)
}

// Apply returns old, which is nil for a new object, with what manager wants of
// it. What another manager owns and has otherwise is a conflict, unless force
// takes it over.
func (f *Fields) Apply(old, wanted object.Tree, manager string, force bool) (object.Tree, error) {
	if old == nil {
		old = object.CloneTree(f.empty)
	}
	out, err := f.manager.Apply(
		object.AccessorOf(object.CloneTree(f.adopt(old))), object.AccessorOf(object.CloneTree(wanted)), manager, force)
	if err != nil {
		return nil, err
	}
	return object.CloneTree(content(out)), nil
}

// versions is what the field manager needs to know of all versions of a
// resource: how to type an object, and how to bring it from one into another.
type versions struct{ definition *resource.Definition }

// typesKey is where the types of a version are kept with it.
type typesKey struct{}

type types struct{ managedfields.TypeConverter }

func (v *versions) typesOf(o runtime.Object) (managedfields.TypeConverter, error) {
	name := o.GetObjectKind().GroupVersionKind().Version
	version := v.definition.Version(name)
	if version == nil {
		return nil, runtime.NewNotRegisteredErrForKind("anykind", o.GetObjectKind().GroupVersionKind())
	}
	t := version.Derived(typesKey{}, func() any {
		converter, err := managedfields.NewTypeConverter(version.Schema.Model().Schemas, false)
		if err != nil {
			// A schema that cannot be typed leaves every field to be owned as a
			// whole.
			converter = managedfields.NewDeducedTypeConverter()
		}
		return types{converter}
	}).(types)
	return t.TypeConverter, nil
}

func (v *versions) ObjectToTyped(o runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	t, err := v.typesOf(o)
	if err != nil {
		return nil, err
	}
	return t.ObjectToTyped(plain(o), opts...)
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
	if !ok || kind.Version == from.Version {
		return o, nil
	}
	if v.definition.Version(kind.Version) == nil {
		return nil, runtime.NewNotRegisteredErrForKind("anykind", kind)
	}
	t := object.CloneTree(content(o))
	if v.definition.Convert != nil {
		out, err := v.definition.Convert(context.Background(), []map[string]any{t}, kind.Version)
		if err != nil {
			return nil, err
		}
		t = out[0]
	}
	t["apiVersion"] = v.definition.APIVersion(kind.Version)
	return object.AccessorOf(t), nil
}

func (*versions) Convert(in, out, context any) error {
	return errors.New("objects are converted by version")
}

func (*versions) ConvertFieldLabel(kind schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default does nothing: the schema fills in what is missing.
func (*versions) Default(runtime.Object) {}

func (*versions) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	return o, nil
}
