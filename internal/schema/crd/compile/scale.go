package compile

import (
	"fmt"
	"math"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/scale"
)

// A scaled is the subresource scale of one version.
type scaled struct {
	*scale.Scale
	selector string // its path, or ""
}

// newScaled returns the scale of a version that has one.
func newScaled(crd *v1.CustomResourceDefinition, in *v1.CustomResourceDefinitionVersion) *scaled {
	paths := in.Subresources.Scale
	s := &scaled{Scale: &scale.Scale{
		Version: kschema.GroupVersion{Group: crd.Spec.Group, Version: in.Name},
		Spec:    paths.SpecReplicasPath,
		Status:  paths.StatusReplicasPath,
		Owned:   managedfields.ResourcePathMappings{},
	}}
	s.Selector = s.readSelector
	if paths.LabelSelectorPath != nil {
		s.selector = *paths.LabelSelectorPath
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		var path fieldpath.Path
		if v.Subresources != nil && v.Subresources.Scale != nil {
			path = scale.Owned(v.Subresources.Scale.SpecReplicasPath)
		}
		s.Owned[kschema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}.String()] = path
	}
	return s
}

func (s *scaled) readSelector(obj object.Tree) (string, error) {
	if s.selector == "" {
		return "", nil
	}
	selector, _, err := unstructured.NestedString(obj, scale.Fields(s.selector)...)
	return selector, err
}

// validateSpec returns errors for values in the spec of an object that a Scale cannot show. s may be
// nil.
func (s *scaled) validateSpec(obj object.Tree) field.ErrorList {
	if s == nil {
		return nil
	}
	return validateReplicas(obj, s.Spec)
}

// validateStatus returns errors for values in the status of an object that a Scale cannot show.
func (s *scaled) validateStatus(obj object.Tree) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := validateReplicas(obj, s.Status)
	if selector, err := s.readSelector(obj); err != nil {
		errs = append(errs, field.Invalid(field.NewPath(s.selector), selector, err.Error()))
	}
	return errs
}

func validateReplicas(obj object.Tree, path string) field.ErrorList {
	n, _, err := unstructured.NestedInt64(obj, scale.Fields(path)...)
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
