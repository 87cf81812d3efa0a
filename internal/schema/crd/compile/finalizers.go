package compile

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/object"
)

// warnOfFinalizers returns a warning for every new finalizer of a custom resource without a qualified
// name.
func warnOfFinalizers(obj, old map[string]any) (warnings []string) {
	known := []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes)}
	if old != nil {
		known = append(known, object.Finalizers(old)...)
	}
	added := object.Finalizers(obj)
	slices.Sort(added)
	for _, f := range slices.Compact(added) {
		if slices.Contains(known, f) {
			continue
		}
		say := func(message string) {
			warnings = append(warnings, fmt.Sprintf("metadata.finalizers: %q: %s", f, message))
		}
		for _, m := range utilvalidation.IsQualifiedName(f) {
			say(m)
		}
		const prefer = "prefer a domain-qualified finalizer name%s to avoid accidental conflicts with other finalizer writers"
		switch {
		case strings.Contains(f, "/"):
		case strings.Contains(f, "."):
			say(fmt.Sprintf(prefer, " including a path (/)"))
		default:
			say(fmt.Sprintf(prefer, ""))
		}
	}
	return warnings
}
