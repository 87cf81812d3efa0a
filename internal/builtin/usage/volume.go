package usage

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/object"
)

// byClass separates a storage class from a resource name.
const byClass = ".storageclass.storage.k8s.io/"

type volumeEvaluator struct{}

func (volumeEvaluator) Limits(name corev1.ResourceName) bool {
	if isCount(name, volumes) {
		return true
	}
	for _, own := range []corev1.ResourceName{corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage} {
		if name == own || strings.HasSuffix(string(name), byClass+string(own)) {
			return true
		}
	}
	return false
}

// Updates is true for changes of a claim's size or attributes class.
func (volumeEvaluator) Updates(subresource string, _, _ object.Tree) bool {
	return subresource == "" || subresource == "status"
}

func (volumeEvaluator) Read(_ context.Context, decode func(any) error) (Object, error) {
	v := &volume{}
	return v, decode(&v.PersistentVolumeClaim)
}

// A volume is a measured PersistentVolumeClaim.
type volume struct{ corev1.PersistentVolumeClaim }

func (v *volume) Usage() corev1.ResourceList {
	list := corev1.ResourceList{CountName(volumes): one, corev1.ResourcePersistentVolumeClaims: one}
	if size, ok := v.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
		if given, ok := v.Status.AllocatedResources[corev1.ResourceStorage]; ok && given.Cmp(size) > 0 {
			size = given
		}
		size = size.DeepCopy()
		size.RoundUp(0) // quotas count whole bytes
		list[corev1.ResourceRequestsStorage] = size
	}
	class, ok := v.Annotations[corev1.BetaStorageClassAnnotation]
	if !ok && v.Spec.StorageClassName != nil {
		class = *v.Spec.StorageClassName
	}
	if class == "" {
		return list
	}
	for _, own := range []corev1.ResourceName{corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage} {
		if amount, ok := list[own]; ok {
			list[corev1.ResourceName(class+byClass)+own] = amount
		}
	}
	return list
}

func (v *volume) InScope(s corev1.ScopedResourceSelectorRequirement) (bool, error) {
	if s.ScopeName != corev1.ResourceQuotaScopeVolumeAttributesClass {
		return false, nil
	}
	classes := present(text(v.Spec.VolumeAttributesClassName), text(v.Status.CurrentVolumeAttributesClassName))
	if m := v.Status.ModifyVolumeStatus; m != nil {
		classes = append(classes, present(m.TargetVolumeAttributesClassName)...)
	}
	return selects(s, classes...)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (*volume) Lacks([]corev1.ResourceName) error { return nil }
