package core

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/builtin/volume"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

func persistentVolumeClaims() *resource.Definition {
	return kind.Kind[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList]{
		Definition: resource.Definition{
			Plural: "persistentvolumeclaims", ShortNames: []string{"pvc"}, Namespaced: true, ReturnsDeleted: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, Prepare: prepareClaim},
		},
		StatusKeeps:    "spec",
		Rules:          volumeRules,
		Default:        defaultClaim,
		Read:           func(obj map[string]any) { alignDataSources(kind.Tree(obj, "spec")) },
		Validate:       validateClaim,
		ValidateStatus: validateClaimStatus,
		Warn: func(c *rule.Check, claim, _ *corev1.PersistentVolumeClaim) {
			if _, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
				c.Warn(`%s: deprecated since v1.8; use "storageClassName" attribute instead`, c.At("metadata", "annotations").AtKey(corev1.BetaStorageClassAnnotation).Path())
			}
			volume.WarnOfClaim(c.At("spec"), &claim.Spec)
		},
		Columns: `
			Status                 string       phase     .status.phase
			Volume                 string       .spec.volumeName
			Capacity               string       capacity  .status.capacity
			Access Modes           string       modes     .status.accessModes
			StorageClass           string       class     "StorageClass of the pvc"
			VolumeAttributesClass  string       .spec.volumeAttributesClassName:<unset>  "VolumeAttributesClass of the pvc"
			Age
			VolumeMode             string wide  .spec.volumeMode:<unset>
		`,
		Cells: kind.Cells{
			"phase": phaseOfVolume,
			"class": classOfVolume,
			"capacity": func(obj map[string]any) any {
				if kind.Text(obj, "spec", "volumeName") == "" {
					return ""
				}
				return storageOf(kind.Tree(obj, "status", "capacity"))
			},
			"modes": func(obj map[string]any) any {
				if kind.Text(obj, "spec", "volumeName") == "" {
					return ""
				}
				return shortModes(kind.Texts(obj, "status", "accessModes"))
			},
		},
	}.New()
}

func defaultClaim(obj map[string]any) {
	kind.SetDefault(kind.Child(obj, "status"), "phase", string(corev1.ClaimPending))
}

// prepareClaim drops data sources of a disabled feature, unless the old claim has one, and those that are only
// valid in dataSourceRef.
func prepareClaim(_ context.Context, c *resource.Change) {
	defaultClaim(c.Object) // a new claim has no status
	spec, was := kind.Tree(c.Object, "spec"), kind.Tree(c.Old, "spec")
	if !c.Gates.On(gate.CrossNamespaceVolumeDataSource) && kind.Text(spec, "dataSourceRef", "namespace") != "" && was["dataSourceRef"] == nil {
		delete(spec, "dataSourceRef")
	}
	used := was["dataSource"] != nil || was["dataSourceRef"] != nil
	if !used && spec["dataSourceRef"] == nil && !isOldDataSource(kind.Tree(spec, "dataSource")) {
		delete(spec, "dataSource")
	}
	alignDataSources(spec)
}

func isOldDataSource(source map[string]any) bool {
	switch group := kind.Text(source, "apiGroup"); kind.Text(source, "kind") {
	case "PersistentVolumeClaim":
		return group == ""
	case "VolumeSnapshot":
		return group == "snapshot.storage.k8s.io"
	}
	return false
}

// alignDataSources copies dataSource and dataSourceRef to each other, if only one is set.
func alignDataSources(spec map[string]any) {
	source, ref := kind.Tree(spec, "dataSource"), kind.Tree(spec, "dataSourceRef")
	switch {
	case source != nil && ref == nil:
		spec["dataSourceRef"] = dataSource(source)
	case ref != nil && source == nil && kind.Text(ref, "namespace") == "":
		spec["dataSource"] = dataSource(ref)
	}
}

func dataSource(from map[string]any) map[string]any {
	to := map[string]any{}
	for _, name := range []string{"apiGroup", "kind", "name"} {
		to[name] = from[name]
	}
	return to
}

