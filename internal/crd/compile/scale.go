package compile

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/anykind/anykind/internal/codec"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/status"
)

// scaleKind is the kind that /scale shows.
var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// scaleDefinition describes that kind. It is not served by itself.
var scaleDefinition = resource.New(resource.Definition{
	Group: scaleKind.Group, Plural: "scales", Singular: "scale", Kind: scaleKind.Kind, ListKind: "ScaleList",
	Namespaced: true, Dialect: resource.CompiledIn,
	Versions: []*resource.Version{{
		Name: scaleKind.Version, Served: true, Storage: true,
		New: func() runtime.Object { return &autoscalingv1.Scale{} },
		Schema: schema.FromType(reflect.TypeFor[autoscalingv1.Scale](), model.TypeOptions{
			Kind: model.Kind{Group: scaleKind.Group, Version: scaleKind.Version, Kind: scaleKind.Kind, ListKind: "ScaleList", Plural: "scales"},
		}),
		Columns: []resource.Column{
			{Name: "Desired", Type: "integer", Description: "Number of desired replicas", Cell: codec.Cell(".spec.replicas", "integer")},
			{Name: "Available", Type: "integer", Description: "Number of actual replicas", Cell: codec.Cell(".status.replicas", "integer")},
			codec.AgeColumn(),
		},
	}},
})

// noReplicas stands for the replicas of an object that does not say how many it
// wants: whoever changes something else of its Scale must not set them.
const noReplicas = math.MinInt32

// A scale is the subresource of one version: where it finds what a Scale shows.
type scale struct {
	version  kschema.GroupVersion
	spec     string // paths of the replicas and of the selector
	status   string
	selector string // may be ""
	// mappings have the replicas of every version of the kind, for who owns them.
	mappings managedfields.ResourcePathMappings
}

// newScale returns the scale of a version that has one.
func newScale(crd *v1.CustomResourceDefinition, in *v1.CustomResourceDefinitionVersion) *scale {
	paths := in.Subresources.Scale
	s := &scale{
		version:  kschema.GroupVersion{Group: crd.Spec.Group, Version: in.Name},
		spec:     paths.SpecReplicasPath,
		status:   paths.StatusReplicasPath,
		mappings: managedfields.ResourcePathMappings{},
	}
	if paths.LabelSelectorPath != nil {
		s.selector = *paths.LabelSelectorPath
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		var path fieldpath.Path
		if v.Subresources != nil && v.Subresources.Scale != nil {
			for _, field := range scalePath(v.Subresources.Scale.SpecReplicasPath) {
				path = append(path, fieldpath.PathElement{FieldName: &field})
			}
		}
		s.mappings[kschema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}.String()] = path
	}
	return s
}

// subresource is the path /scale. What a write of it may not change is what one
// of the object itself may not.
func (s *scale) subresource(revert func(context.Context, *resource.Change)) resource.Subresource {
	return resource.Subresource{
		Name: "scale", Verbs: []string{"get", "patch", "update"},
		Kind:       scaleKind,
		Revert:     revert,
		Definition: scaleDefinition,
		Projection: &resource.Projection{Show: s.show, Open: s.open, Merge: s.merge},
	}
}

// show returns the Scale of an object.
func (s *scale) show(obj object.Tree) (object.Tree, error) {
	out, found, err := s.read(obj)
	if err == nil && !found {
		err = status.Internal(fmt.Errorf("the spec replicas field %q does not exist", s.spec))
	}
	return out, err
}

// read returns the Scale of an object, and whether the object says how many
// replicas it wants.
func (s *scale) read(obj object.Tree) (out object.Tree, found bool, err error) {
	wanted, found, err := unstructured.NestedInt64(obj, scalePath(s.spec)...)
	if err != nil {
		return nil, false, err
	}
	actual, _, err := unstructured.NestedInt64(obj, scalePath(s.status)...)
	if err != nil {
		return nil, false, err
	}
	state := object.Tree{"replicas": int64(int32(actual))}
	if s.selector != "" {
		selector, _, err := unstructured.NestedString(obj, scalePath(s.selector)...)
		if err != nil {
			return nil, false, err
		}
		if selector != "" {
			state["selector"] = selector
		}
	}
	spec := object.Tree{}
	if n := int32(wanted); n != 0 {
		spec["replicas"] = int64(n)
	}
	apiVersion, kind := scaleKind.ToAPIVersionAndKind()
	out = object.Tree{"apiVersion": apiVersion, "kind": kind, "spec": spec, "status": state}
	for _, field := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
		object.SetMetaString(out, field, object.MetaString(obj, field))
	}
	return out, found, nil
}

// open returns the Scale of an object with those who own a part of it.
func (s *scale) open(obj object.Tree) (object.Tree, error) {
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

// merge makes obj what its Scale says now.
func (s *scale) merge(obj, shown object.Tree) error {
	wanted, _, err := unstructured.NestedInt64(shown, "spec", "replicas")
	if err != nil {
		return err
	}
	if wanted == noReplicas {
		return status.BadRequest("the spec replicas field %q cannot be empty", s.spec)
	}
	owners, err := s.owners(obj).ToParent(object.AccessorOf(shown).GetManagedFields())
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(obj, wanted, scalePath(s.spec)...); err != nil {
		return err
	}
	object.AccessorOf(obj).SetManagedFields(owners)
	// These say which object in which state the client means.
	object.SetMetaString(obj, "name", object.Name(shown))
	object.SetMetaString(obj, "namespace", object.Namespace(shown))
	if revision := object.ResourceVersion(shown); revision != "" {
		object.SetMetaString(obj, "resourceVersion", revision)
	}
	return nil
}

// validateSpec returns what a Scale could not show of what an object asks for. s
// may be nil.
func (s *scale) validateSpec(obj object.Tree) field.ErrorList {
	if s == nil {
		return nil
	}
	return validateReplicas(obj, s.spec)
}

// validateStatus returns what a Scale could not show of the state of an object.
func (s *scale) validateStatus(obj object.Tree) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := validateReplicas(obj, s.status)
	if s.selector != "" {
		if selector, _, err := unstructured.NestedString(obj, scalePath(s.selector)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(s.selector), selector, err.Error()))
		}
	}
	return errs
}

func validateReplicas(obj object.Tree, path string) field.ErrorList {
	n, _, err := unstructured.NestedInt64(obj, scalePath(path)...)
	wrong := ""
	switch {
	case err != nil:
		wrong = err.Error()
	case n < 0:
		wrong = "should be a non-negative integer"
	case n > math.MaxInt32:
		wrong = fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath(path), n, wrong)}
}

func (s *scale) owners(obj object.Tree) *managedfields.ScaleHandler {
	return managedfields.NewScaleHandler(object.AccessorOf(obj).GetManagedFields(), s.version, s.mappings)
}

// scalePath splits a path of replicas or a selector, which has no more than
// names and dots.
func scalePath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
