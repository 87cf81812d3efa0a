package pod

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

const maxAppArmorProfile = 4095 // length in bytes

// copyAppArmor copies an annotation, the older form of an AppArmor profile, to the field of a
// container. It omits a profile equal to that of the pod.
func copyAppArmor(ctx context.Context, pod map[string]any) {
	spec, annotations := kind.Tree(pod, "spec"), kind.Tree(pod, "metadata", "annotations")
	if len(annotations) == 0 || kind.Text(spec, "os", "name") == string(corev1.Windows) {
		return
	}
	ofPod := kind.Tree(spec, "securityContext", "appArmorProfile")
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, c := range kind.List(spec, list) {
			container := asTree(c)
			key := corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + kind.Text(container, "name")
			said, ok := annotations[key].(string)
			if !ok || kind.Tree(container, "securityContext", "appArmorProfile") != nil {
				continue
			}
			profile := appArmorOf(said)
			switch {
			case profile == nil:
			case object.Equal(profile, ofPod):
				continue
			default:
				kind.Child(container, "securityContext")["appArmorProfile"] = profile
			}
			resource.Warn(ctx, fmt.Sprintf(`metadata.annotations[%s]: deprecated since v1.30; use the "appArmorProfile" field instead`, key))
		}
	}
}

// appArmorOf returns the profile in an annotation, or nil if it is missing or invalid.
func appArmorOf(annotation string) map[string]any {
	switch annotation {
	case corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return map[string]any{"type": string(corev1.AppArmorProfileTypeUnconfined)}
	case corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return map[string]any{"type": string(corev1.AppArmorProfileTypeRuntimeDefault)}
	}
	name, ok := strings.CutPrefix(annotation, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
	if !ok || name == "" || strings.TrimSpace(name) != name || len(name) > maxAppArmorProfile {
		return nil
	}
	return map[string]any{"type": string(corev1.AppArmorProfileTypeLocalhost), "localhostProfile": name}
}
