package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// addsSysAdmin reports whether a container has the capability that is next to all of them.
func addsSysAdmin(sc *corev1.SecurityContext) bool {
	return sc.Capabilities != nil && slices.Contains(sc.Capabilities.Add, "CAP_SYS_ADMIN")
}

func isTrue(b *bool) bool { return b != nil && *b }
