package pod

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
)

// mayChange describes the mutable fields of a spec.
var mayChange = strings.Join([]string{
	"`spec.containers[*].image`",
	"`spec.initContainers[*].image`",
	"`spec.activeDeadlineSeconds`",
	"`spec.tolerations` (only additions to existing tolerations)",
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
}, ",")

// validateUpdate validates an update of a pod.
func validateUpdate(c *rule.Check, pod, old *corev1.Pod) {
	validateWhole(c, pod, old)
	checkAnnotationUpdate(c, pod, old)
	spec := c.At("spec")
	if !checkImages(spec.At("containers"), pod.Spec.Containers, old.Spec.Containers) ||
		!checkImages(spec.At("initContainers"), pod.Spec.InitContainers, old.Spec.InitContainers) ||
		!checkDeadline(spec.At("activeDeadlineSeconds"), pod.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds) {
		return
	}
	checkAddedTolerations(spec.At("tolerations"), pod.Spec.Tolerations, old.Spec.Tolerations)
	checkRemovedGates(spec.At("schedulingGates"), pod.Spec.SchedulingGates, old.Spec.SchedulingGates)
	if sameBesides(kind.Tree(c.Object, "spec"), kind.Tree(c.Old, "spec")) || equality.Semantic.DeepEqual(pod.Spec, old.Spec) {
		return
	}
	rest := pod.Spec.DeepCopy()
	keepChangeable(spec, rest, &old.Spec)
	if !equality.Semantic.DeepEqual(*rest, old.Spec) {
		spec.Forbidden(fmt.Sprintf("pod updates may not change fields other than %s\n%v", mayChange, rule.Diff(old.Spec, *rest)))
	}
}

// sameBesides reports whether two specs certainly differ only in mutable fields. Otherwise their Go values
// decide, whose comparison takes much longer.
func sameBesides(spec, old map[string]any) bool {
	return len(kind.List(old, "schedulingGates")) == 0 && // with gates more may change
		sameExcept(spec, old, "activeDeadlineSeconds", "schedulingGates", "tolerations", "containers", "initContainers") &&
		sameContainers(kind.List(spec, "containers"), kind.List(old, "containers")) &&
		sameContainers(kind.List(spec, "initContainers"), kind.List(old, "initContainers"))
}

func sameContainers(now, was []any) bool {
	return slices.EqualFunc(now, was, func(now, was any) bool {
		is, ok := now.(map[string]any)
		old, wasTree := was.(map[string]any)
		return ok && wasTree && sameExcept(is, old, "image")
	})
}

// sameExcept reports whether two objects are equal, except for some fields.
func sameExcept(now, was map[string]any, except ...string) bool {
	for name, v := range now {
		if old, ok := was[name]; !slices.Contains(except, name) && (!ok || !object.Equal(v, old)) {
			return false
		}
	}
	for name := range was {
		if _, ok := now[name]; !ok && !slices.Contains(except, name) {
			return false
		}
	}
	return true
}

// checkAnnotationUpdate validates changes of annotations.
func checkAnnotationUpdate(c *rule.Check, pod, old *corev1.Pod) {
	c = c.At("metadata", "annotations")
	checkAnnotationChange(c, pod.Annotations, old.Annotations)
	checkAnnotations(c, &pod.ObjectMeta, &old.ObjectMeta, &pod.Spec)
}

// checkImages validates the images of an update, and reports whether the number of containers is
// unchanged.
func checkImages(c *rule.Check, containers, old []corev1.Container) bool {
	if len(containers) != len(old) {
		c.Forbidden("pod updates may not add or remove containers")
		return false
	}
	for i := range containers {
		image, at := containers[i].Image, c.At(i, "image")
		if image == "" {
			at.Required("")
		}
		if strings.TrimSpace(image) != image {
			at.Invalid(image, "must not have leading or trailing whitespace")
		}
	}
	return true
}

// checkDeadline validates changes of the deadline: it may be added or become shorter. It returns
// false if the new value is invalid.
func checkDeadline(c *rule.Check, seconds, old *int64) bool {
	switch {
	case seconds == nil && old != nil:
		c.Invalid(nil, "must not update from a positive integer to nil value")
	case seconds == nil:
	case *seconds < 0 || *seconds > math.MaxInt32:
		c.Invalid(*seconds, validation.InclusiveRangeError(0, math.MaxInt32))
		return false
	case old != nil && *old < *seconds:
		c.Invalid(*seconds, "must be less than or equal to previous value")
		return false
	}
	return true
}

