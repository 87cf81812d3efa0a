package kind

import (
	"context"
	"fmt"
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

// lifetime returns the minor releases of Kubernetes 1 that add and remove a version, 0 if its Go type names none.
func lifetime(obj runtime.Object) (introduced, removed int) {
	if since, ok := obj.(interface{ APILifecycleIntroduced() (major, minor int) }); ok {
		_, introduced = since.APILifecycleIntroduced()
	}
	if until, ok := obj.(interface{ APILifecycleRemoved() (major, minor int) }); ok {
		_, removed = until.APILifecycleRemoved()
	}
	return introduced, removed
}

// describeLife fills in the releases of a version, and its warning if it is deprecated.
func describeLife(v *resource.Version, of kschema.GroupVersionKind) {
	obj := v.New()
	v.Introduced, v.Removed = lifetime(obj)
	removed := ""
	if v.Removed > 0 {
		removed = gate.Release(v.Removed).String()
	}
	if warning := deprecation(obj, of, removed); warning != "" {
		v.Deprecated, v.DeprecationWarning, v.RemovedRelease = true, warning, removed
	}
}

// deprecation returns the warning for a deprecated version, or "".
func deprecation(obj runtime.Object, of kschema.GroupVersionKind, removed string) string {
	since, ok := obj.(interface{ APILifecycleDeprecated() (major, minor int) })
	if !ok {
		return ""
	}
	major, minor := since.APILifecycleDeprecated()
	if major == 0 || minor > int(gate.Current) {
		return ""
	}
	text := fmt.Sprintf("%s %s is deprecated in v%d.%d+", of.GroupVersion(), of.Kind, major, minor)
	if removed != "" {
		text += fmt.Sprintf(", unavailable in v%s+", removed)
	}
	if instead, ok := obj.(interface {
		APILifecycleReplacement() kschema.GroupVersionKind
	}); ok {
		if other := instead.APILifecycleReplacement(); !other.Empty() {
			text += fmt.Sprintf("; use %s %s", other.GroupVersion(), other.Kind)
		}
	}
	return text
}
