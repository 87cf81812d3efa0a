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

const maxAppArmorProfile = 4095 // bytes of a path

// copyAppArmor makes of an annotation, which said the AppArmor profile of a container
// once, what says it now. What the pod says for all of its containers is not repeated.
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

// appArmorOf returns the profile that an annotation says, or nil if it says none that may be.
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
