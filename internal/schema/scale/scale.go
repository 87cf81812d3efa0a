// Package scale shows objects as autoscaling/v1 Scale, and changes their replicas by what
// a client makes of it: the subresource scale, of custom resources and of built-in kinds.
package scale

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/object/view"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
)

// shownKind is the kind that the subresource shows.
var shownKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// definition describes that kind. It is not served by itself.
var definition = resource.New(resource.Definition{
	Group: shownKind.Group, Plural: "scales", Singular: "scale", Kind: shownKind.Kind, ListKind: "ScaleList",
	Namespaced: true, Dialect: resource.CompiledIn,
	Versions: []*resource.Version{{
		Name: shownKind.Version, Served: true, Storage: true,
		New: func() runtime.Object { return &autoscalingv1.Scale{} },
		Schema: schema.FromType(reflect.TypeFor[autoscalingv1.Scale](), model.TypeOptions{
			Kind: model.Kind{Group: shownKind.Group, Version: shownKind.Version, Kind: shownKind.Kind, ListKind: "ScaleList", Plural: "scales"},
		}),
		Columns: func() []view.Column {
			return []view.Column{
				{Name: "Desired", Type: "integer", Description: "Number of desired replicas", Cell: codec.Cell(".spec.replicas", "integer")},
				{Name: "Available", Type: "integer", Description: "Number of actual replicas", Cell: codec.Cell(".status.replicas", "integer")},
				codec.AgeColumn(),
			}
		},
	}},
})

// noReplicas marks an object without replicas in its spec: a write of its Scale that changes other
// fields must not set them.
const noReplicas = math.MinInt32

// A Scale is the scale subresource of one version of a kind, with the paths of its fields.
type Scale struct {
	Version kschema.GroupVersion
	// Spec and Status are the paths of the replicas, as in ".spec.replicas".
	Spec, Status string
	// Selector returns the selector of an object as text, or "".
	Selector func(obj object.Tree) (string, error)
	// Owned has the paths of the replicas in every version of the kind, for managed fields.
	Owned managedfields.ResourcePathMappings
	// Check rejects an invalid Scale of a client. It may be nil.
	Check func(obj, shown object.Tree) error
}

// Subresource returns the subresource /scale. A write of it must respect the immutable fields of the
// object.
func (s *Scale) Subresource(revert func(context.Context, *resource.Change)) resource.Subresource {
	return resource.Subresource{
		Name: "scale", Verbs: []string{"get", "patch", "update"},
		Kind:       shownKind,
		Revert:     revert,
		Definition: definition,
		Projection: &resource.Projection{Show: s.show, Open: s.open, Merge: s.merge},
	}
}

// show returns the Scale of an object.
func (s *Scale) show(obj object.Tree) (object.Tree, error) {
	out, found, err := s.read(obj)
	if err == nil && !found {
		err = status.Internal(fmt.Errorf("the spec replicas field %q does not exist", s.Spec))
	}
	return out, err
}

// read returns the Scale of an object, and whether the object has replicas in its spec.
func (s *Scale) read(obj object.Tree) (out object.Tree, found bool, err error) {
	wanted, found, err := unstructured.NestedInt64(obj, Fields(s.Spec)...)
	if err != nil {
		return nil, false, err
	}
	actual, _, err := unstructured.NestedInt64(obj, Fields(s.Status)...)
	if err != nil {
		return nil, false, err
	}
	selector, err := s.Selector(obj)
	if err != nil {
		return nil, false, err
	}
	state := object.Tree{"replicas": int64(int32(actual))}
	if selector != "" {
		state["selector"] = selector
	}
	spec := object.Tree{}
	if n := int32(wanted); n != 0 {
		spec["replicas"] = int64(n)
	}
	apiVersion, kind := shownKind.ToAPIVersionAndKind()
	out = object.Tree{"apiVersion": apiVersion, "kind": kind, "spec": spec, "status": state}
	for _, field := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
		object.SetMetaString(out, field, object.MetaString(obj, field))
	}
	return out, found, nil
}

// open returns the Scale of an object with its managed fields.
func (s *Scale) open(obj object.Tree) (object.Tree, error) {
	out, found, err := s.read(obj)
	if err != nil {
		return nil, err
	}
	if !found {
		out["spec"] = object.Tree{"replicas": int64(noReplicas)}
	}
	owners, err := s.owners(obj).ToSubresource()
	if err != nil {
		return nil, err
	}
	object.AccessorOf(out).SetManagedFields(owners)
	return out, nil
}

// merge applies a Scale to obj.
func (s *Scale) merge(obj, shown object.Tree) error {
	wanted, _, err := unstructured.NestedInt64(shown, "spec", "replicas")
	if err != nil {
		return err
	}
	if wanted == noReplicas {
		return status.BadRequest("the spec replicas field %q cannot be empty", s.Spec)
	}
	if s.Check != nil {
		if err := s.Check(obj, shown); err != nil {
			return err
		}
	}
	owners, err := s.owners(obj).ToParent(object.AccessorOf(shown).GetManagedFields())
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(obj, wanted, Fields(s.Spec)...); err != nil {
		return err
	}
	object.AccessorOf(obj).SetManagedFields(owners)
	// These identify the object and the state that the client means.
	object.SetMetaString(obj, "name", object.Name(shown))
	object.SetMetaString(obj, "namespace", object.Namespace(shown))
	if revision := object.ResourceVersion(shown); revision != "" {
		object.SetMetaString(obj, "resourceVersion", revision)
	}
	return nil
}

func (s *Scale) owners(obj object.Tree) *managedfields.ScaleHandler {
	return managedfields.NewScaleHandler(object.AccessorOf(obj).GetManagedFields(), s.Version, s.Owned)
}

// Fields splits a path of replicas or a selector, which has only names and dots.
func Fields(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// Owned is a path as managedFields have it.
func Owned(path string) (out fieldpath.Path) {
	for _, field := range Fields(path) {
		out = append(out, fieldpath.PathElement{FieldName: &field})
	}
	return out
}
