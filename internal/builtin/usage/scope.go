package usage

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// operators map the operators of scopes to those of selectors.
var operators = map[corev1.ScopeSelectorOperator]selection.Operator{
	corev1.ScopeSelectorOpIn:           selection.In,
	corev1.ScopeSelectorOpNotIn:        selection.NotIn,
	corev1.ScopeSelectorOpExists:       selection.Exists,
	corev1.ScopeSelectorOpDoesNotExist: selection.DoesNotExist,
}

// selects reports whether a scope selects one of some values, or an object without values.
func selects(scope corev1.ScopedResourceSelectorRequirement, values ...string) (bool, error) {
	operator, ok := operators[scope.Operator]
	if !ok {
		return false, fmt.Errorf("failed to parse and convert selector: %q is not a valid scope selector operator", scope.Operator)
	}
	r, err := labels.NewRequirement(string(scope.ScopeName), operator, scope.Values)
	if err != nil {
		return false, fmt.Errorf("failed to parse and convert selector: %w", err)
	}
	if len(values) == 0 {
		return r.Matches(labels.Set{}), nil
	}
	for _, v := range values {
		if r.Matches(labels.Set{string(scope.ScopeName): v}) {
			return true, nil
		}
	}
	return false, nil
}

// present returns the values that are not empty.
func present(values ...string) (all []string) {
	for _, v := range values {
		if v != "" {
			all = append(all, v)
		}
	}
	return all
}
