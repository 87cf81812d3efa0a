package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/builtin/volume"
)

// Rules are the Go rules and defaults for all types of pods and pod templates.
var Rules = rule.All(
	volume.Rules,
	containerRules,
	specRules,
	rule.Default[corev1.Pod](defaultPod),
	rule.Default[corev1.PodStatus](defaultStatus),
)

// A Policy has cluster-wide permissions of pods. The zero value allows none.
type Policy struct {
	// Privileged allows privileged containers and Windows HostProcess containers.
	Privileged bool
}

// Rules returns the rules of pods and templates under the policy.
func (p Policy) Rules() func() *rule.Set { return rule.Lazy(Rules, rule.Giving(&p)) }
