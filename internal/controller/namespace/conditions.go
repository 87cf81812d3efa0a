package namespace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
)

// conditions returns the conditions of a namespace, in the order and words of the namespace
// controller of Kubernetes.
func (c *contents) conditions() []controller.Condition {
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
	return []controller.Condition{
		condition(corev1.NamespaceDeletionDiscoveryFailure, discovery, "DiscoveryFailed", discovery,
			"ResourcesDiscovered", "All resources successfully discovered"),
		condition(corev1.NamespaceDeletionGVParsingFailure, "", "", "",
			"ParsedGroupVersions", "All legacy kube types successfully parsed"),
		condition(corev1.NamespaceDeletionContentFailure, strings.Join(messages, ", "), "ContentDeletionFailed",
			fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(messages), strings.Join(messages, ", ")),
			"ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
		condition(corev1.NamespaceContentRemaining, strings.Join(resources, ", "), "SomeResourcesRemain",
			"Some resources are remaining: "+strings.Join(resources, ", "),
			"ContentRemoved", "All content successfully removed"),
		condition(corev1.NamespaceFinalizersRemaining, strings.Join(finalizers, ", "), "SomeFinalizersRemain",
			"Some content in the namespace has finalizers remaining: "+strings.Join(finalizers, ", "),
			"ContentHasNoFinalizers", "All content-preserving finalizers finished"),
	}
}

// condition returns a condition that is true if something is wrong.
func condition(kind corev1.NamespaceConditionType, wrong, reason, message, okReason, okMessage string) controller.Condition {
	if wrong == "" {
		return controller.Condition{Type: string(kind), Reason: okReason, Message: okMessage}
	}
	return controller.Condition{Type: string(kind), Status: true, Reason: reason, Message: message}
}

// showContent writes the conditions to the status of a namespace, if they have changed.
func (c *Controller) showContent(ctx context.Context, n *controller.Namespace, found *contents) error {
	now := object.Timestamp(c.objects.Now())
	return c.objects.Change(ctx, n.Kind, n.Key, n.UID, "status", func(t object.Tree) bool {
		if !object.Deleting(t) {
			return false
		}
		changed := controller.SetConditions(t, now, found.conditions()...)
		status := t["status"].(object.Tree)
		changed = changed || status["phase"] != string(corev1.NamespaceTerminating)
		status["phase"] = string(corev1.NamespaceTerminating)
		return changed
	})
}
