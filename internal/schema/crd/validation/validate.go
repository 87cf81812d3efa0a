// Package validation says what a CustomResourceDefinition may be: when it is new, and
// when it replaces another, which may have mistakes that are allowed to stay. It also
// warns of what is allowed and likely to be a mistake.
//
// Its functions are pure. The package does not fill in defaults, and does not know
// what else is stored: whether a name is taken is decided by internal/schema/crd. What is
// wrong with a schema itself is found by internal/schema/check, and what is wrong with
// its rules by internal/schema/celrule.
package validation

import (
	"fmt"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema/celrule"
	"github.com/anykind/anykind/internal/schema/crd/conditions"
)

// Validate returns everything that is wrong with a CustomResourceDefinition whose
// defaults are filled in, and what its rules may cost: a report for each schema that
// has rules. before is what it replaces, or nil. Errors name fields as Kubernetes does;
// see internalSpec.
func Validate(crd, before *v1.CustomResourceDefinition) (errs field.ErrorList, costs []*celrule.Report) {
	if before == nil {
		errs = validateName(crd)
	}
	status := field.NewPath("status")
	errs = append(errs, validateSpec(crd, before, func(r *celrule.Report) { costs = append(costs, r) })...)
	errs = append(errs, validateNames(&crd.Status.AcceptedNames, status.Child("acceptedNames"))...)
	errs = append(errs, validateStoredVersions(crd, status.Child("storedVersions"))...)
	errs = append(errs, validateApproval(crd, before)...)
	if crd.Spec.PreserveUnknownFields && (before == nil || !before.Spec.PreserveUnknownFields) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "preserveUnknownFields"), true,
			"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"))
	}
	return errs, costs
}

// ValidateStatus returns what is wrong with the status that somebody writes: with the
// accepted names. Which versions are stored is for whoever migrates objects to say, and
// is checked when the object itself is written next.
func ValidateStatus(crd *v1.CustomResourceDefinition) field.ErrorList {
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
	s := newInternalSpec(&crd.Spec)
	if before == nil {
		a := newSpec
		a.report = report
		return s.validate(path, a)
	}
	a := allowancesOf(s, before)
	a.report = report
	errs := s.validate(path, a)
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