func validateClaim(c *rule.Check, claim, old *corev1.PersistentVolumeClaim) {
	if old == nil {
		volume.ValidateClaim(c.At("spec"), &claim.Spec, nil)
		return
	}
	volume.ValidateClaim(c.At("spec"), &claim.Spec, &old.Spec)
	validateClaimChange(c, claim, old)
	size, was := claim.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	has := old.Status.Capacity[corev1.ResourceStorage]
	if size.Cmp(was) < 0 && size.Cmp(has) <= 0 {
		// A smaller request is allowed after a failed expansion. A volume cannot shrink.
		c.At("spec", "resources", "requests", "storage").Forbidden("field can not be less than status.capacity")
	}
	c.At("volumeMode").Immutable(claim.Spec.VolumeMode, old.Spec.VolumeMode)
	class := claim.Spec.VolumeAttributesClassName
	if old.Status.CurrentVolumeAttributesClassName == nil || equality.Semantic.DeepEqual(class, old.Spec.VolumeAttributesClassName) {
		return
	}
	switch at := c.At("spec", "volumeAttributesClassName"); {
	case class == nil:
		at.Forbidden("update to nil is forbidden when status.currentVolumeAttributesClassName is not nil")
	case *class == "":
		at.Forbidden("update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil")
	}
}

// validateClaimChange rejects changes of the spec. Exceptions are setting the volume and the class
// once, and the size and attributes class of a bound claim.
func validateClaimChange(c *rule.Check, claim, old *corev1.PersistentVolumeClaim) {
	is, was := claim.Spec.DeepCopy(), old.Spec.DeepCopy()
	if was.VolumeName == "" {
		was.VolumeName = is.VolumeName
	}
	class, annotated := old.Annotations[corev1.BetaStorageClassAnnotation]
	now, still := claim.Annotations[corev1.BetaStorageClassAnnotation]
	named := was.StorageClassName == nil && is.StorageClassName != nil
	switch {
	case named && annotated && *is.StorageClassName == class && (!still || now == class):
		is.StorageClassName = nil
	default:
		if now != class {
			c.At("metadata", "annotations", corev1.BetaStorageClassAnnotation).Invalid(now, "field is immutable")
		}
		if named && (!annotated || *is.StorageClassName == class) {
			is.StorageClassName = nil
		}
	}
	if claim.Status.Phase == corev1.ClaimBound {
		if is.Resources.Requests != nil {
			is.Resources.Requests[corev1.ResourceStorage] = was.Resources.Requests[corev1.ResourceStorage]
		}
		is.VolumeAttributesClassName = was.VolumeAttributesClassName
	}
	if !equality.Semantic.DeepEqual(is, was) {
		c.At("spec").Forbidden("spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n" + rule.Diff(was, is))
	}
}

// resizes are the states of a resize.
var resizes = []corev1.ClaimResourceStatus{
	corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimControllerResizeInfeasible,
	corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible,
	corev1.PersistentVolumeClaimNodeResizePending,
}

func validateClaimStatus(c *rule.Check, claim, _ *corev1.PersistentVolumeClaim) {
	if len(claim.Spec.AccessModes) == 0 {
		c.At("Spec", "accessModes").Required("")
	}
	c = c.At("status")
	for _, name := range kind.SortedKeys(claim.Status.Capacity) {
		kind.ValidateAmount(c.At("capacity").AtKey(string(name)), claim.Status.Capacity[name])
	}
	if health := claim.Status.HealthStatus; health != nil {
		c.Walk(health, "healthStatus")
	}
	statuses := c.At("allocatedResourceStatuses")
	for _, name := range kind.SortedKeys(claim.Status.AllocatedResourceStatuses) {
		validateClaimResource(statuses, string(name))
		if !slices.Contains(resizes, claim.Status.AllocatedResourceStatuses[name]) {
			rule.NotSupported(statuses, name, resizes...)
		}
	}
	for _, name := range kind.SortedKeys(claim.Status.AllocatedResources) {
		if validateClaimResource(c.At("allocatedResources"), string(name)) {
			validateAllocated(c.At("allocatedResources").AtKey(string(name)), claim.Status.AllocatedResources[name])
		}
	}
}

func validateAllocated(c *rule.Check, amount apiresource.Quantity) {
	if before := len(c.Errors()); amount.Sign() < 0 {
		kind.ValidateAmount(c, amount)
		if len(c.Errors()) == before {
			c.Invalid(amount.String(), "must be greater than or equal to 0")
		}
	}
}

// validateClaimResource validates a resource name of a claim: storage, or a name with a domain
// other than Kubernetes'. It reports whether the name is valid.
func validateClaimResource(c *rule.Check, name string) bool {
	if details := validation.IsQualifiedName(name); len(details) > 0 {
		c.Invalids(name, details)
		return false
	}
	native := !strings.Contains(name, "/") || strings.Contains(name, corev1.ResourceDefaultNamespacePrefix)
	if native && name != string(corev1.ResourceStorage) {
		rule.NotSupported(c, name, corev1.ResourceStorage)
		return false
	}
	return true
}
