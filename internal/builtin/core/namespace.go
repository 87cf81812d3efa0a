package core

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// A namespace that is deleted stays, as Terminating, until spec.finalizers is
// empty. The finalizer kubernetes stands for the objects inside it; whoever has
// removed those removes it through the finalize subresource.
func namespaces() *resource.Definition {
	return kind.New(resource.Definition{
		Plural: "namespaces", Singular: "namespace", Kind: "Namespace", ShortNames: []string{"ns"},
		GroupPriority: kind.CorePriority,
		Verbs:         []string{"create", "delete", "get", "list", "patch", "update", "watch"},
		Strategy: resource.Strategy{
			AllowUnconditionalUpdate: true,
			BeforeDelete:             terminateNamespace,
			Prepare:                  resource.Changing(prepareNamespace),
			ValidateName:             apivalidation.ValidateNamespaceName,
			Validate:                 resource.Looking(validateNamespace),
			HasFinalizers:            func(obj map[string]any) bool { return len(kind.List(obj, "spec", "finalizers")) > 0 },
		},
	}, kind.VersionOf[corev1.Namespace, corev1.NamespaceList](&resource.Version{
		Name:        "v1",
		Revert:      resource.Changing(revertNamespace),
		ResetFields: []string{"status"},
		Subresources: []resource.Subresource{
			{Name: "finalize", Verbs: []string{"update"}, Fields: []string{"metadata", "spec"}, Revert: resource.Changing(func(obj, old map[string]any) {
				kind.Put(obj, "status", old["status"])
			})},
			{Name: "status", Verbs: []string{"get", "patch", "update"}, Fields: []string{"metadata", "status"}, Revert: resource.Changing(func(obj, old map[string]any) {
				kind.Put(obj, "spec", old["spec"])
			})},
		},
		SelectableFields: map[string]func(map[string]any) string{
			"status.phase": func(obj map[string]any) string { return kind.Text(obj, "status", "phase") },
		},
		Columns: []resource.Column{
			{
				Name: "Status", Type: "string", Description: "The status of the namespace",
				Cell: func(obj map[string]any) any { return kind.Text(obj, "status", "phase") },
			},
			kind.AgeColumn(),
		},
	}, marks()).WhenDecoded(labelNamespace))
}

// labelNamespace says the name in the one label that selectors of namespaces may
// rely on.
func labelNamespace(obj map[string]any) {
	if name := object.Name(obj); name != "" {
		kind.Child(object.Metadata(obj), "labels")[corev1.LabelMetadataName] = name
	}
}

// revertNamespace leaves the status and the finalizers to their subresources.
func revertNamespace(obj, old map[string]any) {
	if old == nil {
		delete(obj, "status")
		return
	}
	kind.Put(obj, "status", old["status"])
	kind.Put(kind.Child(obj, "spec"), "finalizers", kind.Value(old, "spec", "finalizers"))
}

func prepareNamespace(obj, old map[string]any) {
	status := kind.Child(obj, "status")
	if kind.Text(obj, "status", "phase") == "" {
		status["phase"] = string(corev1.NamespaceActive)
	}
	labelNamespace(obj) // again, for by now a generated name is known
	spec := kind.Child(obj, "spec")
	if old != nil {
		return
	}
	finalizers := kind.List(spec, "finalizers")
	for _, f := range finalizers {
		if f == string(corev1.FinalizerKubernetes) {
			return
		}
	}
	spec["finalizers"] = append(finalizers, string(corev1.FinalizerKubernetes))
}

// terminateNamespace shows that the namespace is about to go, and records
// what is to become of its dependents. It takes orphanDependents: false for the
// wish to wait for them, as other kinds do not.
func terminateNamespace(_ context.Context, c *resource.Change, options *metav1.DeleteOptions) {
	obj := c.Object
	kind.Child(obj, "status")["phase"] = string(corev1.NamespaceTerminating)
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
	errs := kind.MetaFinalizers(obj)
	at := field.NewPath("spec", "finalizers")
	finalizers := kind.List(obj, "spec", "finalizers")
	if old != nil {
		// Only the finalize subresource changes them, and it says which.
		if !object.Equal(finalizers, kind.List(old, "spec", "finalizers")) {
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
	return append(apivalidation.ValidateFinalizerName(name, at), kind.KnownFinalizer(name, at)...)
}

// validatePhase checks that the phase says what the metadata says.
func validatePhase(obj map[string]any) field.ErrorList {
	want, detail := corev1.NamespaceActive, "may only be 'Active' if `deletionTimestamp` is empty"
	if object.Deleting(obj) {
		want, detail = corev1.NamespaceTerminating, "may only be 'Terminating' if `deletionTimestamp` is not empty"
	}
	if phase := kind.Text(obj, "status", "phase"); phase != string(want) {
		return field.ErrorList{field.Invalid(field.NewPath("status", "Phase"), phase, detail)}
	}
	return nil
}
