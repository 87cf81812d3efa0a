package nodes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// podResource and nodeResource are the names in errors of client-go listers.
var podResource, nodeResource = corev1.Resource("pod"), corev1.Resource("node")

// pod checks a write of a pod: a node may write the status of pods bound to it, and create mirror
// pods.
func (q *question) pod(ctx context.Context) error {
	switch q.Target.Subresource {
	case "":
		switch q.Operation {
		case registry.Create:
			return q.mirrorPod(ctx)
		case registry.Delete:
			old, err := q.Old(ctx)
			if err == nil && kind.Text(old, "spec", "nodeName") != q.node {
				err = q.refuse("node %q can only delete pods with spec.nodeName set to itself", q.node)
			}
			return err
		}
		return q.refuse("unexpected operation %q, node %q can only create and delete mirror pods", q.Operation, q.node)
	case "status":
		return q.podStatus(ctx)
	case "eviction":
		return q.eviction(ctx)
	}
	return q.refuse("unexpected pod subresource %q, only 'status' and 'eviction' are allowed", q.Target.Subresource)
}

// mirrorPod checks the create of a mirror pod, the API object of a static pod. It must not refer to
// other objects.
func (q *question) mirrorPod(ctx context.Context) error {
	if _, mirrors := kind.Tree(q.Object, "metadata", "annotations")[corev1.MirrorPodAnnotationKey]; !mirrors {
		return q.refuse("pod does not have %q annotation, node %q can only create mirror pods", corev1.MirrorPodAnnotationKey, q.node)
	}
	pod := kind.ValueOf[corev1.Pod](q.Object)
	if pod.Spec.NodeName != q.node {
		return q.refuse("node %q can only create pods with spec.nodeName set to itself", q.node)
	}
	if len(pod.OwnerReferences) > 1 {
		return q.refuse("node %q can only create pods with a single owner reference set to itself", q.node)
	}
	if len(pod.OwnerReferences) == 0 {
		return q.refuse("node %q can only create pods with an owner reference set to itself", q.node)
	}
	switch owner := pod.OwnerReferences[0]; {
	case owner.APIVersion != corev1.SchemeGroupVersion.String() || owner.Kind != "Node" || owner.Name != q.node:
		return q.refuse("node %q can only create pods with an owner reference set to itself", q.node)
	case owner.Controller == nil || !*owner.Controller:
		return q.refuse("node %q can only create pods with a controller owner reference set to itself", q.node)
	case owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion:
		return q.refuse("node %q must not set blockOwnerDeletion on an owner reference", q.node)
	}
	node, err := q.by.Nodes.Get(ctx, "", q.node)
	switch {
	case err != nil:
		return q.refuse("error looking up node %s to verify uid: %v", q.node, err)
	case node == nil:
		return status.NotFound(nodeResource, q.node)
	case pod.OwnerReferences[0].UID != node.UID:
		return q.refuse("node %s UID mismatch: expected %s got %s", q.node, pod.OwnerReferences[0].UID, node.UID)
	}
	uses, err := usedBy(&pod.Spec)
	if err != nil {
		return q.refuse("error checking mirror pod for API references: %w", err)
	}
	if uses != "" {
		return q.refuse("node %q can not create pods that reference %s", q.node, uses)
	}
	return nil
}

// podStatus checks a status of a pod: the pod is bound to the node, and the status of its resource
// claims does not change.
func (q *question) podStatus(ctx context.Context) error {
	if q.Operation != registry.Update {
		return q.refuse("unexpected operation %q", q.Operation)
	}
	old, err := q.Old(ctx)
	if err != nil {
		return err
	}
	if kind.Text(old, "spec", "nodeName") != q.node {
		return q.refuse("node %q can only update pod status for pods with spec.nodeName set to itself", q.node)
	}
	if now, was := kind.Tree(q.Object, "metadata", "labels"), kind.Tree(old, "metadata", "labels"); (len(now) > 0 || len(was) > 0) && !object.Equal(now, was) {
		return q.refuse("node %q cannot update labels through pod status", q.node)
	}
	now, was := claimsOf(q.Object), claimsOf(old)
	switch {
	case !equality.Semantic.DeepEqual(now.ResourceClaimStatuses, was.ResourceClaimStatuses):
		return q.refuse("node %q cannot update resource claim statues", q.node)
	case !equality.Semantic.DeepEqual(now.ExtendedResourceClaimStatus, was.ExtendedResourceClaimStatus):
		return q.refuse("node %q cannot update extended resource claim status", q.node)
	case !equality.Semantic.DeepEqual(now.NodeAllocatableResourceClaimStatuses, was.NodeAllocatableResourceClaimStatuses):
		return q.refuse("node %q cannot update node allocatable resource claim statuses", q.node)
	}
	return nil
}

// claimsOf returns the part of a pod's status about resource claims.
func claimsOf(pod object.Tree) *corev1.PodStatus {
	part := object.Tree{}
	for _, field := range []string{"resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses"} {
		if v := kind.Value(pod, "status", field); v != nil {
			part[field] = v
		}
	}
	return kind.ValueOf[corev1.PodStatus](part)
}

// eviction checks that a node evicts only pods bound to it.
func (q *question) eviction(ctx context.Context) error {
	if q.Operation != registry.Create {
		return q.refuse("unexpected operation %s", q.Operation)
	}
	name := q.objectName()
	if name == "" {
		return q.refuse("could not determine pod from request data")
	}
	pod, err := q.podOf(ctx, name)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName != q.node {
		return q.refuse("node %s can only evict pods with spec.nodeName set to itself", q.node)
	}
	return nil
}

// podOf returns a pod in the namespace of the request.
func (q *question) podOf(ctx context.Context, name string) (*corev1.Pod, error) {
	pod, err := q.by.Pods.Read(ctx, q.Target.Namespace, name)
	switch {
	case err != nil:
		return nil, q.Forbidden(err)
	case pod == nil:
		return nil, status.NotFound(podResource, name)
	}
	return pod, nil
}
