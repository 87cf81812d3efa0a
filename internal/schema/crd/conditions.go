package crd

import (
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/schema/check"
	"github.com/anykind/anykind/internal/schema/crd/conditions"
	"github.com/anykind/anykind/internal/schema/crd/validation"
)

// decideStatus decides which names crd gets and whether it is served, and says so in
// its status. others are the names that the other CustomResourceDefinitions of its
// group have: who came first has them. Kubernetes decides it in several writes that
// follow; here it is part of the write that asks for it.
//
// It does not look at schemas unless the definition preserves unknown fields,
// because no other can have one that is not structural.
func decideStatus(crd *v1.CustomResourceDefinition, others claims, now time.Time) {
	status := &crd.Status
	if undecided(crd) {
		taken := others
		taken.add(&status.AcceptedNames)
		accepted, c := accept(crd.Spec.Names, status.AcceptedNames, taken)
		status.AcceptedNames = accepted
		conditions.Set(status, c, now)
	}
	if c, ok := established(crd); ok {
		conditions.Set(status, c, now)
	}
	if c, ok := validation.ApprovalCondition(crd); ok {
		conditions.Set(status, c, now)
	}
	if c, ok := nonStructural(crd); ok {
		conditions.Set(status, c, now)
	} else {
		conditions.Remove(status, v1.NonStructuralSchema)
	}
}

// undecided reports whether it is to be decided which names crd gets.
func undecided(crd *v1.CustomResourceDefinition) bool {
	return conditions.Find(&crd.Status, v1.NamesAccepted) == nil || !sameNames(&crd.Spec.Names, &crd.Status.AcceptedNames)
}

// established says what becomes of the Established condition. A kind that was
// served once stays served, whatever happens to its names.
func established(crd *v1.CustomResourceDefinition) (condition, bool) {
	c := condition{Type: v1.Established, Status: v1.ConditionFalse}
	switch {
	case conditions.IsTrue(&crd.Status, v1.Established):
		return c, false
	case !conditions.IsTrue(&crd.Status, v1.NamesAccepted):
		if conditions.Find(&crd.Status, v1.Established) != nil {
			return c, false
		}
		c.Reason, c.Message = "NotAccepted", "not all names are accepted"
	case validation.CABundleError(crd.Spec.Conversion) != nil:
		c.Reason, c.Message = "InvalidCABundle", "The conversion webhook CABundle is invalid"
	default:
		c.Status, c.Reason, c.Message = v1.ConditionTrue, "InitialNamesAccepted", "the initial names have been accepted"
	}
	return c, true
}

// nonStructural says which schemas are not structural, and whether any is not.
func nonStructural(crd *v1.CustomResourceDefinition) (condition, bool) {
	if !crd.Spec.PreserveUnknownFields {
		return condition{}, false
	}
	errs := field.ErrorList{field.Invalid(field.NewPath("spec", "preserveUnknownFields"), true, "must be false")}
	for i := range crd.Spec.Versions {
		if s := crd.Spec.Versions[i].Schema; s != nil && s.OpenAPIV3Schema != nil {
			errs = append(errs, check.Schema(s.OpenAPIV3Schema, schemaPath(i)).Errors()...)
		}
	}
	return condition{
		Type: v1.NonStructuralSchema, Status: v1.ConditionTrue,
		Reason: "Violations", Message: status.Join(errs),
	}, true
}

func schemaPath(version int) *field.Path {
	return field.NewPath("spec", "versions").Index(version).Child("schema", "openAPIV3Schema")
}
