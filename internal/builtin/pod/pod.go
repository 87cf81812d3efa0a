// Package pod has the built-in kind Pod with its subresources, the pod templates of other kinds,
// and the Binding.
//
// It validates and completes pods, and handles requests: a deletion has a grace period, a binding
// sets the node, an eviction checks budgets. It starts no container; it connects to those of a node
// through the kubelet (internal/network/kubelet). Kinds with a template use Rules, and the
// functions whose names end in Template.
package pod

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/network/kubelet"
	"github.com/anykind/anykind/internal/network/remotecommand"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// Dependencies are the rules of pods, related kinds, and transports to pods.
type Dependencies struct {
	// Rules are the rules of a Policy.
	Rules func() *rule.Set
	// Budgets is the kind PodDisruptionBudget. Evictions is the kind Eviction.
	Budgets, Evictions *resource.Definition
	Nodes              *resource.Definition
	Kubelets           *kubelet.Client
	Network            http.RoundTripper
	Streams            *remotecommand.Metrics
	// Gates decide defaults.
	Gates *gate.Set
}

// Definitions returns pods and bindings.
func Definitions(o Dependencies) []*resource.Definition {
	b := &binder{}
	bound := bindingKind(b)
	b.pods = pods(b, bound, o)
	return []*resource.Definition{b.pods, bound}
}

// gracePeriod returns the requested grace period, or that of the pod. It is 0 for a pod without a
// node, or one that has terminated.
func gracePeriod(pod map[string]any, requested *int64) int64 {
	phase := corev1.PodPhase(kind.Text(pod, "status", "phase"))
	switch seconds, _ := kind.Value(pod, "spec", "terminationGracePeriodSeconds").(int64); {
	case kind.Text(pod, "spec", "nodeName") == "", phase == corev1.PodFailed, phase == corev1.PodSucceeded:
		return 0
	case requested != nil:
		return *requested
	default:
		return seconds
	}
}
