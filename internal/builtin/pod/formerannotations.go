package pod

import "github.com/anykind/anykind/internal/builtin/kind"

// dropAnnotations removes the older form of init containers.
func dropAnnotations(metadata map[string]any) {
	annotations := kind.Tree(metadata, "annotations")
	for _, stage := range []string{"alpha", "beta"} {
		for _, what := range []string{"init-containers", "init-container-statuses"} {
			delete(annotations, "pod."+stage+".kubernetes.io/"+what)
		}
	}
}
