package volume

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// ValidatePersistent validates the spec of a PersistentVolume at c. old is the replaced spec, or
// nil.
func ValidatePersistent(c *rule.Check, spec, old *corev1.PersistentVolumeSpec, name string) {
	c.Fields(spec)
	validateCommon(c, spec, name)
	validateCapacity(c.At("capacity"), spec.Capacity)
	if a := spec.NodeAffinity; a != nil {
		at := c.At("nodeAffinity", "required")
		if a.Required == nil {
			at.Required("must specify required node constraints")
		} else {
			kind.ValidateNodeSelector(at, a.Required, old != nil && old.NodeAffinity != nil && kind.HasAnyValue(old.NodeAffinity.Required))
		}
	}
	validateClass(c.At("storageClassName"), &spec.StorageClassName)
	validateAttributesClass(c, spec)
}

// ValidateInline validates an inline spec of a PersistentVolume at c.
func ValidateInline(c *rule.Check, spec *corev1.PersistentVolumeSpec) {
	const detail = "may not be specified in the context of inline volumes"
	for _, f := range []struct {
		name  string
		there bool
	}{
		{"claimRef", spec.ClaimRef != nil},
		{"capacity", len(spec.Capacity) > 0},
		{"nodeAffinity", spec.NodeAffinity != nil},
		{"storageClassName", spec.StorageClassName != ""},
	} {
		if f.there {
			c.At(f.name).Forbidden(detail)
		}
	}
	if spec.CSI == nil {
		c.At("csi").Required("has to be specified in the context of inline volumes")
	}
	validateCommon(c, spec, "")
	if p := spec.PersistentVolumeReclaimPolicy; p != "" && p != corev1.PersistentVolumeReclaimRetain {
		c.At("persistentVolumeReclaimPolicy").Forbidden("may only be Retain in the context of inline volumes")
	}
	if m := spec.VolumeMode; m != nil && *m != corev1.PersistentVolumeFilesystem {
		c.At("volumeMode").Forbidden("may not specify volumeMode other than Filesystem in the context of inline volumes")
	}
}

// validateCommon has the rules for both.
func validateCommon(c *rule.Check, spec *corev1.PersistentVolumeSpec, name string) {
	if len(spec.AccessModes) == 0 {
		c.At("accessModes").Required("")
	}
	validateAccessModes(c.At("accessModes"), spec.AccessModes)
	switch validateSource(c, &spec.PersistentVolumeSource, sourcesOfPersistent) {
	case "iscsi":
		s := spec.ISCSI
		validateISCSITotal(c.At("iscsi", "targetportal"), s.TargetPortal, name, s.TargetPortal, s.InitiatorName)
	case "local":
		if spec.NodeAffinity == nil {
			c.At("nodeAffinity").Required("Local volume requires node affinity")
		}
	}
	recycles := spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle
	if spec.HostPath != nil && path.Clean(spec.HostPath.Path) == "/" && recycles {
		c.At("persistentVolumeReclaimPolicy").Forbidden("may not be 'recycle' for a hostPath mount of '/'")
	}
}

func validateCapacity(c *rule.Check, capacity corev1.ResourceList) {
	if len(capacity) == 0 {
		c.Required("")
	}
	if _, ok := capacity[corev1.ResourceStorage]; !ok || len(capacity) > 1 {
		c.Add(field.NotSupported(c.Path(), capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	for _, name := range kind.SortedKeys(capacity) {
		size, at := capacity[name], c.AtKey(string(name))
		kind.ValidateAmount(at, size)
		if size.Sign() <= 0 {
			at.Invalid(size.String(), notPositive)
		}
	}
}

// validateAttributesClass validates the attributes class, which needs a CSI volume.
func validateAttributesClass(c *rule.Check, spec *corev1.PersistentVolumeSpec) {
	name := spec.VolumeAttributesClassName
	if name == nil {
		return
	}
	if at := c.At("volumeAttributesClassName"); *name == "" {
		at.Required("an empty string is disallowed")
	} else {
		at.Invalids(*name, validation.IsDNS1123Subdomain(*name))
	}
	if spec.CSI == nil {
		c.At("csi").Required("has to be specified when using volumeAttributesClassName")
	}
}
