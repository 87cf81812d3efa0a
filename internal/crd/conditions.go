package crd

import (
	"slices"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// findCondition returns the condition of a type, or nil.
func findCondition(status *v1.CustomResourceDefinitionStatus, t v1.CustomResourceDefinitionConditionType) *condition {
	i := slices.IndexFunc(status.Conditions, func(c condition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &status.Conditions[i]
}

// isTrue reports whether a condition is there and true.
func isTrue(status *v1.CustomResourceDefinitionStatus, t v1.CustomResourceDefinitionConditionType) bool {
	c := findCondition(status, t)
	return c != nil && c.Status == v1.ConditionTrue
}

// setCondition puts c in place of the condition of its type. The time of the
// last transition only moves when the status does.
func setCondition(status *v1.CustomResourceDefinitionStatus, c condition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now)
	old := findCondition(status, c.Type)
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

func removeCondition(status *v1.CustomResourceDefinitionStatus, t v1.CustomResourceDefinitionConditionType) {
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c condition) bool { return c.Type == t })
}