func checkAddedTolerations(c *rule.Check, tolerations, old []corev1.Toleration) {
	for _, t := range old {
		if !slices.ContainsFunc(tolerations, func(now corev1.Toleration) bool {
			now.TolerationSeconds = t.TolerationSeconds
			return reflect.DeepEqual(now, t)
		}) {
			c.Forbidden("existing toleration can not be modified except its tolerationSeconds")
			return
		}
	}
	for i := range tolerations {
		checkToleration(c.At(i), &tolerations[i])
	}
}

func checkRemovedGates(c *rule.Check, gates, old []corev1.PodSchedulingGate) {
	before, last := sets.New[string](), map[string]int{}
	for _, g := range old {
		before.Insert(g.Name)
	}
	for i, g := range gates {
		last[g.Name] = i
	}
	for i, g := range gates {
		if !before.Has(g.Name) && last[g.Name] == i {
			c.At(i, "name").Forbidden(fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", g.Name))
		}
	}
}

// keepChangeable reverts the mutable fields in spec. It also validates changes of the node selector
// and the node affinity of a pod with scheduling gates.
func keepChangeable(c *rule.Check, spec, old *corev1.PodSpec) {
	for i := range spec.Containers {
		spec.Containers[i].Image = old.Containers[i].Image
	}
	for i := range spec.InitContainers {
		spec.InitContainers[i].Image = old.InitContainers[i].Image
	}
	spec.ActiveDeadlineSeconds, spec.SchedulingGates, spec.Tolerations = old.ActiveDeadlineSeconds, old.SchedulingGates, old.Tolerations
	if was, is := old.TerminationGracePeriodSeconds, spec.TerminationGracePeriodSeconds; was != nil && *was < 0 && is != nil && *is == 1 {
		spec.TerminationGracePeriodSeconds = was
	}
	if len(old.SchedulingGates) == 0 {
		return
	}
	// Only additions are allowed.
	for k, v := range old.NodeSelector {
		if now, ok := spec.NodeSelector[k]; !ok || now != v {
			c.At("nodeSelector").Invalid(spec.NodeSelector, "only additions to spec.nodeSelector are allowed (no mutations or deletions)")
			break
		}
	}
	spec.NodeSelector = old.NodeSelector
	now, was := nodeAffinity(spec), nodeAffinity(old)
	if equality.Semantic.DeepEqual(now, was) {
		return
	}
	checkNarrowed(c.At("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"), requiredTerms(now), requiredTerms(was))
	switch a := spec.Affinity; {
	case a == nil:
		spec.Affinity = &corev1.Affinity{NodeAffinity: was}
	case old.Affinity == nil && a.PodAffinity == nil && a.PodAntiAffinity == nil:
		spec.Affinity = nil
	default:
		a.NodeAffinity = was
	}
}

func nodeAffinity(spec *corev1.PodSpec) *corev1.NodeAffinity {
	if spec.Affinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity
}

func requiredTerms(a *corev1.NodeAffinity) []corev1.NodeSelectorTerm {
	if a == nil || a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

// checkNarrowed checks that changed terms only add requirements.
func checkNarrowed(c *rule.Check, terms, old []corev1.NodeSelectorTerm) {
	if len(old) == 0 {
		return
	}
	if len(terms) != len(old) {
		c.Invalid(terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
		return
	}
	for i, was := range old {
		now := terms[i]
		empty := len(was.MatchExpressions)+len(was.MatchFields) == 0
		if empty && len(now.MatchExpressions)+len(now.MatchFields) > 0 ||
			!begins(now.MatchExpressions, was.MatchExpressions) || !begins(now.MatchFields, was.MatchFields) {
			c.At(i).Invalid(now, "only additions are allowed (no mutations or deletions)")
		}
	}
}

func begins(list, with []corev1.NodeSelectorRequirement) bool {
	return len(list) >= len(with) && equality.Semantic.DeepEqual(list[:len(with)], with)
}
