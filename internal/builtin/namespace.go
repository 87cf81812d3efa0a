package builtin

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// A namespace that is deleted stays, as Terminating, until spec.finalizers is
// empty. The finalizer kubernetes stands for the objects inside it; whoever has
// removed those removes it through the finalize subresource.
func namespaces() *resource.Definition {
	d := kind[corev1.Namespace, corev1.NamespaceList](resource.Definition{
		Plural: "namespaces", Singular: "namespace", Kind: "Namespace", ShortNames: []string{"ns"},
		GroupPriority:            corePriority,
		Verbs:                    []string{"create", "delete", "get", "list", "patch", "update", "watch"},
		AllowUnconditionalUpdate: true,
		ValidateName:             apivalidation.ValidateNamespaceName,
		Prepare:                  prepareNamespace,
		Validate:                 validateNamespace,
		PrepareDelete:            prepareDeleteNamespace,
		Hold:                     func(obj map[string]any) bool { return len(list(obj, "spec", "finalizers")) > 0 },
	}, &resource.Version{
		Keep:  keepNamespace,
		Reset: []string{"status"},
		Subresources: []resource.Subresource{
			{Name: "finalize", Verbs: []string{"update"}, Sets: []string{"metadata", "spec"}, Keep: func(obj, old map[string]any) {
				put(obj, "status", old["status"])
			}},
			{Name: "status", Verbs: []string{"get", "patch", "update"}, Sets: []string{"metadata", "status"}, Keep: func(obj, old map[string]any) {
				put(obj, "spec", old["spec"])
			}},
		},
		SelectableFields: map[string]func(map[string]any) string{
			"status.phase": func(obj map[string]any) string { return text(obj, "status", "phase") },
		},
		Columns: []resource.Column{
			{
				Name: "Status", Type: "string", Description: "The status of the namespace",
				Cell: func(obj map[string]any) any { return text(obj, "status", "phase") },
			},
			ageColumn(),
		},
	})
	whenDecoded(d, labelNamespace)
	return d
}

// labelNamespace says the name in the one label that selectors of namespaces may
// rely on.
func labelNamespace(obj map[string]any) {
	if name := object.Name(obj); name != "" {
		child(object.Metadata(obj), "labels")[corev1.LabelMetadataName] = name
	}
}

// keepNamespace leaves the status and the finalizers to their subresources.
func keepNamespace(obj, old map[string]any) {
	if old == nil {
		delete(obj, "status")
		return
	}
	put(obj, "status", old["status"])
	put(child(obj, "spec"), "finalizers", value(old, "spec", "finalizers"))
}

func prepareNamespace(obj, old map[string]any) {
	status := child(obj, "status")
	if text(obj, "status", "phase") == "" {
		status["phase"] = string(corev1.NamespaceActive)
	}
	labelNamespace(obj) // again, for by now a generated name is known
	spec := child(obj, "spec")
	if old != nil {
		return
	}
	finalizers := list(spec, "finalizers")
	for _, f := range finalizers {
		if f == string(corev1.FinalizerKubernetes) {
			return
		}
	}
	spec["finalizers"] = append(finalizers, string(corev1.FinalizerKubernetes))
}

// prepareDeleteNamespace shows that the namespace is about to go, and records
// what is to become of its dependents. It takes orphanDependents: false for the
// wish to wait for them, as other kinds do not.
func prepareDeleteNamespace(obj map[string]any, options *metav1.DeleteOptions) {
	child(obj, "status")["phase"] = string(corev1.NamespaceTerminating)
	var orphan, wait bool
	//lint:ignore SA1019 old clients send it
	old := options.OrphanDependents
	switch {
	case old != nil:
		orphan, wait = *old, !*old
	case options.PropagationPolicy != nil:
		orphan = *options.PropagationPolicy == metav1.DeletePropagationOrphan
		wait = *options.PropagationPolicy == metav1.DeletePropagationForeground
	default:
		return
	}
	finalizers := slices.DeleteFunc(object.Finalizers(obj), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	if orphan {
		finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
	}
	if wait {
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	}
	object.SetFinalizers(obj, finalizers)
}

func validateNamespace(obj, old map[string]any) field.ErrorList {
	errs := metaFinalizers(obj)
	at := field.NewPath("spec", "finalizers")
	finalizers := list(obj, "spec", "finalizers")
	if old != nil {
		// Only the finalize subresource changes them, and it says which.
		if !object.Equal(finalizers, list(old, "spec", "finalizers")) {
			for i, f := range finalizers {
				errs = append(errs, namespaceFinalizer(f, at.Index(i))...)
			}
		}
		return append(errs, validatePhase(obj)...)
	}
	for _, f := range finalizers {
		errs = append(errs, namespaceFinalizer(f, at)...)
	}
	return errs
}

func namespaceFinalizer(v any, at *field.Path) field.ErrorList {
	name, _ := v.(string)
	return append(apivalidation.ValidateFinalizerName(name, at), knownFinalizer(name, at)...)
}

// validatePhase checks that the phase says what the metadata says.
func validatePhase(obj map[string]any) field.ErrorList {
	want, detail := corev1.NamespaceActive, "may only be 'Active' if `deletionTimestamp` is empty"
	if object.Deleting(obj) {
		want, detail = corev1.NamespaceTerminating, "may only be 'Terminating' if `deletionTimestamp` is not empty"
	}
	if phase := text(obj, "status", "phase"); phase != string(want) {
		return field.ErrorList{field.Invalid(field.NewPath("status", "Phase"), phase, detail)}
	}
	return nil
}
