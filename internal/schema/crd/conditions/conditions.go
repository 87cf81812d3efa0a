// Package conditions reads and changes the conditions in the status of a CustomResourceDefinition. It
// does not decide which conditions there are, or when they are true.
package conditions

import (
	"slices"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Find returns the condition of a type, or nil.
func Find(status *v1.CustomResourceDefinitionStatus, t v1.CustomResourceDefinitionConditionType) *v1.CustomResourceDefinitionCondition {
	i := slices.IndexFunc(status.Conditions, func(c v1.CustomResourceDefinitionCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &status.Conditions[i]
}

// IsTrue reports whether a condition is there and true.
func IsTrue(status *v1.CustomResourceDefinitionStatus, t v1.CustomResourceDefinitionConditionType) bool {
	c := Find(status, t)
	return c != nil && c.Status == v1.ConditionTrue
}

// Set puts c in place of the condition of its type. The time of the last
// transition only moves when the status does.
func Set(status *v1.CustomResourceDefinitionStatus, c v1.CustomResourceDefinitionCondition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now)
	old := Find(status, c.Type)
	if old == nil {
		status.Conditions = append(status.Conditions, c)
		return
	}
	if old.Status == c.Status && !old.LastTransitionTime.IsZero() {
		c.LastTransitionTime = old.LastTransitionTime
	}
	c.ObservedGeneration = old.ObservedGeneration
	*old = c
}

// Remove removes the condition of a type.
func Remove(status *v1.CustomResourceDefinitionStatus, t v1.CustomResourceDefinitionConditionType) {
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c v1.CustomResourceDefinitionCondition) bool { return c.Type == t })
}
