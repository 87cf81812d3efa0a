package pods

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
)

// DefaultTolerationSeconds adds tolerations for the taints not-ready and unreachable, with a limit
// in seconds. A pod that tolerates one of them keeps its own.
type DefaultTolerationSeconds struct {
	NotReady, Unreachable int64
}

// Mutate implements registry.Mutator.
func (d DefaultTolerationSeconds) Mutate(_ context.Context, a *registry.Admission) error {
	if !a.Is(pods, "", registry.Create, registry.Update) {
		return nil
	}
	tolerations := slices.Clip(kind.List(a.Object, "spec", "tolerations"))
	has := tolerations
	for _, taint := range [...]struct {
		key     string
		seconds int64
	}{{corev1.TaintNodeNotReady, d.NotReady}, {corev1.TaintNodeUnreachable, d.Unreachable}} {
		if !slices.ContainsFunc(has, func(t any) bool { return saysOf(t, taint.key) }) {
			tolerations = append(tolerations, object.Tree{
				"key": taint.key, "operator": string(corev1.TolerationOpExists), "effect": string(corev1.TaintEffectNoExecute),
				"tolerationSeconds": taint.seconds,
			})
		}
	}
	if len(tolerations) > len(has) {
		specOf(a)["tolerations"] = tolerations
		a.Extended = true
	}
	return nil
}

// saysOf reports whether a toleration matches one of these taints.
func saysOf(t any, taint string) bool {
	toleration, _ := t.(object.Tree)
	key, effect := kind.Text(toleration, "key"), kind.Text(toleration, "effect")
	return (key == taint || key == "") && (effect == string(corev1.TaintEffectNoExecute) || effect == "")
}

// ExtendedResourceToleration adds tolerations for the extended resources of a pod. Nodes with such
// resources have a taint of the same name.
type ExtendedResourceToleration struct{}

// Mutate implements registry.Mutator.
func (ExtendedResourceToleration) Mutate(_ context.Context, a *registry.Admission) error {
	if !a.Is(pods, "", registry.Create, registry.Update) {
		return nil
	}
	var requested []string
	eachContainer(specOf(a), func(list string, _ int, c object.Tree) {
		for name := range kind.Tree(c, "resources", "requests") {
			if list != "ephemeralContainers" && kind.IsExtended(corev1.ResourceName(name)) {
				requested = append(requested, name)
			}
		}
	})
	if len(requested) == 0 {
		return nil
	}
	slices.Sort(requested)
	tolerations := partOf(specOf(a), "tolerations").Tolerations
	for _, name := range slices.Compact(requested) {
		tolerations = tolerate(tolerations, corev1.Toleration{
			Key: name, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
		})
	}
	putTolerations(a, tolerations)
	return nil
}

// tolerate adds a toleration. It replaces those that match the same taint.
func tolerate(tolerations []corev1.Toleration, t corev1.Toleration) []corev1.Toleration {
	replaced := false
	out := make([]corev1.Toleration, 0, len(tolerations)+1)
	for _, was := range tolerations {
		if t.MatchToleration(&was) {
			if equality.Semantic.DeepEqual(t, was) {
				return tolerations
			}
			was, replaced = t, true
		}
		out = append(out, was)
	}
	if !replaced {
		out = append(out, t)
	}
	return out
}

// putTolerations sets the tolerations of a pod.
func putTolerations(a *registry.Admission, tolerations []corev1.Toleration) {
	list := make([]any, len(tolerations))
	for i := range tolerations {
		list[i], _ = runtime.DefaultUnstructuredConverter.ToUnstructured(&tolerations[i])
	}
	specOf(a)["tolerations"] = list
	if len(list) == 0 {
		delete(specOf(a), "tolerations")
	}
	a.Changed = true
}

// mergeTolerations merges two lists, without tolerations that another one includes.
func mergeTolerations(first, second []corev1.Toleration) (merged []corev1.Toleration) {
	all := slices.Concat(first, second)
	for i, t := range all {
		redundant := slices.ContainsFunc(merged, func(by corev1.Toleration) bool { return includes(by, t) }) ||
			slices.ContainsFunc(all[i+1:], func(by corev1.Toleration) bool { return !equality.Semantic.DeepEqual(by, t) && includes(by, t) })
		if !redundant {
			merged = append(merged, t)
		}
	}
	return merged
}

// includes reports whether a toleration tolerates everything that the other tolerates.
func includes(t, other corev1.Toleration) bool {
	switch {
	case equality.Semantic.DeepEqual(t, other):
		return true
	case other.Key != t.Key && (t.Key != "" || t.Operator != corev1.TolerationOpExists):
		return false
	case other.Effect != t.Effect && t.Effect != "":
		return false
	case t.Effect == corev1.TaintEffectNoExecute && t.TolerationSeconds != nil &&
		(other.TolerationSeconds == nil || *other.TolerationSeconds > *t.TolerationSeconds):
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		return other.Operator == corev1.TolerationOpEqual && other.Value == t.Value
	case corev1.TolerationOpExists:
		return true
	default:
		return false
	}
}
