// Package storage implements the admission plugins for PersistentVolumes and claims.
//
// They set the default StorageClass of claims, add finalizers that protect objects in use, and
// restrict the growth of claims. Controllers outside this server remove the finalizers.
package storage

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

var claims = corev1.Resource("persistentvolumeclaims")

// DefaultStorageClass sets the default class of a claim without one. If several classes are the
// default, the newest wins.
type DefaultStorageClass struct {
	Classes *stored.Lister[storagev1.StorageClass]
}

// isDefault are the annotations of a default class, the current one and the beta one.
var isDefault = [...]string{"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"}

// Mutate implements registry.Mutator.
func (d *DefaultStorageClass) Mutate(ctx context.Context, a *registry.Admission) error {
	if !a.Is(claims, "", registry.Create) {
		return nil
	}
	if _, asked := classOf(a.Object); asked {
		return nil
	}
	all, err := d.Classes.List(ctx, "")
	if err != nil {
		return a.Forbidden(err)
	}
	if class := kind.Newest(all, isDefault[:]...); class != "" {
		kind.Child(a.Object, "spec")["storageClassName"] = class
		a.Extended = true
	}
	return nil
}

// classOf returns the class of a claim, and whether it is set.
func classOf(claim object.Tree) (string, bool) {
	if class, ok := kind.Value(claim, "metadata", "annotations", corev1.BetaStorageClassAnnotation).(string); ok {
		return class, true
	}
	class, ok := kind.Value(claim, "spec", "storageClassName").(string)
	return class, ok
}

// InUseProtection adds a finalizer to volumes, claims and VolumeAttributesClasses, so that they
// stay while in use.
type InUseProtection struct{}

var finalizers = map[schema.GroupResource]string{
	corev1.Resource("persistentvolumes"): "kubernetes.io/pv-protection",
	claims:                               "kubernetes.io/pvc-protection",
	storagev1.Resource("volumeattributesclasses"): "kubernetes.io/vac-protection",
}

// Mutate implements registry.Mutator.
func (InUseProtection) Mutate(_ context.Context, a *registry.Admission) error {
	if a.Operation != registry.Create || a.Target.Subresource != "" {
		return nil
	}
	if finalizer := finalizers[a.Target.Definition.GroupResource()]; finalizer != "" {
		a.AddFinalizer(finalizer)
	}
	return nil
}

// ClaimResize rejects growth of a claim that is not bound, or whose class does not allow it.
type ClaimResize struct {
	Classes *stored.Lister[storagev1.StorageClass]
}

// Validate implements registry.Validator.
func (r *ClaimResize) Validate(ctx context.Context, a *registry.Admission) error {
	if !a.Is(claims, "", registry.Update) {
		return nil
	}
	old, err := a.Old(ctx)
	if err != nil {
		return err
	}
	if was, is := sizeOf(old), sizeOf(a.Object); is.Cmp(was) <= 0 {
		return nil
	}
	if kind.Text(old, "status", "phase") != string(corev1.ClaimBound) {
		return a.Forbidden(errors.New("Only bound persistent volume claims can be expanded"))
	}
	class, _ := classOf(a.Object)
	if oldClass, _ := classOf(old); class != "" && class == oldClass {
		found, err := r.Classes.Get(ctx, "", class)
		if err == nil && found != nil && found.AllowVolumeExpansion != nil && *found.AllowVolumeExpansion {
			return nil
		}
	}
	return a.Forbidden(errors.New("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"))
}

// sizeOf returns the requested size of a claim.
func sizeOf(claim object.Tree) (q resource.Quantity) {
	if parsed, err := resource.ParseQuantity(kind.Text(claim, "spec", "resources", "requests", "storage")); err == nil {
		q = parsed
	}
	return q
}
