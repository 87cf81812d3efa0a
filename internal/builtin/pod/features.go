package pod

import (
	"strings"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/volume"
)

// A feature has the fields of a disabled feature of Kubernetes: paths, whose elements have one or
// several names.
type feature [][]string

func path(text string) []string { return strings.Split(text, ".") }

const (
	anyContainer = "containers|initContainers|ephemeralContainers."
	anyProbe     = anyContainer + "livenessProbe|readinessProbe|startupProbe."
	anyStatus    = "containerStatuses|initContainerStatuses|ephemeralContainerStatuses."
)

// offInSpec are the disabled features of a spec, without those of volumes, and offInStatus those of
// a status.
var (
	offInSpec = []feature{
		{path("schedulingGroup")},
		{path("evictionResponders")},
		{path(anyProbe + "grpc.mode")},
		{path(anyProbe + "httpGet.protocol"), path(anyContainer + "lifecycle.postStart|preStop.httpGet.protocol")},
		{path(anyContainer + "lifecycle.stopSignal")},
		{path(anyContainer + "volumeMounts.bindMountOptions")},
	}
	offInStatus = []feature{
		{path(anyStatus + "volumeMounts.volumeStatus")},
		{path("nodeAllocatableResourceClaimStatuses")},
		{path("volumeHealth")},
	}
)

// dropOfSpec removes fields of disabled features from a spec, unless the old one has them. Either
// may be nil.
func dropOfSpec(spec, old map[string]any) {
	drop(offInSpec, spec, old)
	volume.Prepare(kind.List(spec, "volumes"), kind.List(old, "volumes"))
}

// drop removes fields of features from an object, unless old has any field of the same feature.
// Either may be nil.
func drop(features []feature, obj, old map[string]any) {
	if obj == nil {
		return
	}
	for _, f := range features {
		if f.visitAt(obj, true) && f.visitAt(old, true) {
			continue
		}
		f.visitAt(obj, false)
	}
}

// visitAt removes the fields of the feature. With look it only reports whether the object has any.
func (f feature) visitAt(obj map[string]any, look bool) bool {
	for _, p := range f {
		if visitAt(obj, p, look) {
			return true
		}
	}
	return false
}

func visitAt(v any, path []string, look bool) bool {
	if list, ok := v.([]any); ok {
		for _, e := range list {
			if visitAt(e, path, look) {
				return true
			}
		}
		return false
	}
	obj := asTree(v)
	if obj == nil {
		return false
	}
	for name := range strings.SplitSeq(path[0], "|") {
		switch {
		case obj[name] == nil:
		case len(path) > 1:
			before := len(asTree(obj[name]))
			if visitAt(obj[name], path[1:], look) {
				return true
			}
			if name == "lifecycle" && before > 0 && len(asTree(obj[name])) == 0 {
				delete(obj, name)
			}
		case look:
			return true
		default:
			delete(obj, name)
		}
	}
	return false
}

// dropAnnotations removes the older form of init containers.
func dropAnnotations(metadata map[string]any) {
	annotations := kind.Tree(metadata, "annotations")
	for _, stage := range []string{"alpha", "beta"} {
		for _, what := range []string{"init-containers", "init-container-statuses"} {
			delete(annotations, "pod."+stage+".kubernetes.io/"+what)
		}
	}
}
