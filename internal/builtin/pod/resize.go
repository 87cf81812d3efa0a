package pod

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
)

// resizable are the fields that a resize changes.
var resizable = []string{
	"spec.containers.*.resources", "spec.containers.*.resizePolicy",
	"spec.initContainers.*.resources", "spec.initContainers.*.resizePolicy",
}

// containerLists are those whose containers may be resized.
var containerLists = []string{"containers", "initContainers"}

// revertToResize keeps everything but the resources of containers and of the pod. What is
// about other containers than there are is left for validation to refuse.
func revertToResize(pod, old map[string]any) {
	sent := kind.Child(pod, "spec")
	spec, _ := object.Clone(old["spec"]).(map[string]any)
	for _, list := range containerLists {
		now, was := kind.List(sent, list), kind.List(spec, list)
		if len(now) != len(was) {
			return
		}
		if !sameContainers(now, was) {
			spec[list] = now
			continue
		}
		for i := range was {
			for _, name := range []string{"resources", "resizePolicy"} {
				kind.Put(was[i].(map[string]any), name, now[i].(map[string]any)[name])
			}
		}
	}
	if resources := sent["resources"]; resources != nil {
		spec["resources"] = resources // who does not know them keeps them
	}
	pod["spec"] = spec
	kind.Put(pod, "status", old["status"])
	keepMetadata(pod, old)
}

// sameContainers reports whether two lists of one length have containers of the same
// names in the same order.
func sameContainers(a, b []any) bool {
	for i := range a {
		x, isObject := a[i].(map[string]any)
		y, areObjects := b[i].(map[string]any)
		if !isObject || !areObjects || kind.Text(x, "name") != kind.Text(y, "name") {
			return false
		}
	}
	return true
}

// validateResize checks that only cpu and memory change.
func validateResize(pod, old map[string]any) (errs field.ErrorList) {
	at := field.NewPath("spec")
	switch {
	case isStatic(old):
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
	case kind.Text(old, "spec", "os", "name") == string(corev1.Windows):
		return field.ErrorList{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
	}
	class := kind.Text(old, "status", "qosClass")
	if class == "" {
		class = string(qosOf(old))
	}
	if class != string(qosOf(pod)) {
		errs = append(errs, field.Invalid(at, kind.Text(pod, "status", "qosClass"), "Pod QOS Class may not change as a result of resizing"))
	}
	if !canResize(old) {
		errs = append(errs, field.Forbidden(at, "Pod running on node without support for resize"))
	}
	if others := validateContainers(pod, old, at); len(others) > 0 {
		return append(errs, others...)
	}
	for _, list := range containerLists {
		now, was := kind.List(pod, "spec", list), kind.List(old, "spec", list)
		for i := range was {
			errs = append(errs, validateResources(now[i].(map[string]any), was[i].(map[string]any), at, list, i)...)
		}
	}
	return errs
}

// canResize reports whether the node of a pod is known to resize, or nothing is known.
func canResize(pod map[string]any) bool {
	for _, s := range kind.List(pod, "status", "containerStatuses") {
		s, _ := s.(map[string]any)
		if kind.Value(s, "state", "running") != nil {
			return s["resources"] != nil
		}
	}
	return true
}

// validateContainers checks that the containers are those that there were.
func validateContainers(pod, old map[string]any, at *field.Path) (errs field.ErrorList) {
	for _, list := range containerLists {
		now, was := kind.List(pod, "spec", list), kind.List(old, "spec", list)
		if len(now) != len(was) {
			errs = append(errs, field.Forbidden(at.Child(list), list+" may not be added or removed on resize"))
			continue
		}
		for i := range was {
			if !sameContainers(now[i:i+1], was[i:i+1]) {
				errs = append(errs, field.Forbidden(at.Child(list).Index(i).Child("name"), list+" may not be renamed or reordered on resize"))
			}
		}
	}
	return errs
}

// validateResources checks what a resize makes of the resources of a container.
func validateResources(now, was map[string]any, at *field.Path, list string, i int) (errs field.ErrorList) {
	in := at.Child(list).Index(i)
	for _, of := range []string{"requests", "limits"} {
		is := kind.Tree(now, "resources", of)
		for name := range kind.Tree(was, "resources", of) {
			if _, there := is[name]; !there {
				errs = append(errs, field.Forbidden(in.Child("resources", of), "resource "+of+" cannot be removed"))
				break
			}
		}
	}
	changed := !object.Equal(now["resources"], was["resources"])
	others := !object.Equal(withoutCPUAndMemory(now), withoutCPUAndMemory(was))
	switch {
	case list == "containers":
		if others || !object.Equal(now["resizePolicy"], was["resizePolicy"]) {
			errs = append(errs, field.Forbidden(at, "only cpu and memory resources are mutable"))
		}
		return errs
	case others || !object.Equal(now["resizePolicy"], was["resizePolicy"]):
		errs = append(errs, field.Forbidden(in, "only cpu and memory resources for init or sidecar containers are mutable"))
	}
	if !changed || kind.Text(now, "restartPolicy") == string(corev1.ContainerRestartPolicyAlways) {
		return errs
	}
	for _, p := range kind.List(now, "resizePolicy") {
		if p, _ := p.(map[string]any); kind.Text(p, "restartPolicy") == string(corev1.RestartContainer) {
			errs = append(errs, field.Forbidden(in, "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"))
		}
	}
	return errs
}

// withoutCPUAndMemory is what a resize may not change of the resources of a container.
func withoutCPUAndMemory(container map[string]any) map[string]any {
	out := maps.Clone(kind.Tree(container, "resources"))
	for _, of := range []string{"requests", "limits"} {
		list := maps.Clone(kind.Tree(out, of))
		delete(list, string(corev1.ResourceCPU))
		delete(list, string(corev1.ResourceMemory))
		if delete(out, of); len(list) > 0 {
			out[of] = list
		}
	}
	return out
}
