package core

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// A deleted namespace stays Terminating until spec.finalizers is empty. The finalizer kubernetes
// stands for the objects in it. A controller removes it through the subresource finalize.
func namespaces() *resource.Definition {
	return kind.Kind[*corev1.Namespace, *corev1.NamespaceList]{
		Definition: resource.Definition{
			Plural: "namespaces", ShortNames: []string{"ns"},
			Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
			Strategy: resource.Strategy{
				AllowUnconditionalUpdate: true,
				PreconditionFailed:       "Precondition failed",
				BeforeDelete:             terminateNamespace,
				Prepare:                  resource.Changing(prepareNamespace),
				ValidateName:             apivalidation.ValidateNamespaceName,
				HasFinalizers:            func(obj map[string]any) bool { return len(kind.List(obj, "spec", "finalizers")) > 0 },
			},
		},
		Version: &resource.Version{
			Revert: resource.Changing(keepFinalizers),
			Subresources: []resource.Subresource{
				{
					Name: "finalize", Verbs: []string{"update"}, Fields: []string{"metadata", "spec"}, NoTable: true,
					Revert:   resource.Changing(func(obj, old map[string]any) { kind.Put(obj, "status", old["status"]) }),
					Validate: kind.Typed(rule.Lazy(), validateFinalizers),
				},
			},
		},
		StatusKeeps: "spec",
		Default:     defaultNamespace,
		Validate:    validateNamespace,
		ValidateStatus: func(c *rule.Check, ns, _ *corev1.Namespace) {
			validatePhase(c.At("status", "Phase"), ns)
		},
		Columns: `
			Status  string  .status.phase  "The status of the namespace"
			Age
		`,
		Select: "status.phase",
	}.New()
}

func defaultNamespace(obj map[string]any) {
	labelNamespace(obj)
	activate(obj)
}

// activate sets the phase of a namespace without one.
func activate(obj map[string]any) {
	if kind.Text(obj, "status", "phase") == "" {
		kind.Child(obj, "status")["phase"] = string(corev1.NamespaceActive)
	}
}

// labelNamespace sets the label with the name of the namespace, on which selectors can rely.
func labelNamespace(obj map[string]any) {
	if name := object.Name(obj); name != "" {
		kind.Child(object.Metadata(obj), "labels")[corev1.LabelMetadataName] = name
	}
}

// keepFinalizers reverts the finalizers of a namespace: only the subresource changes them.
func keepFinalizers(obj, old map[string]any) {
	if old != nil {
		kind.Put(kind.Child(obj, "spec"), "finalizers", kind.Value(old, "spec", "finalizers"))
	}
}

func prepareNamespace(obj, old map[string]any) {
	activate(obj)       // again: a create removes the status of the client
	labelNamespace(obj) // again, with the generated name
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

// terminateNamespace sets the phase, and finalizers for the propagation policy. Unlike in other
// kinds, orphanDependents: false means foreground deletion.
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

func validateNamespace(c *rule.Check, ns, old *corev1.Namespace) {
	if old != nil {
		return // the subresource finalize changes the finalizers
	}
	for _, f := range ns.Spec.Finalizers {
		validateFinalizer(c.At("spec", "finalizers"), f)
	}
}

// validateFinalizers validates the finalizers of the subresource finalize.
func validateFinalizers(c *rule.Check, ns, _ *corev1.Namespace) {
	c.Add(kind.MetaFinalizers(c.Object)...)
	for i, f := range ns.Spec.Finalizers {
		validateFinalizer(c.At("spec", "finalizers", i), f)
	}
}

func validateFinalizer(c *rule.Check, f corev1.FinalizerName) {
	c.Add(apivalidation.ValidateFinalizerName(string(f), c.Path())...)
	c.Add(kind.KnownFinalizer(string(f), c.Path())...)
}

// validatePhase checks that the phase matches the deletion timestamp.
func validatePhase(c *rule.Check, ns *corev1.Namespace) {
	want, detail := corev1.NamespaceActive, "may only be 'Active' if `deletionTimestamp` is empty"
	if ns.DeletionTimestamp != nil {
		want, detail = corev1.NamespaceTerminating, "may only be 'Terminating' if `deletionTimestamp` is not empty"
	}
	if ns.Status.Phase != want {
		c.Invalid(ns.Status.Phase, detail)
	}
}
