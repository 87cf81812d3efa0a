// Package nodes has the admission plugins for Nodes and for what kubelets write.
//
// A new Node gets a taint until it is ready. Where NodeRestriction is on, a kubelet writes its own
// Node and the pods on it, and nothing that would bring it more. Which requests a kubelet may make
// at all is decided by internal/access/authz/node.
package nodes

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/registry"
)

var nodes = corev1.Resource("nodes")

// TaintByCondition gives a new Node the taint that keeps pods from it until somebody says that it is
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
