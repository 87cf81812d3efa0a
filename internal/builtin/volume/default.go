package volume

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

var defaults = rule.All(
	kind.ResourceLists,
	rule.Default[corev1.Volume](func(obj map[string]any) {
		for name, source := range obj {
			if name != "name" && source != nil {
				return
			}
		}
		obj["emptyDir"] = map[string]any{}
	}),
	rule.Default[corev1.ImageVolumeSource](func(obj map[string]any) {
		kind.SetDefault(obj, "pullPolicy", string(PullPolicy(kind.Text(obj, "reference"))))
	}),
)
