package pod

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
)

// condition returns the first condition of a type in the status of a pod, or nil.
func condition(pod map[string]any, of corev1.PodConditionType) map[string]any {
	for _, c := range kind.List(pod, "status", "conditions") {
		if c, _ := c.(map[string]any); kind.Text(c, "type") == string(of) {
			return c
		}
	}
	return nil
}

// setCondition sets a condition in the status of a pod. Its transition time changes only with its
// status.
func setCondition(pod map[string]any, c corev1.PodCondition) {
	set := map[string]any{
		"type": string(c.Type), "status": string(c.Status), "lastProbeTime": nil,
		"lastTransitionTime": object.Timestamp(time.Now()),
	}
	if c.Reason != "" {
		set["reason"] = c.Reason
	}
	if c.Message != "" {
		set["message"] = c.Message
	}
	status := kind.Child(pod, "status")
	was := condition(pod, c.Type)
	if was == nil {
		status["conditions"] = append(kind.List(status, "conditions"), set)
		return
	}
	if was["status"] == set["status"] {
		set["lastTransitionTime"] = was["lastTransitionTime"]
	}
	clear(was)
	for name, value := range set {
		was[name] = value
	}
}

// isReady reports whether the condition Ready is true.
func isReady(pod map[string]any) bool {
	return kind.Text(condition(pod, corev1.PodReady), "status") == string(corev1.ConditionTrue)
}
