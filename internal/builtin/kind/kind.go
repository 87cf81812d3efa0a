// Package kind builds the Definitions of built-in kinds.
//
// The schema of a version is derived from its Go type and its marks. The package also has helpers
// for the hooks of several API groups: reading fields, checking them, and showing them in columns.
// It knows no kind.
package kind

import (
	"cmp"
	"context"
	"reflect"
	"sort"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/gotype"
	"github.com/anykind/anykind/internal/schema/model"
)

// A Version is a version of a built-in kind with its Go type.
type Version struct {
	version      *resource.Version
	object, list reflect.Type
	// pkg gives the Go types, except aliases, names of another package; "" for none.
	pkg     string
	aliases []string
	// life has the releases of a version whose Go type does not know them.
	life         Life
	decode, read func(obj map[string]any)
	refuse       func(obj map[string]any) error
	// to converts an object to the form of the Kind, and from converts it back; nil for a version
	// in that form.
	to, from func(obj map[string]any)
	// alike is the same pointer for versions with the same defaults.
	alike *int
}

// VersionOf returns a served version with the types T and L, pointers, for an object and a list.
func VersionOf[T, L any](v *resource.Version) Version {
	return versionOf(v, reflect.TypeFor[T]().Elem(), reflect.TypeFor[L]().Elem())
}

// UnlistedOf returns a version of a kind that is not stored, and so has no list.
func UnlistedOf[T any](v *resource.Version) Version {
	return versionOf(v, reflect.TypeFor[T]().Elem(), nil)
}

func versionOf(v *resource.Version, object, list reflect.Type) Version {
	v.Served = true
	v.New = func() runtime.Object { return reflect.New(object).Interface().(runtime.Object) }
	return Version{version: v, object: object, list: list, alike: new(int)}
}

// WhenDecoded adds a step of decoding in Kubernetes: defaults that depend on several fields, and
// fields that are another form of others. The client owns these fields, as if it had sent them.
// Fields from Prepare have no owner.
func (v Version) WhenDecoded(change func(obj map[string]any)) Version {
	v.decode = change
	return v
}

// Refusing adds a decoding error beyond those of the Go type.
func (v Version) Refusing(refuse func(obj map[string]any) error) Version {
	v.refuse = refuse
	return v
}

// WhenRead adds a conversion of objects that another program has stored.
func (v Version) WhenRead(change func(obj map[string]any)) Version {
	v.read = change
	return v
}

// New completes the Definition of a kind with its versions. The preferred version is the storage
// version, unless another one is Stored.
func New(d resource.Definition, versions ...Version) *resource.Definition {
	position := priorities()[d.Group]
	d.ListKind, d.Dialect, d.GroupPriority = d.Kind+"List", resource.CompiledIn, position.group
	sort.SliceStable(versions, func(i, k int) bool { return byPreference(versions[i], versions[k]) < 0 })
	if convert := converting(&d, versions); convert != nil {
		d.Convert = convert
	}
	stored := false
	for _, v := range versions {
		v.version.Priority = position.versions[v.version.Name]
		v.version.Schema = v.schema(&d)
		v.version.Fingerprint = cmp.Or(v.pkg, v.object.PkgPath()) + "." + v.object.Name() // within a build, a type has one model
		v.describeLife(d.GroupVersionKind(v.version.Name))
		subresources := v.version.Subresources
		sort.SliceStable(subresources, func(i, k int) bool { return subresources[i].Name < subresources[k].Name })
		d.Versions = append(d.Versions, v.version)
		stored = stored || v.version.Storage
	}
	if !stored {
		d.Versions[0].Storage = true
	}
	d.Prepare = dropping(storedType(versions), d.Prepare)
	if validatesPrefix.Has(d.Kind) {
		d.Validate = WithPrefix(d.ValidateName, d.Validate)
	}
	if d.StoragePrefix == "" {
		d.StoragePrefix = resource.BuiltInPrefix(d.Plural)
	}
	return resource.New(d)
}

// storedType returns the Go type of the storage version.
func storedType(versions []Version) reflect.Type {
	for _, v := range versions {
		if v.version.Storage {
			return v.object
		}
	}
	return versions[0].object
}

// dropping returns a hook that drops the fields of disabled features before the hook of a kind.
func dropping(t reflect.Type, prepare func(context.Context, *resource.Change)) func(context.Context, *resource.Change) {
	gated := sync.OnceValue(func() *rule.Gated { return rule.GatedOf(t) })
	return func(ctx context.Context, c *resource.Change) {
		gated().Drop(c.Gates, c.Object, c.Old)
		if prepare != nil {
			prepare(ctx, c)
		}
	}
}

func (v Version) schema(d *resource.Definition) resource.Schema {
	s := schema.Typed{Schema: schema.FromType(v.object, model.TypeOptions{
		Kind:  model.Kind{Group: d.Group, Version: v.version.Name, Kind: d.Kind, ListKind: d.ListKind, Plural: d.Plural},
		List:  v.list,
		Marks: rule.Marks,

		Package: v.renamed(),
	})}
	if v.decode == nil {
		return s
	}
	return decoding{s, v.decode, v.read, v.refuse, d.GroupVersionKind(v.version.Name), v.object, v.alike}
}

func (v Version) renamed() model.Renamed {
	if v.pkg == "" {
		return model.Renamed{}
	}
	return model.Renamed{From: v.object.PkgPath(), To: v.pkg, Aliases: v.aliases}
}

type decoding struct {
	schema.Typed
	change, read func(obj map[string]any)
	refuse       func(obj map[string]any) error // nil for most
	kind         kschema.GroupVersionKind
	object       reflect.Type
	alike        *int
}

// Shape is equal for versions with the same fields and the same defaults.
func (s decoding) Shape() any {
	return struct {
		fields string
		alike  *int
	}{gotype.Signature(s.object), s.alike}
}

func (s decoding) Complete(obj map[string]any) (map[string]any, []string, error) {
	out, unknown, err := s.Typed.Complete(obj)
	if err != nil {
		return out, unknown, err
	}
	if s.refuse != nil {
		if err := s.refuse(out); err != nil {
			return nil, nil, codec.Unhandled(s.kind, s.kind.Kind, err)
		}
	}
	s.change(out)
	return out, unknown, nil
}

func (s decoding) Default(obj map[string]any) {
	s.Typed.Default(obj)
	s.change(obj)
	if s.read != nil {
		s.read(obj)
	}
}
