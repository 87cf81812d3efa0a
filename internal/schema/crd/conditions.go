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

// decideStatus decides the accepted names of crd and whether it is served, and sets its status. others
// are the names of the other CustomResourceDefinitions of its group: the first to claim a name keeps
// it. Kubernetes decides in several later writes; here the decision is part of the requested write.
//
// It reads schemas only if the definition preserves unknown fields, because no other definition can
// have a schema that is not structural.
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

// undecided reports whether the names of crd are not decided yet.
func undecided(crd *v1.CustomResourceDefinition) bool {
	return conditions.Find(&crd.Status, v1.NamesAccepted) == nil || !sameNames(&crd.Spec.Names, &crd.Status.AcceptedNames)
}

// established returns the new Established condition. A kind that was served once stays served, even if
// it loses names.
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

// nonStructural returns the condition that names the schemas that are not structural, and whether
// there are any.
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
