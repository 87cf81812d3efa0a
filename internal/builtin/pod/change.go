package pod

import (
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
)

// keepMetadata keeps what a write of a part of a pod leaves alone of its metadata.
func keepMetadata(pod, old map[string]any) {
	now, was := object.Metadata(pod), object.Metadata(old)
	for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		kind.Put(now, name, was[name])
	}
}

// revertToEphemeralContainers leaves everything but ephemeral containers alone.
func revertToEphemeralContainers(pod, old map[string]any) {
	keepMetadata(pod, old)
	containers := kind.Value(pod, "spec", "ephemeralContainers")
	kind.Put(pod, "spec", old["spec"])
	kind.Put(pod, "status", old["status"])
	kind.Put(kind.Child(pod, "spec"), "ephemeralContainers", containers)
}

// revertToResources leaves everything alone but resources, of containers and of the whole
// pod. If the containers are not those of the old pod, that is for the validation to say.
func revertToResources(pod, old map[string]any) {
	spec, oldSpec := kind.Tree(pod, "spec"), kind.Tree(old, "spec")
	lists := map[string][]any{}
	for _, name := range []string{"containers", "initContainers"} {
		if len(kind.List(spec, name)) != len(kind.List(oldSpec, name)) {
			return
		}
		lists[name] = resized(kind.List(spec, name), kind.List(oldSpec, name))
	}
	whole := spec["resources"]
	keepMetadata(pod, old)
	kind.Put(pod, "spec", oldSpec)
	kind.Put(pod, "status", old["status"])
	spec = kind.Child(pod, "spec")
	kind.Put(spec, "resources", whole)
	for name, list := range lists {
		if len(list) > 0 {
			spec[name] = list
		}
	}
}

// resized returns old containers with the resources of new ones, or the new ones if they
// are others.
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

// revertToStatus leaves the spec alone, and of the status what clients leave out that do
// not know it. Of the metadata, a write of the status may say anything of owners and of when
// the pod was deleted, and changes neither.
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

// keepGenerations keeps the generations that conditions were observed at. Of conditions of
// one type, the first is taken for the first.
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
