package kind

import (
	"context"
	"fmt"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

// Like is another version of a Kind. The types T and L, pointers, have the same fields as those of
// the Kind, or fewer, and the same defaults. WhenDecoded adds others.
func Like[T, L any](name string) Version {
	return VersionOf[T, L](&resource.Version{Name: name})
}

// Renamed is another version of a Kind with its Go types, under the names of another package. That package is
// not part of the program: a test compares its types and its releases. aliases are the types of which that package has
// only aliases, so their names stay.
func Renamed(name, pkg string, life Life, aliases ...string) Version {
	return Version{version: &resource.Version{Name: name, Served: true}, alike: new(int)}.Named(pkg, life, aliases...)
}

// Named gives the Go types of a version the names of another package, as Renamed does.
func (v Version) Named(pkg string, life Life, aliases ...string) Version {
	v.pkg, v.life, v.aliases = pkg, life, aliases
	return v
}

// Life has the minor releases of Kubernetes 1 that add, deprecate and remove a version, 0 for none. Replaced is set if
// the warning names the version of the Kind.
type Life struct {
	Introduced, Deprecated, Removed int
	Replaced                        bool
}

// Shaped is another version of a Kind, with different fields. to converts an object from that form
// to the form of the Kind, and from converts it back. WhenDecoded adds steps besides the rules of
// the Go types.
func Shaped[T, L any](name string, to, from func(obj map[string]any)) Version {
	v := Like[T, L](name)
	v.to, v.from = to, from
	return v
}

// Lenient accepts values that the next version no longer allows.
func (v Version) Lenient() Version {
	v.version.Lenient = true
	return v
}

// Stored makes this version the storage version.
func (v Version) Stored() Version {
	v.version.Storage, v.version.Pinned = true, true
	return v
}

// further completes a version of a Kind from own, the version that the Kind describes.
func (k *untyped) further(v, own Version) Version {
	of := v.version
	if v.object == nil {
		v.object, v.list, of.New = own.object, own.list, own.version.New
	}
	of.ResetFields, of.ResetGate, of.RowConditions = own.version.ResetFields, own.version.ResetGate, own.version.RowConditions
	of.Revert, of.Subresources = own.version.Revert, slices.Clone(own.version.Subresources)
	of.Columns, of.SelectableFields, of.DefaultOf = own.version.Columns, own.version.SelectableFields, own.version.DefaultOf
	of.CompareRows = own.version.CompareRows
	v.read, v.refuse = own.read, own.refuse
	rules, t, decode, first := k.rules, v.object, v.decode, own.decode
	if v.to != nil {
		first = func(obj map[string]any) { rules().Fill(t, obj) }
	}
	if v.decode = first; decode != nil {
		v.decode = func(obj map[string]any) {
			first(obj)
			decode(obj)
		}
	}
	if v.to == nil {
		if decode == nil {
			v.alike = own.alike
		}
		return v
	}
	if columns := of.Columns; columns != nil {
		of.Columns = func() []view.Column {
			read := slices.Clone(columns())
			for i := range read {
				read[i].Cell = reading(v.to, read[i].Cell)
			}
			return read
		}
	}
	fields := map[string]func(map[string]any) string{}
	for name, value := range of.SelectableFields {
		fields[name] = reading(v.to, value)
	}
	of.SelectableFields = fields
	return v
}

// reading returns read for objects in another form.
func reading[V any](to func(map[string]any), read func(map[string]any) V) func(map[string]any) V {
	return func(obj map[string]any) V {
		obj = object.CloneTree(obj)
		to(obj)
		return read(obj)
	}
}

// converting returns the conversion between versions, through the form of the Kind. It is nil if
// all versions have that form.
func converting(d *resource.Definition, versions []Version) func(context.Context, []map[string]any, string) ([]map[string]any, error) {
	if !slices.ContainsFunc(versions, func(v Version) bool { return v.to != nil }) {
		return nil
	}
	to, from := map[string]func(map[string]any){}, map[string]func(map[string]any){}
	for _, v := range versions {
		apiVersion := d.APIVersion(v.version.Name)
		to[apiVersion], from[apiVersion] = v.to, v.from
	}
	group := *d // names only
	return func(_ context.Context, objs []map[string]any, version string) ([]map[string]any, error) {
		wanted := group.APIVersion(version)
		for _, obj := range objs {
			is := object.APIVersion(obj)
			if is == wanted {
				continue
			}
			if to := to[is]; to != nil {
				to(obj)
			}
			if from := from[wanted]; from != nil {
				from(obj)
			}
			obj["apiVersion"] = wanted
		}
		return objs, nil
	}
}

// byPreference sorts versions by preference: stable before beta before alpha, and later ones first.
func byPreference(a, b Version) int {
	return version.CompareKubeAwareVersionStrings(b.version.Name, a.version.Name)
}

// lifeOf returns the releases that the Go type of a version names.
func lifeOf(obj runtime.Object) (life Life, instead kschema.GroupVersionKind) {
	if since, ok := obj.(interface{ APILifecycleIntroduced() (major, minor int) }); ok {
		_, life.Introduced = since.APILifecycleIntroduced()
	}
	if since, ok := obj.(interface{ APILifecycleDeprecated() (major, minor int) }); ok {
		_, life.Deprecated = since.APILifecycleDeprecated()
	}
	if until, ok := obj.(interface{ APILifecycleRemoved() (major, minor int) }); ok {
		_, life.Removed = until.APILifecycleRemoved()
	}
	if other, ok := obj.(interface {
		APILifecycleReplacement() kschema.GroupVersionKind
	}); ok {
		instead = other.APILifecycleReplacement()
	}
	return life, instead
}

// describeLife fills in the releases of a version, and its warning if it is deprecated.
func (v Version) describeLife(of kschema.GroupVersionKind) {
	life, instead := v.life, kschema.GroupVersionKind{}
	switch {
	case v.pkg == "":
		life, instead = lifeOf(v.version.New())
	case life.Replaced:
		instead = of.GroupKind().WithVersion(path.Base(v.object.PkgPath()))
	}
	v.version.Introduced, v.version.Removed = life.Introduced, life.Removed
	if life.Deprecated == 0 || life.Deprecated > int(gate.Current) {
		return
	}
	text := fmt.Sprintf("%s %s is deprecated in v1.%d+", of.GroupVersion(), of.Kind, life.Deprecated)
	if life.Removed > 0 {
		v.version.RemovedRelease = gate.Release(life.Removed).String()
		text += fmt.Sprintf(", unavailable in v%s+", v.version.RemovedRelease)
	}
	if !instead.Empty() {
		text += fmt.Sprintf("; use %s %s", instead.GroupVersion(), instead.Kind)
	}
	v.version.Deprecated, v.version.DeprecationWarning = true, text
}
