package core

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/builtin/volume"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

var volumeRules = rule.Lazy(volume.Rules)

func persistentVolumes() *resource.Definition {
	return kind.Kind[*corev1.PersistentVolume, *corev1.PersistentVolumeList]{
		Definition: resource.Definition{
			Plural: "persistentvolumes", ShortNames: []string{"pv"}, ReturnsDeleted: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, Prepare: preparePersistentVolume},
		},
		StatusKeeps: "spec",
		Rules:       volumeRules,
		Default: func(obj map[string]any) {
			kind.SetDefault(kind.Child(obj, "status"), "phase", string(corev1.VolumePending))
			spec := kind.Child(obj, "spec")
			kind.SetDefault(spec, "persistentVolumeReclaimPolicy", string(corev1.PersistentVolumeReclaimRetain))
			kind.SetMissing(spec, "volumeMode", string(corev1.PersistentVolumeFilesystem))
		},
		Validate:       validatePersistentVolume,
		ValidateStatus: func(*rule.Check, *corev1.PersistentVolume, *corev1.PersistentVolume) {},
		Warn:           warnOfPersistentVolume,
		Columns: `
			Capacity               string       capacity  .spec.capacity
			Access Modes           string       modes     .spec.accessModes
			Reclaim Policy         string       .spec.persistentVolumeReclaimPolicy
			Status                 string       phase     .status.phase
			Claim                  string       claim     .spec.claimRef
			StorageClass           string       class     "StorageClass of the pv"
			VolumeAttributesClass  string       .spec.volumeAttributesClassName:<unset>  "VolumeAttributesClass of the pv"
			Reason                 string       .status.reason
			Age
			VolumeMode             string wide  .spec.volumeMode:<unset>
		`,
		Cells: kind.Cells{
			"capacity": func(obj map[string]any) any { return storageOf(kind.Tree(obj, "spec", "capacity")) },
			"modes":    func(obj map[string]any) any { return shortModes(kind.Texts(obj, "spec", "accessModes")) },
			"phase":    phaseOfVolume,
			"claim": func(obj map[string]any) any {
				ref := kind.Tree(obj, "spec", "claimRef")
				if ref == nil {
					return ""
				}
				return kind.Text(ref, "namespace") + "/" + kind.Text(ref, "name")
			},
			"class": classOfVolume,
		},
	}.New()
}

// storageOf returns the amount of storage in a resource list.
func storageOf(list map[string]any) string {
	if s := kind.Text(list, string(corev1.ResourceStorage)); s != "" {
		return s
	}
	return "0"
}

