package batch

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
)

func validateJob(c *rule.Check, job, old *batchv1.Job) {
	spec, at := &job.Spec, c.At("spec")
	var oldSpec *batchv1.JobSpec
	options := metavalidation.LabelSelectorValidationOptions{}
	if old != nil {
		oldSpec = &old.Spec
		options.AllowInvalidLabelValueInSelector = metavalidation.LabelSelectorHasInvalidLabelValue(oldSpec.Selector)
	}
	validateSpec(at, spec, oldSpec)
	if spec.Selector == nil {
		at.At("selector").Required("")
	} else {
		c.Add(metavalidation.ValidateLabelSelector(spec.Selector, options, at.At("selector").Path())...)
	}
	if selector, err := metav1.LabelSelectorAsSelector(spec.Selector); err == nil && !selector.Matches(labels.Set(spec.Template.Labels)) {
		at.At("template", "metadata", "labels").Invalid(spec.Template.Labels, "`selector` does not match template `labels`")
	}
	validateHostnames(c, job)
	if old == nil {
		validateOwn(c, job)
		return
	}
	validateJobUpdate(at, job, old)
}

// validateHostnames rejects a name from which pods cannot get hostnames.
func validateHostnames(c *rule.Check, job *batchv1.Job) {
	n := job.Spec.Completions
	if ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) != batchv1.IndexedCompletion || n == nil || *n <= 0 {
		return
	}
	longest := fmt.Sprintf("%s-%d", job.Name, *n-1)
	if len(validation.IsDNS1123Label(longest)) > 0 {
		c.At("metadata", "name").Invalid(job.Name, "will not able to create pod with invalid DNS label: "+longest)
	}
}

// validateOwn rejects a new Job that could select other pods: a generated label or selector differs
// from that of the client.
func validateOwn(c *rule.Check, job *batchv1.Job) {
	if ptr.Deref(job.Spec.ManualSelector, false) || job.Spec.Selector == nil {
		return
	}
	own := labels.Set{oldNameLabel: job.Name, batchv1.JobNameLabel: job.Name, oldUIDLabel: string(job.UID), batchv1.ControllerUidLabel: string(job.UID)}
	for _, label := range []string{oldUIDLabel, oldNameLabel, batchv1.ControllerUidLabel, batchv1.JobNameLabel} {
		if actual := job.Spec.Template.Labels[label]; actual != own[label] {
			c.At("spec", "template", "metadata", "labels").AtKey(label).Invalid(job.Spec.Template.Labels, fmt.Sprintf("must be '%s'", own[label]))
		}
	}
	if selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector); err == nil && !selector.Matches(own) {
		c.At("spec", "selector").Invalid(job.Spec.Selector, "`selector` not auto-generated")
	}
}

// validateJobUpdate rejects changes of immutable fields of the spec.
func validateJobUpdate(c *rule.Check, job, old *batchv1.Job) {
	now, was := &job.Spec, &old.Spec
	if at := c.At("completions"); ptr.Deref(now.CompletionMode, "") != batchv1.IndexedCompletion {
		at.Immutable(now.Completions, was.Completions)
	} else if n := now.Completions; n != nil && !ptr.Equal(n, was.Completions) && *n != ptr.Deref(now.Parallelism, 1) {
		at.Invalid(n, "can only be modified in tandem with spec.parallelism")
	}
	c.At("selector").Immutable(now.Selector, was.Selector)
	validateTemplateUpdate(c.At("template"), job, old)
	c.At("completionMode").Immutable(now.CompletionMode, was.CompletionMode)
	c.At("podFailurePolicy").Immutable(now.PodFailurePolicy, was.PodFailurePolicy)
	c.At("backoffLimitPerIndex").Immutable(now.BackoffLimitPerIndex, was.BackoffLimitPerIndex)
	c.At("managedBy").Immutable(now.ManagedBy, was.ManagedBy)
	c.At("successPolicy").Immutable(now.SuccessPolicy, was.SuccessPolicy)
	if n, w := policyOf(now), policyOf(was); n != nil && w != nil && (n.Basic != nil) != (w.Basic != nil) {
		c.At("scheduling", "schedulingPolicy").Invalid(nil, "the basic/gang policy variant is immutable after creation; only schedulingPolicy.gang.minCount may be updated")
	}
}

// policyOf returns the scheduling policy of a Job, or nil.
func policyOf(spec *batchv1.JobSpec) *schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy {
	if spec.Scheduling == nil {
		return nil
	}
	return spec.Scheduling.SchedulingPolicy
}

// validateTemplateUpdate rejects changes of the template. Scheduling and resources may change while
// a Job is suspended and has no pods.
func validateTemplateUpdate(c *rule.Check, job, old *batchv1.Job) {
	now, was := &job.Spec.Template, old.Spec.Template.DeepCopy()
	suspended := ptr.Deref(old.Spec.Suspend, false)
	paused := suspended && old.Status.Active == 0 && (old.Status.StartTime == nil || holds(old, batchv1.JobSuspended))
	schedules := suspended && old.Status.StartTime == nil
	if c.Gates.On(gate.MutableSchedulingDirectivesForSuspendedJobs) {
		schedules = paused
	}
	if schedules {
		was.Labels, was.Annotations = now.Labels, now.Annotations
		was.Spec.NodeSelector, was.Spec.Tolerations, was.Spec.SchedulingGates = now.Spec.NodeSelector, now.Spec.Tolerations, now.Spec.SchedulingGates
		was.Spec.Affinity = withNodeAffinity(was.Spec.Affinity, now.Spec.Affinity)
	}
	if !paused || !c.Gates.On(gate.MutablePodResourcesForSuspendedJobs) {
		c.Immutable(*now, *was)
		return
	}
	takeResources(was.Spec.Containers, now.Spec.Containers)
	takeResources(was.Spec.InitContainers, now.Spec.InitContainers)
	c.At("spec").Immutable(now.Spec, was.Spec)
}

// withNodeAffinity returns old with the node affinity of now.
func withNodeAffinity(old, now *corev1.Affinity) *corev1.Affinity {
	switch {
	case now == nil && old == nil:
		return nil
	case now == nil:
		old.NodeAffinity = nil
		if equality.Semantic.DeepEqual(old, &corev1.Affinity{}) {
			return nil
		}
		return old
	case old == nil:
		return &corev1.Affinity{NodeAffinity: now.NodeAffinity}
	}
	old.NodeAffinity = now.NodeAffinity
	return old
}

func takeResources(old, now []corev1.Container) {
	if len(old) != len(now) {
		return
	}
	for i := range old {
		if old[i].Name == now[i].Name {
			old[i].Resources = now[i].Resources
		}
	}
}

func warnOfJob(c *rule.Check, job, old *batchv1.Job) {
	switch {
	case old == nil:
		pod.WarnOfOwnersName(c, job.Name)
		warnOfSpec(c.At("spec"), &job.Spec, nil)
	case job.Generation != old.Generation:
		warnOfSpec(c.At("spec"), &job.Spec, &old.Spec)
	}
}

// holds reports whether a condition of a Job is true.
func holds(job *batchv1.Job, condition batchv1.JobConditionType) bool {
	return has(job, condition, corev1.ConditionTrue)
}

func has(job *batchv1.Job, condition batchv1.JobConditionType, status corev1.ConditionStatus) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == condition && c.Status == status {
			return true
		}
	}
	return false
}
