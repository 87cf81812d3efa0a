package crd

import (
	"fmt"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/celrule"
	"github.com/anykind/anykind/internal/crd/conditions"
)

// Validate returns everything that is wrong with a CustomResourceDefinition that
// is complete: its defaults are filled in. old is what it replaces, or nil. Errors
// name fields the way Kubernetes does, which is by a form of the object in which
// versions that agree share one schema; see hub.
func Validate(obj, old map[string]any) field.ErrorList {
	return validate(obj, old, func(*celrule.Report) {})
}

// validate is Validate for those who want to know what rules cost. report is
// called for each schema that has any.
func validate(obj, old map[string]any, report func(*celrule.Report)) field.ErrorList {
	crd, err := typed(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	var before *v1.CustomResourceDefinition
	var errs field.ErrorList
	if old == nil {
		errs = validateName(crd)
	} else if before, err = typed(old); err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	status := field.NewPath("status")
	errs = append(errs, validateSpec(crd, before, report)...)
	errs = append(errs, validateNames(&crd.Status.AcceptedNames, status.Child("acceptedNames"))...)
	errs = append(errs, validateStoredVersions(crd, status.Child("storedVersions"))...)
	errs = append(errs, validateApproval(crd, before)...)
	if crd.Spec.PreserveUnknownFields && (before == nil || !before.Spec.PreserveUnknownFields) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "preserveUnknownFields"), true,
			"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"))
	}
	return errs
}

// validateStatus returns what is wrong with the status that somebody writes. Which
// versions are stored is for whoever migrates objects to say, and is checked when
// the object itself is written next.
func validateStatus(obj, _ map[string]any) field.ErrorList {
	crd, err := typedWithoutSchemas(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return validateNames(&crd.Status.AcceptedNames, field.NewPath("status", "acceptedNames"))
}

// validateName checks that the object is named after what it defines. That it has
// a name is for others to say.
func validateName(crd *v1.CustomResourceDefinition) (errs field.ErrorList) {
	const detail = `must be spec.names.plural+"."+spec.group`
	want := crd.Spec.Names.Plural + "." + crd.Spec.Group
	metadata := field.NewPath("metadata")
	if crd.GenerateName != "" && crd.GenerateName != want {
		errs = append(errs, field.Invalid(metadata.Child("generateName"), crd.GenerateName, detail))
	}
	if crd.Name != "" && crd.Name != want {
		errs = append(errs, field.Invalid(metadata.Child("name"), crd.Name, detail))
	}
	return errs
}

// validateSpec checks the spec for itself and against what it was.
func validateSpec(crd, before *v1.CustomResourceDefinition, report func(*celrule.Report)) field.ErrorList {
	path := field.NewPath("spec")
	h := newHub(&crd.Spec)
	if before == nil {
		a := newSpec
		a.report = report
		return h.validate(path, a)
	}
	a := allowancesOf(h, before)
	a.report = report
	errs := h.validate(path, a)
	spec, was := &crd.Spec, &before.Spec
	if conditions.IsTrue(&before.Status, v1.Established) {
		errs = append(errs, apivalidation.ValidateImmutableField(spec.Scope, was.Scope, path.Child("scope"))...)
		errs = append(errs, apivalidation.ValidateImmutableField(spec.Names.Kind, was.Names.Kind, path.Child("names", "kind"))...)
	}
	errs = append(errs, apivalidation.ValidateImmutableField(spec.Group, was.Group, path.Child("group"))...)
	return append(errs, apivalidation.ValidateImmutableField(spec.Names.Plural, was.Names.Plural, path.Child("names", "plural"))...)
}

// validateStoredVersions checks that no version goes away while objects may be
// stored in it.
func validateStoredVersions(crd *v1.CustomResourceDefinition, path *field.Path) (errs field.ErrorList) {
	stored := crd.Status.StoredVersions
	if len(stored) == 0 {
		return field.ErrorList{field.Invalid(path, stored, "must have at least one stored version")}
	}
	// A name counts for one version only.
	left := map[string]bool{}
	for _, v := range stored {
		left[v] = true
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Storage && !left[v.Name] {
			errs = append(errs, field.Invalid(path, stored, "must have the storage version "+v.Name))
		}
		delete(left, v.Name)
	}
	for i, v := range stored {
		if left[v] {
			errs = append(errs, field.Invalid(path.Index(i), v, fmt.Sprintf(
				"missing from spec.versions; %[1]s was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in %[1]s and removes %[1]s from status.storedVersions", v)))
		}
	}
	return errs
}

// validateApproval checks the annotation that kinds of the Kubernetes community
// need. It may stay what it is.
func validateApproval(crd, before *v1.CustomResourceDefinition) field.ErrorList {
	if !protected(crd.Spec.Group) {
		return nil
	}
	state, reason := approvalOf(crd.Annotations)
	if before != nil {
		if was, _ := approvalOf(before.Annotations); was == state {
			return nil
		}
	}
	path := field.NewPath("metadata", "annotations").Key(v1.KubeAPIApprovedAnnotation)
	switch state {
	case approvalGiven, approvalWaived:
		return nil
	case approvalMissing:
		return field.ErrorList{field.Required(path, reason)}
	default:
		return field.ErrorList{field.Invalid(path, crd.Annotations[v1.KubeAPIApprovedAnnotation], reason)}
	}
}