// shortModes abbreviates access modes.
func shortModes(modes []string) string {
	var short []string
	for _, m := range []struct {
		mode  corev1.PersistentVolumeAccessMode
		short string
	}{
		{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"}, {corev1.ReadWriteOncePod, "RWOP"},
	} {
		if slices.Contains(modes, string(m.mode)) {
			short = append(short, m.short)
		}
	}
	return strings.Join(short, ",")
}

// phaseOfVolume returns the phase of a volume or a claim.
func phaseOfVolume(obj map[string]any) any {
	if object.Deleting(obj) {
		return "Terminating"
	}
	return kind.Text(obj, "status", "phase")
}

// classOfVolume returns the storage class of a volume or a claim, which was once an annotation.
func classOfVolume(obj map[string]any) any {
	if class, ok := kind.Pairs(obj, "metadata", "annotations")[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	return kind.Text(obj, "spec", "storageClassName")
}

// preparePersistentVolume sets the transition time of the phase, unless the client does.
func preparePersistentVolume(_ context.Context, c *resource.Change) {
	const changed = "lastPhaseTransitionTime"
	status, now := kind.Child(c.Object, "status"), object.Timestamp(time.Now())
	if c.Old == nil {
		c.Object["status"] = map[string]any{"phase": string(corev1.VolumePending), changed: now}
		return
	}
	was := kind.Tree(c.Old, "status")
	switch samePhase := status["phase"] == was["phase"]; {
	case c.Subresource != "status":
	case samePhase && status[changed] == nil:
		kind.Put(status, changed, was[changed])
	case !samePhase && (status[changed] == nil || status[changed] == was[changed]):
		status[changed] = now
	}
}

func validatePersistentVolume(c *rule.Check, pv, old *corev1.PersistentVolume) {
	var oldSpec *corev1.PersistentVolumeSpec
	if old != nil {
		oldSpec = &old.Spec
	}
	volume.ValidatePersistent(c.At("spec"), &pv.Spec, oldSpec, pv.Name)
	if _, ok := pv.Annotations[corev1.MountOptionAnnotation]; ok && !mountsWithOptions(&pv.Spec) {
		c.At("metadata.annotations", corev1.MountOptionAnnotation).Forbidden("may not specify mount options for this volume type")
	}
	if old == nil {
		return
	}
	source := pv.Spec.PersistentVolumeSource
	if is, was := source.CSI, oldSpec.CSI; is != nil && was != nil && was.ControllerExpandSecretRef == nil {
		source = *source.DeepCopy()
		source.CSI.ControllerExpandSecretRef = nil // may be added
	}
	if !equality.Semantic.DeepEqual(source, oldSpec.PersistentVolumeSource) {
		c.At("spec", "persistentvolumesource").Forbidden("spec.persistentvolumesource is immutable after creation\n" + rule.Diff(oldSpec.PersistentVolumeSource, source))
	}
	c.At("volumeMode").Immutable(pv.Spec.VolumeMode, oldSpec.VolumeMode)
	if !c.Gates.On(gate.MutablePVNodeAffinity) && oldSpec.NodeAffinity != nil && !equality.Semantic.DeepEqual(pv.Spec.NodeAffinity, renamed(oldSpec.NodeAffinity, pv.Spec.NodeAffinity)) {
		c.At("nodeAffinity").Invalid(pv.Spec.NodeAffinity, "field is immutable, except for updating from beta label to GA")
	}
	if oldSpec.VolumeAttributesClassName != nil && pv.Spec.VolumeAttributesClassName == nil {
		c.At("spec", "volumeAttributesClassName").Forbidden("update from non-nil value to nil is forbidden")
	}
}

// mountsWithOptions reports whether the volume type supports the annotation with mount options.
func mountsWithOptions(s *corev1.PersistentVolumeSpec) bool {
	return s.GCEPersistentDisk != nil || s.AWSElasticBlockStore != nil || s.Glusterfs != nil || s.NFS != nil || s.RBD != nil ||
		s.Quobyte != nil || s.ISCSI != nil || s.Cinder != nil || s.CephFS != nil || s.AzureFile != nil || s.VsphereVolume != nil ||
		s.AzureDisk != nil || s.PhotonPersistentDisk != nil
}

// newLabels maps older node labels to their successors.
var newLabels = map[string]string{
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	"beta.kubernetes.io/os":             corev1.LabelOSStable,
	"beta.kubernetes.io/arch":           corev1.LabelArchStable,
	corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
}

// renamed returns an affinity with the new labels that the other one has.
func renamed(a, other *corev1.VolumeNodeAffinity) *corev1.VolumeNodeAffinity {
	if a.Required == nil || other == nil || other.Required == nil || len(a.Required.NodeSelectorTerms) != len(other.Required.NodeSelectorTerms) {
		return a
	}
	a = a.DeepCopy()
	for i, term := range a.Required.NodeSelectorTerms {
		in := &other.Required.NodeSelectorTerms[i]
		rename(term.MatchExpressions, in.MatchExpressions)
		rename(term.MatchFields, in.MatchFields)
	}
	return a
}

func rename(requirements, others []corev1.NodeSelectorRequirement) {
	for i := range min(len(requirements), len(others)) {
		if r := &requirements[i]; newLabels[r.Key] == others[i].Key { // an empty key is rejected anyway
			r.Key = others[i].Key
		}
	}
}

func warnOfPersistentVolume(c *rule.Check, pv, _ *corev1.PersistentVolume) {
	for _, old := range []struct{ name, instead string }{
		{corev1.BetaStorageClassAnnotation, `deprecated since v1.8; use "storageClassName" attribute instead`},
		{corev1.MountOptionAnnotation, `deprecated since v1.31; use "mountOptions" attribute instead`},
	} {
		if _, ok := pv.Annotations[old.name]; ok {
			c.Warn("%s: %s", c.At("metadata", "annotations").AtKey(old.name).Path(), old.instead)
		}
	}
	volume.WarnOfPersistent(c.At("spec"), &pv.Spec)
}
