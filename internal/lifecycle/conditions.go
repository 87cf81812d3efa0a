package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/object"
)

// A condition is one condition of a namespace that is being terminated.
type condition struct {
	kind            corev1.NamespaceConditionType
	status          corev1.ConditionStatus
	reason, message string
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
		return condition{kind, corev1.ConditionFalse, okReason, okMessage}
	}
	return condition{kind, corev1.ConditionTrue, reason, message}
}

// showContent writes what was found to the status of a namespace, if that says
// anything else.
func (l *Lifecycle) showContent(ctx context.Context, n *namespace, found *contents) error {
	now := object.Timestamp(l.Now())
	return l.change(ctx, n.definition, n.key, n.UID, "status", func(t object.Tree) bool {
		if !object.Deleting(t) {
			return false
		}
		status, _ := t["status"].(object.Tree)
		if status == nil {
			status = object.Tree{}
			t["status"] = status
		}
		list, _ := status["conditions"].([]any)
		changed := status["phase"] != string(corev1.NamespaceTerminating)
		status["phase"] = string(corev1.NamespaceTerminating)
		for _, c := range found.conditions() {
			list, changed = c.set(list, now, changed)
		}
		status["conditions"] = list
		return changed
	})
}

// set returns a list of conditions in which c is what it says, and whether that
// was changed, or changed before.
func (c *condition) set(list []any, now string, changed bool) ([]any, bool) {
	i := slices.IndexFunc(list, func(v any) bool {
		old, _ := v.(object.Tree)
		return old["type"] == string(c.kind)
	})
	wanted := object.Tree{
		"type": string(c.kind), "status": string(c.status), "reason": c.reason, "message": c.message, "lastTransitionTime": now,
	}
	if i < 0 {
		return append(list, wanted), true
	}
	old, _ := list[i].(object.Tree)
	if old["status"] == wanted["status"] {
		wanted["lastTransitionTime"] = old["lastTransitionTime"]
		changed = changed || old["reason"] != wanted["reason"] || old["message"] != wanted["message"]
	} else {
		changed = true
	}
	list[i] = wanted
	return list, changed
}
