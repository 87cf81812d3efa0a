// Package kind builds the Definitions of built-in kinds.
//
// The schema of a version is derived from its Go type, and what the type does not say
// is in its marks. The package also has what the hooks of several API groups need: to
// look at fields of an object, to check them, and to show them in columns. It knows no
// kind.
package kind

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/gotype"
	"github.com/anykind/anykind/internal/schema/model"
)

// priorities order the groups in discovery, the highest first.
var priorities = map[string]int{
	"":                             18000,
	"apiregistration.k8s.io":       20001, // no APIService may ask for more than 20000
	"apps":                         17800,
	"events.k8s.io":                17750,
	"authentication.k8s.io":        17700,
	"authorization.k8s.io":         17600,
	"autoscaling":                  17500,
	"batch":                        17400,
	"certificates.k8s.io":          17300,
	"networking.k8s.io":            17200,
	"policy":                       17100,
	"rbac.authorization.k8s.io":    17000,
	"storage.k8s.io":               16800,
	"admissionregistration.k8s.io": 16700,
	"scheduling.k8s.io":            16600,
	"coordination.k8s.io":          16500,
	"node.k8s.io":                  16300,
	"discovery.k8s.io":             16200,
	"resource.k8s.io":              16100,
	"flowcontrol.apiserver.k8s.io": 16000,
	"internal.apiserver.k8s.io":    15900,
	"storagemigration.k8s.io":      15800,
}

// A Version is a version of a built-in kind, which is made of a Go type.
type Version struct {
	version      *resource.Version
	object, list reflect.Type
	decode, read func(obj map[string]any)
	refuse       func(obj map[string]any) error
	// to brings an object into the form that the Kind describes, and from brings it back;
	// nil for a version that has that form.
	to, from func(obj map[string]any)
	// alike is the same for versions with the same defaults.
	alike *int
}

// VersionOf is the version of a kind that the types T and L, of an object and of a list,
// describe. It is served.
func VersionOf[T, L any](v *resource.Version) Version {
	v.Served = true
	v.New = func() runtime.Object { return any(new(T)).(runtime.Object) }
	return Version{version: v, object: reflect.TypeFor[T](), list: reflect.TypeFor[L](), alike: new(int)}
}

// UnlistedOf is the version of a kind of which nothing is stored, and which so has no list.
func UnlistedOf[T any](v *resource.Version) Version {
	v.Served = true
	v.New = func() runtime.Object { return any(new(T)).(runtime.Object) }
	return Version{version: v, object: reflect.TypeFor[T]()}
}

// WhenDecoded adds what Kubernetes makes of an object when it decodes one: defaults that
// depend on more than one field, and fields that are another way to write others. The
// outcome belongs to who writes the object, as if the client had sent it. What Prepare
// does belongs to nobody.
func (v Version) WhenDecoded(change func(obj map[string]any)) Version {
	v.decode = change
	return v
}

// Refusing adds why an object cannot be decoded, where its Go type does not say.
func (v Version) Refusing(refuse func(obj map[string]any) error) Version {
	v.refuse = refuse
	return v
}

// WhenRead adds what becomes of an object that was stored by another program.
func (v Version) WhenRead(change func(obj map[string]any)) Version {
	v.read = change
	return v
}

// New completes the Definition of a kind with its versions. Objects are stored in the one
// that clients prefer, unless another one says so.
func New(d resource.Definition, versions ...Version) *resource.Definition {
	d.ListKind, d.Dialect, d.GroupPriority = d.Kind+"List", resource.CompiledIn, priorities[d.Group]
	slices.SortFunc(versions, byPreference)
	if convert := converting(&d, versions); convert != nil {
		d.Convert = convert
	}
	stored := false
	for _, v := range versions {
		v.version.Schema = v.schema(&d)
		v.version.Fingerprint = v.object.PkgPath() + "." + v.object.Name() // of one build, a type has one model
		if warning := deprecation(v.version.New(), d.GroupVersionKind(v.version.Name)); warning != "" {
			v.version.Deprecated, v.version.DeprecationWarning = true, warning
			v.version.RemovedRelease = removedRelease(v.version.New())
		}
		slices.SortFunc(v.version.Subresources, func(a, b resource.Subresource) int { return strings.Compare(a.Name, b.Name) })
		d.Versions = append(d.Versions, v.version)
		stored = stored || v.version.Storage
	}
	if !stored {
		d.Versions[0].Storage = true
	}
	if d.StoragePrefix == "" {
		d.StoragePrefix = resource.BuiltInPrefix(d.Plural)
	}
	return resource.New(d)
}

func (v Version) schema(d *resource.Definition) resource.Schema {
	s := schema.Typed{Schema: schema.FromType(v.object, model.TypeOptions{
		Kind:  model.Kind{Group: d.Group, Version: v.version.Name, Kind: d.Kind, ListKind: d.ListKind, Plural: d.Plural},
		List:  v.list,
		Marks: rule.Marks,
	})}
	if v.decode == nil {
		return s
	}
	return decoding{s, v.decode, v.read, v.refuse, d.GroupVersionKind(v.version.Name), v.object, v.alike}
}

type decoding struct {
	schema.Typed
	change, read func(obj map[string]any)
	refuse       func(obj map[string]any) error // nil for most
	kind         kschema.GroupVersionKind
	object       reflect.Type
	alike        *int
}

// Shape is the same for versions with the same fields and the same defaults.
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
