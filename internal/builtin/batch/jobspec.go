package batch

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// Limits of Jobs. They bound the lists of indexes in the status.
const (
	maxIndexedParallelism = 100_000
	maxFailedIndexes      = 100_000
	manyCompletions       = 100_000
	maxOfMany             = 10_000 // limits for failed indexes and parallelism of large Jobs
	maxManagedBy          = 63
)

// validateSpec validates the spec at c, of a Job or a CronJob, except the selector.
func validateSpec(c *rule.Check, spec, old *batchv1.JobSpec) {
	c.Fields(spec)
	if m := spec.ManagedBy; m != nil {
		at := c.At("managedBy")
		at.Add(validation.IsDomainPrefixedPath(at.Path(), *m)...)
		if len(*m) > maxManagedBy {
			at.TooLong(maxManagedBy)
		}
	}
	if spec.MaxFailedIndexes != nil && spec.BackoffLimitPerIndex == nil {
		c.At("backoffLimitPerIndex").Required("when maxFailedIndexes is specified")
	}
	switch mode := ptr.Deref(spec.CompletionMode, batchv1.NonIndexedCompletion); mode {
	case batchv1.IndexedCompletion:
		validateIndexed(c, spec)
	case batchv1.NonIndexedCompletion:
		validateNotIndexed(c, spec)
	default:
		rule.NotSupported(c.At("completionMode"), mode, batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)
	}
	if p := spec.PodFailurePolicy; p != nil {
		validateFailurePolicy(c.At("podFailurePolicy", "rules"), spec)
	}
	if spec.SuccessPolicy != nil {
		validateSuccessPolicy(c.At("successPolicy"), spec)
	}
	validateReplacement(c.At("podReplacementPolicy"), spec)
	c.DeclaredField(spec, old, "scheduling")
	validateScheduling(c.At("scheduling"), spec)
	var template *corev1.PodTemplateSpec
	if old != nil {
		template = &old.Template
	}
	pod.ValidateTemplate(c.At("template"), &spec.Template, template)
	validateRestart(c.At("template", "spec", "restartPolicy"), spec)
}

// validateScheduling validates fields of the group of pods that depend on others.
func validateScheduling(c *rule.Check, spec *batchv1.JobSpec) {
	s := spec.Scheduling
	if s == nil {
		return
	}
	basic := true
	if p := s.SchedulingPolicy; p != nil && p.Gang != nil {
		basic = p.Basic != nil
		if n, parallelism := p.Gang.MinCount, ptr.Deref(spec.Parallelism, 1); n != nil && *n > parallelism {
			c.At("schedulingPolicy", "gang", "minCount").Invalid(*n, fmt.Sprintf("must not be greater than parallelism (%d)", parallelism))
		}
	}
	if d := s.DisruptionMode; basic && d != nil && d.Single == nil && d.All != nil {
		c.At("disruptionMode").Invalid("", "the disruptionMode `all` is not supported with the Basic scheduling policy")
	}
}

func validateIndexed(c *rule.Check, spec *batchv1.JobSpec) {
	completions, parallelism, failed := spec.Completions, c.At("parallelism"), c.At("maxFailedIndexes")
	if completions == nil {
		c.At("completions").Required("when completion mode is Indexed")
	}
	if n := spec.Parallelism; n != nil && *n > maxIndexedParallelism {
		parallelism.Invalid(*n, fmt.Sprintf("must be less than or equal to %d when completion mode is Indexed", maxIndexedParallelism))
	}
	if n := spec.MaxFailedIndexes; n != nil {
		if completions != nil && *n > *completions {
			failed.Invalid(*n, "must be less than or equal to completions")
		}
		if *n > maxFailedIndexes {
			failed.Invalid(*n, fmt.Sprintf("must be less than or equal to %d", maxFailedIndexes))
		}
	}
	if completions == nil || *completions <= manyCompletions || spec.BackoffLimitPerIndex == nil {
		return
	}
	tooMany := fmt.Sprintf("must be less than or equal to %d when completions are above %d and used with backoff limit per index", maxOfMany, manyCompletions)
	if n := spec.MaxFailedIndexes; n == nil {
		failed.Required(fmt.Sprintf("must be specified when completions is above %d", manyCompletions))
	} else if *n > maxOfMany {
		failed.Invalid(*n, tooMany)
	}
	if n := spec.Parallelism; n != nil && *n > maxOfMany {
		parallelism.Invalid(*n, tooMany)
	}
}

func validateNotIndexed(c *rule.Check, spec *batchv1.JobSpec) {
	const indexed = "requires indexed completion mode"
	if n := spec.BackoffLimitPerIndex; n != nil {
		c.At("backoffLimitPerIndex").Invalid(*n, indexed)
	}
	if n := spec.MaxFailedIndexes; n != nil {
		c.At("maxFailedIndexes").Invalid(*n, indexed)
	}
}

func validateReplacement(c *rule.Check, spec *batchv1.JobSpec) {
	valid := []batchv1.PodReplacementPolicy{batchv1.Failed}
	if spec.PodFailurePolicy == nil {
		valid = append(valid, batchv1.TerminatingOrFailed)
	}
	if p := spec.PodReplacementPolicy; p != nil && !slices.Contains(valid, *p) {
		rule.NotSupported(c, *p, valid...)
	}
}

func validateRestart(c *rule.Check, spec *batchv1.JobSpec) {
	const onFailure, never = corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever
	switch p := spec.Template.Spec.RestartPolicy; {
	case p == corev1.RestartPolicyAlways || p == "":
		c.Required(fmt.Sprintf("valid values: %q, %q", onFailure, never))
	case p != onFailure && p != never:
		rule.NotSupported(c, p, onFailure, never)
	case spec.PodFailurePolicy != nil && p != never:
		c.Invalid(p, fmt.Sprintf("only %q is supported when podFailurePolicy is specified", never))
	}
}

// warnOfSpec returns warnings about the spec at c.
func warnOfSpec(c *rule.Check, spec, old *batchv1.JobSpec) {
	indexed := spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion
	if indexed && ptr.Deref(spec.Completions, 0) > manyCompletions && ptr.Deref(spec.Parallelism, 0) > maxOfMany {
		c.Warn("%s: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail", c.Path())
	}
	var template *corev1.PodTemplateSpec
	if old != nil {
		template = &old.Template
	}
	pod.WarnOfTemplate(c.At("template"), &spec.Template, template)
}
