package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/builtin/volume"
	"github.com/anykind/anykind/internal/object/gate"
)

func validateStatefulSet(c *rule.Check, s, old *appsv1.StatefulSet) {
	spec := &s.Spec
	if old == nil {
		validateStatefulSetSpec(c, spec, nil)
		validateStatefulSetTemplate(c.At("spec"), spec, nil)
		for i := range spec.VolumeClaimTemplates {
			volume.ValidateClaim(c.At("spec", "volumeClaimTemplates", i, "spec"), &spec.VolumeClaimTemplates[i].Spec, nil)
		}
		if name := spec.ServiceName; name != "" {
			c.At("spec", "serviceName").Invalids(name, validation.IsDNS1123Label(name))
		}
		return
	}
	validateStatefulSetSpec(c, spec, &old.Spec)
	at := c.At("spec")
	was := c.Apart()
	validateStatefulSetSpec(was, &old.Spec, &old.Spec)
	validateStatefulSetTemplate(was.At("spec"), &old.Spec, &old.Spec)
	if len(was.Errors()) == 0 {
		validateStatefulSetTemplate(at, spec, &old.Spec)
	} else if _, err := metav1.LabelSelectorAsSelector(spec.Selector); err == nil { // an invalid old template needs valid metadata only
		pod.ValidateTemplateMetadata(at.At("template"), templateOf(spec), templateOf(&old.Spec))
	}
	at.At("selector").Immutable(spec.Selector, old.Spec.Selector)
	at.At("volumeClaimTemplates").Immutable(spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates)
	at.At("serviceName").Immutable(spec.ServiceName, old.Spec.ServiceName)
	at.At("podManagementPolicy").Immutable(spec.PodManagementPolicy, old.Spec.PodManagementPolicy)
}

// validateStatefulSetSpec validates a spec, except the template alone.
func validateStatefulSetSpec(c *rule.Check, spec, old *appsv1.StatefulSetSpec) {
	c.Fields(spec, "spec")
	c = c.At("spec")
	if o := spec.Ordinals; o != nil {
		c.Fields(o, "ordinals")
	}
	if p := spec.PodManagementPolicy; p != appsv1.OrderedReadyPodManagement && p != appsv1.ParallelPodManagement {
		c.At("podManagementPolicy").Invalid(p, "must be 'OrderedReady' or 'Parallel'")
	}
	validateStatefulSetStrategy(c.At("updateStrategy"), &spec.UpdateStrategy, old)
	if r := spec.PersistentVolumeClaimRetentionPolicy; r != nil {
		validateRetention(c.At("persistentVolumeClaimRetentionPolicy", "whenDeleted"), r.WhenDeleted)
		validateRetention(c.At("persistentVolumeClaimRetentionPolicy", "whenScaled"), r.WhenScaled)
	}
	validateSelector(c.At("selector"), spec.Selector, "statefulset", metavalidation.LabelSelectorValidationOptions{})
	at := c.At("template")
	if selector, err := metav1.LabelSelectorAsSelector(spec.Selector); err != nil {
		c.At("selector").Invalid(spec.Selector, "")
	} else if !selector.Empty() {
		validateLabels(at, &spec.Template, selector)
	}
	validateRunning(at, &spec.Template, "StatefulSet", string(corev1.RestartPolicyAlways))
}

// validateStatefulSetTemplate validates the template of the spec at c. If the selector is invalid, only
// declared fields are validated.
func validateStatefulSetTemplate(c *rule.Check, spec, old *appsv1.StatefulSetSpec) {
	var oldTemplate *corev1.PodTemplateSpec
	if old != nil {
		oldTemplate = templateOf(old)
	}
	if _, err := metav1.LabelSelectorAsSelector(spec.Selector); err != nil {
		pod.ValidateDeclared(c.At("template"), &spec.Template, oldTemplate)
		return
	}
	pod.ValidateTemplate(c.At("template"), templateOf(spec), oldTemplate)
}

