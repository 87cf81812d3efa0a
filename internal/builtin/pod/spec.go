package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// specRules are the rules and defaults of all that is in a spec, but in its containers and
// volumes.
var specRules = rule.All(
	rule.Default[corev1.PodSpec](defaultSpec),
)
