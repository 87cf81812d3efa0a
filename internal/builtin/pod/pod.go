// Package pod has the built-in kind Pod with its subresources, the templates of pods that
// other kinds have, and the Binding.
//
// It knows what a pod may be and what requests make of it: a deletion gives it time to
// end, a binding gives it a node, an eviction asks its budget. It starts no container; to
// those of a node it speaks through the kubelet (internal/network/kubelet). Kinds with a template
// use Rules, and the functions whose names end in Template.
package pod

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/network/kubelet"
	"github.com/anykind/anykind/internal/object/resource"
)

// Others are the rules of pods, what requests for pods are about besides pods, and ways to
// pods.
type Others struct {
	// Rules are those of a Policy.
	Rules func() *rule.Set
	// Budgets are PodDisruptionBudgets. Evictions are what a client sends to evict a pod.
	Budgets, Evictions *resource.Definition
	Nodes              *resource.Definition
	Kubelets           *kubelet.Client
	Network            http.RoundTripper
}

// Definitions returns pods and bindings.
func Definitions(o Others) []*resource.Definition {
	b := &binder{}
	bound := bindingKind(b)
	b.pods = pods(b, bound, o)
	return []*resource.Definition{b.pods, bound}
}

// gracePeriod is what the client asks for, or what the pod says. A pod that is nowhere, or
// that has ended, needs no time.
func gracePeriod(pod map[string]any, asked *int64) int64 {
	phase := corev1.PodPhase(kind.Text(pod, "status", "phase"))
	switch seconds, _ := kind.Value(pod, "spec", "terminationGracePeriodSeconds").(int64); {
	case kind.Text(pod, "spec", "nodeName") == "", phase == corev1.PodFailed, phase == corev1.PodSucceeded:
		return 0
	case asked != nil:
		return *asked
	default:
		return seconds
	}
}
