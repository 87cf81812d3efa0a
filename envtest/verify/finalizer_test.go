package verify

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// finalizedOnce sets the finalizer once for each ConfigMap. If the user removes it, it stays away.
func finalizedOnce(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
	if m.DeletionTimestamp == nil && m.Annotations["finalized"] == "" {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, "finalized", "yes")
		controllerutil.AddFinalizer(m, finalizer)
		return ctrl.Result{}, c.Update(ctx, m)
	}
	if m.DeletionTimestamp == nil {
		return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, secret(m, m.Name)))
	}
	return cleaned(ctx, c, m)
}

// confident panics if an object is gone before its finalizer is removed.
func confident(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
	if m.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(m, finalizer) {
		return cleaned(ctx, c, m)
	}
	if err := c.Delete(ctx, secret(m, m.Name)); err == nil {
		if err := c.Get(ctx, client.ObjectKeyFromObject(m), &corev1.ConfigMap{}); apierrors.IsNotFound(err) {
			panic("gone before its finalizer")
		}
	} else if !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	controllerutil.RemoveFinalizer(m, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, m))
}

// A user who removes a finalizer finds controllers that do not expect it. An object whose finalizer stays away is a
// problem with World.Inputs only.
func TestRemoveFinalizers(t *testing.T) {
	onlyBy(t, World{Start: reconciler(confident).start}, remove, RemoveFinalizers)
	harmless(t, World{Start: reconciler(cleaned).start}, remove, RemoveFinalizers)
	harmless(t, World{Start: reconciler(cleaned).start, Inputs: true}, remove, RemoveFinalizers)
	harmless(t, World{Start: reconciler(finalizedOnce).start}, remove, RemoveFinalizers)
	onlyBy(t, World{Start: reconciler(finalizedOnce).start, Inputs: true}, remove, RemoveFinalizers)
}