// templateOf returns the template as the controller completes it: with a volume for each claim, and
// without host names.
func templateOf(spec *appsv1.StatefulSetSpec) *corev1.PodTemplateSpec {
	t := spec.Template.DeepCopy()
	t.Spec.Subdomain, t.Spec.Hostname = "", ""
	if len(spec.VolumeClaimTemplates) == 0 {
		return t
	}
	claims := map[string]bool{}
	var volumes []corev1.Volume
	for _, claim := range spec.VolumeClaimTemplates {
		if name := claim.Name; !claims[name] {
			claims[name] = true
			volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			}})
		}
	}
	for _, v := range t.Spec.Volumes {
		if !claims[v.Name] {
			volumes = append(volumes, v)
		}
	}
	t.Spec.Volumes = volumes
	return t
}

func validateStatefulSetStrategy(c *rule.Check, s *appsv1.StatefulSetUpdateStrategy, old *appsv1.StatefulSetSpec) {
	const recreate, onlyRolling = appsv1.RecreateStatefulSetStrategyType, "only allowed for updateStrategy 'RollingUpdate'"
	recreates := c.Gates.On(gate.StatefulSetRecreateStrategy) || old != nil && old.UpdateStrategy.Type == recreate
	shown := s.DeepCopy()
	if rolling := shown.RollingUpdate; rolling != nil && rolling.Partition == nil {
		rolling.Partition = new(int32) // kube-apiserver always sets it
	}
	switch rolling := s.RollingUpdate; {
	case s.Type == appsv1.RollingUpdateStatefulSetStrategyType:
		if rolling == nil {
			return
		}
		c.Fields(rolling, "rollingUpdate")
		if n, _ := rule.Share(rolling.MaxUnavailable); n == 0 && rolling.MaxUnavailable != nil {
			c.At("rollingUpdate", "maxUnavailable").Invalid(*rolling.MaxUnavailable, "cannot be 0")
		}
	case s.Type == appsv1.OnDeleteStatefulSetStrategyType, s.Type == recreate && recreates:
		if rolling != nil {
			c.At("rollingUpdate").Invalid(shown.RollingUpdate, onlyRolling)
		}
	case recreates:
		c.Invalid(shown, "must be 'RollingUpdate', 'OnDelete', or 'Recreate'")
	default:
		c.Invalid(shown, "must be 'RollingUpdate' or 'OnDelete'")
	}
}

func validateRetention(c *rule.Check, p appsv1.PersistentVolumeClaimRetentionPolicyType) {
	const retain, remove = appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	if p != retain && p != remove {
		rule.NotSupported(c, p, retain, remove)
	}
}

func validateStatefulSetStatus(c *rule.Check, set, old *appsv1.StatefulSet) {
	s := &set.Status
	c.Fields(s, "status")
	c = c.At("status")
	c.At("readyReplicas").AtMost(s.ReadyReplicas, s.Replicas, "status.replicas")
	c.At("currentReplicas").AtMost(s.CurrentReplicas, s.Replicas, "status.replicas")
	c.At("updatedReplicas").AtMost(s.UpdatedReplicas, s.Replicas, "status.replicas")
	c.At("availableReplicas").AtMost(s.AvailableReplicas, s.Replicas, "status.replicas")
	c.At("availableReplicas").AtMost(s.AvailableReplicas, s.ReadyReplicas, "status.readyReplicas")
	c.At("collisionCount").Counts(s.CollisionCount, old.Status.CollisionCount)
}

func warnOfStatefulSet(c *rule.Check, s, old *appsv1.StatefulSet) {
	switch at := c.At("spec", "template"); {
	case old == nil:
		pod.WarnOfTemplate(at, &s.Spec.Template, nil)
	case s.Generation != old.Generation:
		pod.WarnOfTemplate(at, &s.Spec.Template, &old.Spec.Template)
	}
	for i := range s.Spec.VolumeClaimTemplates {
		at := c.At("spec", "volumeClaimTemplates", i)
		if old != nil { // the warnings have the names of Go fields
			at = at.At("Spec")
		}
		volume.WarnOfClaim(at, &s.Spec.VolumeClaimTemplates[i].Spec)
	}
	if n := s.Spec.RevisionHistoryLimit; n != nil && *n < 0 {
		c.Warn("spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended")
	}
}
