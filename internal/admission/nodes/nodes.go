// Package nodes implements the admission plugins for Nodes and for writes of kubelets.
//
// A new Node gets a taint until it is ready. With NodeRestriction, a kubelet can only write its own
// Node and the pods bound to it, and cannot attract more pods. The authorizer
// internal/access/authz/node decides which requests a kubelet may make at all.
package nodes

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/registry"
)

var nodes = corev1.Resource("nodes")

// TaintByCondition adds the not-ready taint to a new Node. It keeps pods away until the Node is
// ready.
type TaintByCondition struct{}

// Mutate implements registry.Mutator.
func (TaintByCondition) Mutate(_ context.Context, a *registry.Admission) error {
	if !a.Is(nodes, "", registry.Create) {
		return nil
	}
	taints := kind.List(a.Object, "spec", "taints")
	is := func(t any) bool {
		taint, _ := t.(map[string]any)
		return kind.Text(taint, "key") == corev1.TaintNodeNotReady && kind.Text(taint, "effect") == string(corev1.TaintEffectNoSchedule)
	}
	if slices.ContainsFunc(taints, is) {
		return nil
	}
	kind.Child(a.Object, "spec")["taints"] = append(slices.Clip(taints), map[string]any{
		"key": corev1.TaintNodeNotReady, "effect": string(corev1.TaintEffectNoSchedule),
	})
	a.Extended = true
	return nil
}
