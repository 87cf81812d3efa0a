package kind

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// Like is a further version of a Kind. The types T and L of its objects and lists have the
// same fields as those of the Kind, or fewer, and the same defaults. WhenDecoded adds others.
func Like[T, L any](name string) Version {
	return VersionOf[T, L](&resource.Version{Name: name})
}

// Shaped is a further version of a Kind, with fields of its own. to brings an object from
// that form into the one that the Kind describes, and from brings it back. WhenDecoded adds
// what differs besides the rules, which are those of the Go types.
func Shaped[T, L any](name string, to, from func(obj map[string]any)) Version {
	v := Like[T, L](name)
	v.to, v.from = to, from
	return v
}

// Lenient says that the version keeps what its successor has given up.
func (v Version) Lenient() Version {
	v.version.Lenient = true
	return v
}

// Stored says that objects are stored in this version.
func (v Version) Stored() Version {
	v.version.Storage = true
	return v
}

// further completes a version of a Kind with what the version own, which the Kind
// describes, says.
func (k *Kind[T, L]) further(v, own Version) Version {
	of := v.version
	of.ResetFields, of.RowConditions = own.version.ResetFields, own.version.RowConditions
	of.Revert, of.Subresources = own.version.Revert, slices.Clone(own.version.Subresources)
	of.Columns, of.SelectableFields, of.DefaultOf = own.version.Columns, own.version.SelectableFields, own.version.DefaultOf
	of.CompareRows = own.version.CompareRows
	v.read, v.refuse = own.read, own.refuse
	rules, t, decode, first := k.Rules, v.object, v.decode, own.decode
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
		of.Columns = func() []resource.Column {
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

// reading is a function of an object that is in another form.
func reading[V any](to func(map[string]any), read func(map[string]any) V) func(map[string]any) V {
	return func(obj map[string]any) V {
		obj = object.CloneTree(obj)
		to(obj)
		return read(obj)
	}
}

// converting converts objects between versions, through the form that the Kind describes.
// It is nil where all have that.
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

// byPreference orders versions as clients prefer them: stable ones before beta, beta before
// alpha, and later ones first.
func byPreference(a, b Version) int {
	return version.CompareKubeAwareVersionStrings(b.version.Name, a.version.Name)
}

// release is the minor version of Kubernetes 1 that versions are deprecated in, or not.
const release = 37

// removedRelease is the release without a version, if its Go type names one.
func removedRelease(obj runtime.Object) string {
	if until, ok := obj.(interface{ APILifecycleRemoved() (major, minor int) }); ok {
		if major, minor := until.APILifecycleRemoved(); major > 0 {
			return fmt.Sprintf("%d.%d", major, minor)
		}
	}
	return ""
}

// deprecation warns of a version whose Go type says that it is deprecated. It is "" if it
// is not.
func deprecation(obj runtime.Object, of kschema.GroupVersionKind) string {
	since, ok := obj.(interface{ APILifecycleDeprecated() (major, minor int) })
	if !ok {
		return ""
	}
	major, minor := since.APILifecycleDeprecated()
	if major == 0 || minor > release {
		return ""
	}
	text := fmt.Sprintf("%s %s is deprecated in v%d.%d+", of.GroupVersion(), of.Kind, major, minor)
	if until := removedRelease(obj); until != "" {
		text += fmt.Sprintf(", unavailable in v%s+", until)
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
