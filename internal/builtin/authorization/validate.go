package authorization

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

const (
	onlyOne   = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
	notBoth   = "may not specified at the same time as requirements"
	someOfTwo = "when %s is specified, requirements or rawSelector is required"
)

func validateSubject(c *rule.Check, spec *authorizationv1.SubjectAccessReviewSpec) {
	validateUnion(c, spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		c.At("spec", "user").Invalid(spec.User, "at least one of user or group must be specified")
	}
	validateSelectors(c, spec.ResourceAttributes)
}

func validateSelf(c *rule.Check, spec *authorizationv1.SelfSubjectAccessReviewSpec) {
	validateUnion(c, spec.ResourceAttributes, spec.NonResourceAttributes)
	validateSelectors(c, spec.ResourceAttributes)
}

func validateUnion(c *rule.Check, r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes) {
	if (r == nil) == (n == nil) {
		c.At("spec").Invalid(n, onlyOne)
	}
}

func validateSelectors(c *rule.Check, r *authorizationv1.ResourceAttributes) {
	if r == nil {
		return
	}
	if f := r.FieldSelector; f != nil {
		at := c.At("spec", "resourceAttributes", "fieldSelector")
		validateSelector(at, f.RawSelector, len(f.Requirements))
		for i, one := range f.Requirements {
			c.Add(metavalidation.ValidateFieldSelectorRequirement(one,
				metavalidation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, at.Path().Child("requirements").Index(i))...)
		}
	}
	if l := r.LabelSelector; l != nil {
		at := c.At("spec", "resourceAttributes", "labelSelector")
		validateSelector(at, l.RawSelector, len(l.Requirements))
		for i, one := range l.Requirements {
			c.Add(metavalidation.ValidateLabelSelectorRequirement(one,
				metavalidation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, at.Path().Child("requirements").Index(i))...)
		}
	}
}

func validateSelector(c *rule.Check, raw string, requirements int) {
	switch {
	case raw != "" && requirements > 0:
		c.At("rawSelector").Invalid(raw, notBoth)
	case raw == "" && requirements == 0:
		c.At("requirements").Required(fmt.Sprintf(someOfTwo, c.Path()))
	}
}

// validateMetadata rejects metadata, which would be lost.
func validateMetadata(c *rule.Check, m metav1.ObjectMeta) {
	if !isEmpty(m) {
		c.At("metadata").Invalid(m, "must be empty")
	}
}

func validateLocal(c *rule.Check, review *authorizationv1.LocalSubjectAccessReview) {
	m := review.ObjectMeta
	if m.Namespace = ""; !isEmpty(m) {
		c.At("metadata").Invalid(review.ObjectMeta, "must be empty except for namespace")
	}
	if r := review.Spec.ResourceAttributes; r != nil && r.Namespace != review.Namespace {
		c.At("spec", "resourceAttributes", "namespace").Invalid(r.Namespace, "must match metadata.namespace")
	}
	if n := review.Spec.NonResourceAttributes; n != nil {
		c.At("spec", "nonResourceAttributes").Invalid(n, "disallowed on this kind of request")
	}
}

func isEmpty(m metav1.ObjectMeta) bool {
	m.ManagedFields = nil
	return apiequality.Semantic.DeepEqual(metav1.ObjectMeta{}, m)
}
