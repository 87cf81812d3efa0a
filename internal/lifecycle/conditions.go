package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/object"
)

// A condition is one condition in the status of an object.
type condition struct {
	kind               string
	status             bool
	reason, message    string
	observedGeneration int64 // 0 where the condition does not say
}

// conditions say what was found in a namespace, in the order and words of the
// namespace controller of Kubernetes.
func (c *contents) conditions() []condition {
	var messages []string
	for _, err := range c.errs {
		messages = append(messages, err.Error())
	}
	slices.Sort(messages)
	var resources, finalizers []string
	for r, n := range c.counts {
		resources = append(resources, fmt.Sprintf("%s.%s has %d resource instances", r.Resource, r.Group, n))
	}
	slices.Sort(resources)
	for f, n := range c.finalizers {
		finalizers = append(finalizers, fmt.Sprintf("%s in %d resource instances", f, n))
	}
	slices.Sort(finalizers)
	discovery := ""
	if c.unrefreshed != nil {
		discovery = c.unrefreshed.Error()
	}
	return []condition{
		said(corev1.NamespaceDeletionDiscoveryFailure, discovery, "DiscoveryFailed", discovery,
			"ResourcesDiscovered", "All resources successfully discovered"),
		said(corev1.NamespaceDeletionGVParsingFailure, "", "", "",
			"ParsedGroupVersions", "All legacy kube types successfully parsed"),
		said(corev1.NamespaceDeletionContentFailure, strings.Join(messages, ", "), "ContentDeletionFailed",
			fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(messages), strings.Join(messages, ", ")),
			"ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
		said(corev1.NamespaceContentRemaining, strings.Join(resources, ", "), "SomeResourcesRemain",
			"Some resources are remaining: "+strings.Join(resources, ", "),
			"ContentRemoved", "All content successfully removed"),
		said(corev1.NamespaceFinalizersRemaining, strings.Join(finalizers, ", "), "SomeFinalizersRemain",
			"Some content in the namespace has finalizers remaining: "+strings.Join(finalizers, ", "),
			"ContentHasNoFinalizers", "All content-preserving finalizers finished"),
	}
}

// said is a condition that is true where there is something wrong.
func said(kind corev1.NamespaceConditionType, wrong, reason, message, okReason, okMessage string) condition {
	if wrong == "" {
		return condition{kind: string(kind), reason: okReason, message: okMessage}
	}
	return condition{kind: string(kind), status: true, reason: reason, message: message}
}

// showContent writes what was found to the status of a namespace, if that says
// anything else.
func (l *Lifecycle) showContent(ctx context.Context, n *namespace, found *contents) error {
	now := object.Timestamp(l.Now())
	return l.change(ctx, n.definition, n.key, n.UID, "status", func(t object.Tree) bool {
		if !object.Deleting(t) {
			return false
		}
		changed := setConditions(t, now, found.conditions()...)
		status := t["status"].(object.Tree)
		changed = changed || status["phase"] != string(corev1.NamespaceTerminating)
		status["phase"] = string(corev1.NamespaceTerminating)
		return changed
	})
}

// set returns a list of conditions in which c is what it says, and whether that
// was changed, or changed before.
func (c *condition) set(list []any, now string, changed bool) ([]any, bool) {
	wanted := object.Tree{
		"type": c.kind, "status": string(corev1.ConditionFalse), "reason": c.reason, "message": c.message, "lastTransitionTime": now,
	}
	if c.status {
		wanted["status"] = string(corev1.ConditionTrue)
	}
	if c.observedGeneration != 0 {
		wanted["observedGeneration"] = c.observedGeneration
	}
	i := slices.IndexFunc(list, func(v any) bool {
		old, _ := v.(object.Tree)
		return old["type"] == c.kind
	})
	if i < 0 {
		return append(list, wanted), true
	}
	old, _ := list[i].(object.Tree)
	if old["status"] == wanted["status"] {
		wanted["lastTransitionTime"] = old["lastTransitionTime"]
	}
	changed = changed || !object.Equal(old, wanted)
	list[i] = wanted
	return list, changed
}

// setConditions writes conditions to the status of t and reports whether that
// changed anything.
func setConditions(t object.Tree, now string, conditions ...condition) (changed bool) {
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
