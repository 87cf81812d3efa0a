package kind

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
)

// MetaFinalizers checks that the finalizers of a core kind are qualified or well known. Their
// syntax is checked for every kind.
func MetaFinalizers(obj map[string]any) field.ErrorList {
	var errs field.ErrorList
	for i, f := range object.Finalizers(obj) {
		errs = append(errs, KnownFinalizer(f, field.NewPath("metadata", "finalizers").Index(i))...)
	}
	return errs
}

func KnownFinalizer(name string, at *field.Path) field.ErrorList {
	switch name {
	case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
		return nil
	}
	if strings.Contains(name, "/") {
		return nil
	}
	return field.ErrorList{field.Invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified")}
}

// Invalids returns an error for each detail.
func Invalids(at *field.Path, value any, details []string) (errs field.ErrorList) {
	for _, detail := range details {
		errs = append(errs, field.Invalid(at, value, detail))
	}
	return errs
}

// AtMost returns the detail for a text longer than n.
func AtMost(n int) string { return fmt.Sprintf("can have at most %v characters", n) }

// Supported checks that a field has one of some values.
func Supported[T ~string](value T, at *field.Path, values ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if !slices.Contains(values, value) {
		return field.ErrorList{field.NotSupported(at, value, values)}
	}
	return nil
}
