package pod

import (
	"context"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// keepMetadata reverts the metadata that a write of a part of a pod cannot change.
func keepMetadata(pod, old map[string]any) {
	now, was := object.Metadata(pod), object.Metadata(old)
	for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		kind.Put(now, name, was[name])
	}
}

// revertToEphemeralContainers reverts everything except ephemeral containers.
func revertToEphemeralContainers(pod, old map[string]any) {
	keepMetadata(pod, old)
	containers := kind.Value(pod, "spec", "ephemeralContainers")
	kind.Put(pod, "spec", old["spec"])
	kind.Put(pod, "status", old["status"])
	kind.Put(kind.Child(pod, "spec"), "ephemeralContainers", containers)
}

// revertToResources reverts everything that a resize does not change. If the containers differ,
// validation rejects the update.
func revertToResources(_ context.Context, c *resource.Change) {
	pod, old := c.Object, c.Old
	spec, oldSpec := kind.Tree(pod, "spec"), kind.Tree(old, "spec")
	lists := map[string][]any{}
	for _, name := range []string{"containers", "initContainers"} {
		if len(kind.List(spec, name)) != len(kind.List(oldSpec, name)) {
			return
		}
		lists[name] = resized(kind.List(spec, name), kind.List(oldSpec, name))
	}
	whole, volumes := spec["resources"], spec["volumes"]
	keepMetadata(pod, old)
	kind.Put(pod, "spec", oldSpec)
	kind.Put(pod, "status", old["status"])
	spec = kind.Child(pod, "spec")
	if c.Gates.On(gate.InPlacePodLevelResourcesVerticalScaling) {
		kind.Put(spec, "resources", whole)
	}
	if c.Gates.On(gate.InPlacePodVerticalScalingMemoryBackedVolumes) {
		kind.Put(spec, "volumes", volumes)
	}
	for name, list := range lists {
		if len(list) > 0 {
			spec[name] = list
		}
	}
}

// resized returns the old containers with the new resources, or the new containers if they are
// others.
func resized(containers, old []any) []any {
	out := make([]any, len(old))
	for i := range old {
		now := asTree(containers[i])
		was, _ := object.Clone(old[i]).(map[string]any)
		if kind.Text(now, "name") != kind.Text(was, "name") {
			return containers
		}
		kind.Put(was, "resources", now["resources"])
		kind.Put(was, "resizePolicy", now["resizePolicy"])
		out[i] = was
	}
	return out
}

// revertToStatus reverts the spec, and restores status fields that a client omits because it does
// not know them. It also reverts owner references and the deletion timestamp, which the client may
// send with any value.
func revertToStatus(pod, old map[string]any) {
	kind.Put(pod, "spec", old["spec"])
	for _, name := range []string{"ownerReferences", "deletionTimestamp"} {
		kind.Put(object.Metadata(pod), name, object.Metadata(old)[name])
	}
	status, was := kind.Child(pod, "status"), kind.Tree(old, "status")
	for _, name := range []string{
		"qosClass", "resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses", "observedGeneration",
	} {
		if status[name] == nil {
			kind.Put(status, name, was[name])
		}
	}
	keepGenerations(kind.List(status, "conditions"), kind.List(was, "conditions"))
}

// keepGenerations restores missing observedGenerations of conditions. Of several conditions of a
// type, only the first counts.
func keepGenerations(conditions, old []any) {
	before := map[string][]any{}
	for _, c := range old {
		t := kind.Text(asTree(c), "type")
		before[t] = append(before[t], asTree(c)["observedGeneration"])
	}
	for _, c := range conditions {
		condition := asTree(c)
		t := kind.Text(condition, "type")
		if len(before[t]) == 0 {
			continue
		}
		if number(condition, "observedGeneration") == 0 && before[t][0] != nil {
			condition["observedGeneration"] = before[t][0]
		}
		before[t] = before[t][1:]
	}
}
