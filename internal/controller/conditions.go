package controller

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
)

// A Condition is one condition in the status of an object.
type Condition struct {
	Type               string
	Status             bool
	Reason, Message    string
	ObservedGeneration int64 // 0 if not set
}

// SetConditions updates conditions in the status of t and reports whether anything changed. The
// transition time changes only if the status of the condition does.
func SetConditions(t object.Tree, now string, conditions ...Condition) (changed bool) {
	status, _ := t["status"].(object.Tree)
	if status == nil {
		status = object.Tree{}
		t["status"] = status
	}
	list, _ := status["conditions"].([]any)
	for _, c := range conditions {
		list, changed = c.set(list, now, changed)
	}
	status["conditions"] = list
	return changed
}

// set updates c in a list of conditions. It reports whether this or an earlier call changed
// anything.
func (c *Condition) set(list []any, now string, changed bool) ([]any, bool) {
	wanted := object.Tree{
		"type": c.Type, "status": string(metav1.ConditionFalse), "reason": c.Reason, "message": c.Message, "lastTransitionTime": now,
	}
	if c.Status {
		wanted["status"] = string(metav1.ConditionTrue)
	}
	if c.ObservedGeneration != 0 {
		wanted["observedGeneration"] = c.ObservedGeneration
	}
	i := slices.IndexFunc(list, func(v any) bool {
		old, _ := v.(object.Tree)
		return old["type"] == c.Type
	})
	if i < 0 {
		return append(list, wanted), true
	}
	old, _ := list[i].(object.Tree)
	if at := old["lastTransitionTime"]; at != nil && old["status"] == wanted["status"] {
		wanted["lastTransitionTime"] = at
	}
	if at := old["observedGeneration"]; at != nil && c.ObservedGeneration == 0 {
		wanted["observedGeneration"] = at
	}
	changed = changed || !object.Equal(old, wanted)
	list[i] = wanted
	return list, changed
}
