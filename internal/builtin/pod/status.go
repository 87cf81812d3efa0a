package pod

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// silent warns of nothing.
func silent(context.Context, *resource.Change) []string { return nil }

// revertToStatus keeps what a write of the status leaves alone. Clients that do not know
// a field of it do not lose it.
func revertToStatus(pod, old map[string]any) {
	kind.Put(pod, "spec", old["spec"])
	kind.Put(object.Metadata(pod), "ownerReferences", object.Metadata(old)["ownerReferences"])
	now, was := kind.Child(pod, "status"), kind.Tree(old, "status")
	for _, name := range []string{
		"qosClass", "observedGeneration", "resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses",
	} {
		if now[name] == nil {
			kind.Put(now, name, was[name])
		}
	}
	generations := map[string][]any{}
	for _, c := range kind.List(was, "conditions") {
		c, _ := c.(map[string]any)
		of := kind.Text(c, "type")
		generations[of] = append(generations[of], c["observedGeneration"])
	}
	for _, c := range kind.List(now, "conditions") {
		c, _ := c.(map[string]any)
		of := kind.Text(c, "type")
		if left := generations[of]; len(left) > 0 {
			generations[of] = left[1:]
			if c["observedGeneration"] == nil {
				kind.Put(c, "observedGeneration", left[0])
			}
		}
	}
}

// warnStatus warns of addresses that others may read differently.
func warnStatus(pod, _ map[string]any) (warnings []string) {
	for _, list := range []string{"podIPs", "hostIPs"} {
		for i, entry := range kind.List(pod, "status", list) {
			entry, _ := entry.(map[string]any)
			at := field.NewPath("status", list).Index(i).Child("ip")
			warnings = append(warnings, kind.WarnOfIP(at, fmt.Sprint(entry["ip"]))...)
		}
	}
	return warnings
}
