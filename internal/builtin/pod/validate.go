package pod

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// ValidateTemplate validates a template at c. old is the replaced one, or nil: its invalid values
// may stay.
func ValidateTemplate(c *rule.Check, t, old *corev1.PodTemplateSpec) {
	ValidateTemplateMetadata(c, t, old)
	var oldSpec *corev1.PodSpec
	if old != nil {
		oldSpec = &old.Spec
	}
	spec := c.At("spec")
	rule.With(c, inheritedFrom(c.Gates, oldSpec))
	giveContext(spec, &t.Spec, oldSpec, "")
	spec.Walk(&t.Spec)
	ValidateDeclared(c, t, old)
	checkAnnotatedProfiles(spec, t.Annotations, &t.Spec)
	if len(t.Spec.EphemeralContainers) > 0 {
		spec.At("ephemeralContainers").Forbidden("ephemeral containers not allowed in pod template")
	}
}

// ValidateDeclared validates the fields of a template that Kubernetes validates by tags. A caller with an
// invalid selector calls it in place of ValidateTemplate.
func ValidateDeclared(c *rule.Check, t, old *corev1.PodTemplateSpec) {
	var oldSpec *corev1.PodSpec
	if old != nil {
		oldSpec = &old.Spec
	}
	c.At("spec").DeclaredField(&t.Spec, oldSpec, "evictionResponders")
}

// ValidateTemplateMetadata validates the labels and annotations of a template.
func ValidateTemplateMetadata(c *rule.Check, t, old *corev1.PodTemplateSpec) {
	c.Add(metavalidation.ValidateLabels(t.Labels, c.At("labels").Path())...)
	c.Add(apivalidation.ValidateAnnotations(t.Annotations, c.At("annotations").Path())...)
	var oldMeta *metav1.ObjectMeta
	if old != nil {
		oldMeta = &old.ObjectMeta
	}
	checkAnnotations(c.At("annotations"), &t.ObjectMeta, oldMeta, &t.Spec)
}

// validate validates a create or an update of a pod.
func validate(c *rule.Check, pod, old *corev1.Pod) {
	if old != nil {
		validateUpdate(c, pod, old)
		return
	}
	validateWhole(c, pod, nil)
	spec := c.At("spec")
	if len(pod.Spec.EphemeralContainers) > 0 {
		spec.At("ephemeralContainers").Forbidden("cannot be set on create")
	}
	if pod.Spec.NodeName != "" && len(pod.Spec.SchedulingGates) > 0 {
		spec.At("nodeName").Forbidden("cannot be set until all schedulingGates have been cleared")
	}
	checkAnnotatedProfiles(spec, pod.Annotations, &pod.Spec)
}

// validateWhole has the rules for creates and all updates.
func validateWhole(c *rule.Check, pod, old *corev1.Pod) {
	var oldMeta *metav1.ObjectMeta
	var oldSpec *corev1.PodSpec
	if old != nil {
		oldMeta, oldSpec = &old.ObjectMeta, &old.Spec
	}
	checkAnnotations(c.At("metadata", "annotations"), &pod.ObjectMeta, oldMeta, &pod.Spec)
	spec := c.At("spec")
	inherits := inheritedFrom(c.Gates, oldSpec)
	inherits.mirror = isStatic(pod)
	rule.With(c, inherits)
	giveContext(spec, &pod.Spec, oldSpec, pod.Name)
	spec.Walk(&pod.Spec)
	spec.DeclaredField(&pod.Spec, oldSpec, "evictionResponders")
	if pod.Spec.ServiceAccountName != "" {
		return
	}
	for i, v := range pod.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for j, s := range v.Projected.Sources {
			if s.ServiceAccountToken != nil {
				spec.At("volumes", i, "projected", "sources", j, "serviceAccountToken").Forbidden("must not be specified when serviceAccountName is not set")
			}
		}
	}
}

// warn returns warnings about a new pod.
func warn(c *rule.Check, pod, old *corev1.Pod) {
	if old != nil {
		return
	}
	if details := validation.IsDNS1123Label(pod.Name); len(details) > 0 {
		c.Warn("metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: %v", details)
	}
	warnOfPod(c, &pod.ObjectMeta, &pod.Spec)
}
