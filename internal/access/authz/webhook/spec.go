package webhook

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationv1beta1 "k8s.io/api/authorization/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
)

// specOf converts attributes to the spec of a SubjectAccessReview.
func specOf(a *authz.Attributes) (spec authorizationv1.SubjectAccessReviewSpec) {
	if u := a.User; u != nil {
		spec.User, spec.UID, spec.Groups = u.Name, u.UID, u.Groups
		spec.Extra = request.ExtraAs[authorizationv1.ExtraValue](u.Extra)
	}
	if !a.IsResource {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.Path, Verb: a.Verb}
		return spec
	}
	r := &authorizationv1.ResourceAttributes{
		Namespace: a.Namespace, Verb: a.Verb, Group: a.Group, Version: a.Version,
		Resource: a.Resource, Subresource: a.Subresource, Name: a.Name,
	}
	s := a.Select()
	if fields := fieldRequirements(s); fields != nil {
		r.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: fields}
	}
	if labels := labelRequirements(s); labels != nil {
		r.LabelSelector = &authorizationv1.LabelSelectorAttributes{Requirements: labels}
	}
	spec.ResourceAttributes = r
	return spec
}

// fieldRequirements drops requirements that a review cannot express. The rest selects more objects.
func fieldRequirements(s *authz.Selectors) (out []metav1.FieldSelectorRequirement) {
	for _, r := range s.Fields {
		operator := metav1.FieldSelectorOpIn
		switch r.Operator {
		case selection.Equals, selection.DoubleEquals, selection.In:
		case selection.NotEquals, selection.NotIn:
			operator = metav1.FieldSelectorOpNotIn
		default:
			continue
		}
		out = append(out, metav1.FieldSelectorRequirement{Key: r.Field, Operator: operator, Values: []string{r.Value}})
	}
	return out
}

// labelOperators maps the operators of label selectors to those of reviews.
var labelOperators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn, selection.In: metav1.LabelSelectorOpIn,
	selection.NotEquals: metav1.LabelSelectorOpNotIn, selection.NotIn: metav1.LabelSelectorOpNotIn,
	selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}

// labelRequirements drops requirements that a review cannot express. The rest selects more objects.
func labelRequirements(s *authz.Selectors) (out []metav1.LabelSelectorRequirement) {
	for _, r := range s.Labels {
		operator, ok := labelOperators[r.Operator()]
		if !ok {
			continue
		}
		one := metav1.LabelSelectorRequirement{Key: r.Key(), Operator: operator}
		if values := r.ValuesUnsorted(); len(values) > 0 {
			one.Values = values
		}
		out = append(out, one)
	}
	return out
}

// olderSpec converts the spec to v1beta1.
func olderSpec(spec *authorizationv1.SubjectAccessReviewSpec) authorizationv1beta1.SubjectAccessReviewSpec {
	return authorizationv1beta1.SubjectAccessReviewSpec{
		ResourceAttributes:    (*authorizationv1beta1.ResourceAttributes)(spec.ResourceAttributes),
		NonResourceAttributes: (*authorizationv1beta1.NonResourceAttributes)(spec.NonResourceAttributes),
		User:                  spec.User, UID: spec.UID, Groups: spec.Groups,
		Extra: request.ExtraAs[authorizationv1beta1.ExtraValue](spec.Extra),
	}
}
