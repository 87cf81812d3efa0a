package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/builtin/volume"
)

// Rules are the rules and defaults in Go of all types of a pod and of a template.
var Rules = rule.All(
	volume.Rules,
	containerRules,
	specRules,
	rule.Default[corev1.Pod](defaultPod),
	rule.Default[corev1.PodStatus](defaultStatus),
)

// A Policy is what pods may be in a cluster. Nothing is allowed by the zero value.
type Policy struct {
	// Privileged containers have the rights of their host, as have those that are
	// processes of a Windows host.
	Privileged bool
}

// Rules are those of pods and templates where the policy holds.
func (p Policy) Rules() func() *rule.Set { return rule.Lazy(Rules, rule.Giving(&p)) }
