package pod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
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

// validateStatus checks what a status may say after the one before it.
func validateStatus(pod, old map[string]any) (errs field.ErrorList) {
	at := field.NewPath("status")
	now, was := kind.Tree(pod, "status"), kind.Tree(old, "status")
	if node := kind.Text(now, "nominatedNodeName"); node != "" && node != kind.Text(was, "nominatedNodeName") {
		errs = append(errs, kind.Invalids(at.Child("nominatedNodeName"), node, apivalidation.NameIsDNSSubdomain(node, false))...)
		if kind.Text(old, "spec", "nodeName") != "" {
			errs = append(errs, field.Forbidden(at.Child("nominatedNodeName"), "may not be set on pods that are already bound to a node"))
		}
	}
	if seen, _ := now["observedGeneration"].(int64); seen < 0 {
		errs = append(errs, field.Invalid(at.Child("observedGeneration"), seen, "must be a non-negative integer"))
	}
	if class := kind.Text(now, "qosClass"); class != kind.Text(was, "qosClass") {
		errs = append(errs, field.Invalid(at.Child("qosClass"), class, "field is immutable"))
	}
	if kind.Text(old, "spec", "restartPolicy") == string(corev1.RestartPolicyAlways) {
		return errs
	}
	return append(errs, validateEnded(now, was, kind.Text(old, "spec", "restartPolicy"), at.Child("containerStatuses"))...)
}

// validateEnded checks that no container runs again that has ended and is not to be
// started again.
func validateEnded(now, was map[string]any, policy string, at *field.Path) (errs field.ErrorList) {
	states := map[string]map[string]any{}
	for _, c := range kind.List(now, "containerStatuses") {
		c, _ := c.(map[string]any)
		states[kind.Text(c, "name")] = kind.Tree(c, "state")
	}
	for i, c := range kind.List(was, "containerStatuses") {
		c, _ := c.(map[string]any)
		name := kind.Text(c, "name")
		ended := kind.Tree(c, "state", "terminated")
		state, known := states[name]
		if ended == nil || !known || state["terminated"] != nil {
			continue
		}
		if code, _ := ended["exitCode"].(int64); code != 0 && policy == string(corev1.RestartPolicyOnFailure) {
			continue
		}
		errs = append(errs, field.Forbidden(at.Index(i).Child("state"), "may not be transitioned to non-terminated state"))
	}
	return errs
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
