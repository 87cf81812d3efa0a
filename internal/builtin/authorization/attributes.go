package authorization

import (
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
)

// userOf returns the user of a review.
func userOf(spec *authorizationv1.SubjectAccessReviewSpec) *request.User {
	return &request.User{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: request.ExtraAs[[]string](spec.Extra)}
}

// attributesOf returns the attributes of a review. One of r and n is not nil.
func attributesOf(u *request.User, r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes) *authz.Attributes {
	if r == nil {
		return &authz.Attributes{User: u, Info: request.Info{Verb: n.Verb, Path: n.Path}}
	}
	a := &authz.Attributes{
		User: u, Selectors: &authz.Selectors{},
		Info: request.Info{
			IsResource: true, Verb: r.Verb, Group: r.Group, Version: r.Version, Namespace: r.Namespace,
			Resource: r.Resource, Subresource: r.Subresource, Name: r.Name,
		},
	}
	if a.Version == "" {
		a.Version = "*"
	}
	if l := r.LabelSelector; l != nil {
		a.Selectors.Labels, a.Selectors.LabelsErr = labelsOf(l)
	}
	if f := r.FieldSelector; f != nil {
		a.Selectors.Fields, a.Selectors.FieldsErr = fieldsOf(f)
	}
	return a
}

// labelsOf parses a selector. It skips invalid requirements: without them the request is broader,
// so this grants nothing more.
func labelsOf(s *authorizationv1.LabelSelectorAttributes) (labels.Requirements, error) {
	if len(s.Requirements) == 0 {
		selector, err := labels.Parse(s.RawSelector)
		if err != nil {
			return nil, err
		}
		all, _ := selector.Requirements()
		return all, nil
	}
	var all labels.Requirements
	var errs []error
	for _, r := range s.Requirements {
		operator, ok := operators[r.Operator]
		if !ok {
			errs = append(errs, fmt.Errorf("%q is not a valid label selector operator", r.Operator))
			continue
		}
		one, err := labels.NewRequirement(r.Key, operator, r.Values)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, *one)
	}
	return all, utilerrors.NewAggregate(errs)
}

var operators = map[metav1.LabelSelectorOperator]selection.Operator{
	metav1.LabelSelectorOpIn:           selection.In,
	metav1.LabelSelectorOpNotIn:        selection.NotIn,
	metav1.LabelSelectorOpExists:       selection.Exists,
	metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
}

// fieldsOf is labelsOf for fields, whose requirements have one value.
func fieldsOf(s *authorizationv1.FieldSelectorAttributes) (fields.Requirements, error) {
	if len(s.Requirements) == 0 {
		selector, err := fields.ParseSelector(s.RawSelector)
		if err != nil {
			return nil, err
		}
		return selector.Requirements(), nil
	}
	var all fields.Requirements
	var errs []error
	for _, r := range s.Requirements {
		one, err := fieldOf(r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, one)
	}
	return all, utilerrors.NewAggregate(errs)
}

func fieldOf(r metav1.FieldSelectorRequirement) (one fields.Requirement, err error) {
	if len(r.Values) > 1 {
		return one, errors.New("fieldSelectors do not yet support multiple values")
	}
	var operator selection.Operator
	switch r.Operator {
	case metav1.FieldSelectorOpIn:
		operator = selection.Equals
	case metav1.FieldSelectorOpNotIn:
		operator = selection.NotEquals
	case metav1.FieldSelectorOpExists, metav1.FieldSelectorOpDoesNotExist:
		return one, fmt.Errorf("fieldSelectors do not yet support %v", r.Operator)
	default:
		return one, fmt.Errorf("%q is not a valid field selector operator", r.Operator)
	}
	if len(r.Values) == 0 { // validation ensures it
		return one, errors.New("fieldSelectors in must have one value")
	}
	return fields.Requirement{Field: r.Key, Operator: operator, Value: r.Values[0]}, nil
}

// evaluationError reports parts of the selectors that could not be parsed.
func evaluationError(a *authz.Attributes, err error) string {
	var all []string
	if err != nil {
		all = append(all, err.Error())
	}
	ignored := func(selector string, read int, err error) {
		switch {
		case err != nil && read > 0:
			all = append(all, "spec.resourceAttributes."+selector+" partially ignored due to parse error")
		case err != nil:
			all = append(all, "spec.resourceAttributes."+selector+" ignored due to parse error")
		}
	}
	if s := a.Selectors; s != nil {
		ignored("fieldSelector", len(s.Fields), s.FieldsErr)
		ignored("labelSelector", len(s.Labels), s.LabelsErr)
	}
	return strings.Join(all, "; ")
}
