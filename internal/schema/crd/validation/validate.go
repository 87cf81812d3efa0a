// Package validation validates CustomResourceDefinitions: new ones, and updates, which may keep some
// mistakes of the old definition. It also warns of valid values that are likely to be mistakes.
//
// Its functions are pure. The package does not set defaults, and does not know other definitions:
// internal/schema/crd decides whether a name is taken. internal/schema/check finds errors in schemas,
// and internal/schema/celrule errors in their rules.
package validation

import (
	"fmt"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/schema/celrule"
	"github.com/anykind/anykind/internal/schema/crd/conditions"
)

// Validate returns all errors of a CustomResourceDefinition with its defaults, and the estimated costs
// of its rules: a report for each schema with rules. before is the replaced definition, or nil.
// compatible is the release of the oldest server that must understand new rules; 0 for the previous release. Errors name
// fields as Kubernetes does; see internalSpec.
func Validate(crd, before *v1.CustomResourceDefinition, compatible gate.Release) (errs field.ErrorList, costs []*celrule.Report) {
	if before == nil {
		errs = validateName(crd)
	}
	status := field.NewPath("status")
	a := allowances{rules: storedRules{compatible: compatible}, report: func(r *celrule.Report) { costs = append(costs, r) }}
	errs = append(errs, validateSpec(crd, before, a)...)
	errs = append(errs, validateNames(&crd.Status.AcceptedNames, status.Child("acceptedNames"))...)
	errs = append(errs, validateStoredVersions(crd, status.Child("storedVersions"))...)
	errs = append(errs, validateApproval(crd, before)...)
	if crd.Spec.PreserveUnknownFields && (before == nil || !before.Spec.PreserveUnknownFields) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "preserveUnknownFields"), true,
			"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"))
	}
	return errs, costs
}

// ValidateStatus returns the errors of a write of the status: those of the accepted names.
// storedVersions belong to the client that migrates objects, and are checked by the next write of the
// object itself.
func ValidateStatus(crd *v1.CustomResourceDefinition) field.ErrorList {
	return validateNames(&crd.Status.AcceptedNames, field.NewPath("status", "acceptedNames"))
}

// validateName checks that the name of the object matches its group and plural. A missing name is
// reported elsewhere.
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

// validateSpec validates the spec by itself and against the old one.
func validateSpec(crd, before *v1.CustomResourceDefinition, a allowances) field.ErrorList {
	path := field.NewPath("spec")
	s := newInternalSpec(&crd.Spec)
	if before == nil {
		a.badCABundle = true // it is then not established
		return s.validate(path, a)
	}
	a.from(s, before)
	errs := s.validate(path, a)
	spec, was := &crd.Spec, &before.Spec
	if conditions.IsTrue(&before.Status, v1.Established) {
		errs = append(errs, apivalidation.ValidateImmutableField(spec.Scope, was.Scope, path.Child("scope"))...)
		errs = append(errs, apivalidation.ValidateImmutableField(spec.Names.Kind, was.Names.Kind, path.Child("names", "kind"))...)
	}
	errs = append(errs, apivalidation.ValidateImmutableField(spec.Group, was.Group, path.Child("group"))...)
	return append(errs, apivalidation.ValidateImmutableField(spec.Names.Plural, was.Names.Plural, path.Child("names", "plural"))...)
}

// validateStoredVersions checks that no version is removed while objects may be stored in it.
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

// validateApproval checks the annotation that kinds of the Kubernetes community need. An unchanged
// value is valid.
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
