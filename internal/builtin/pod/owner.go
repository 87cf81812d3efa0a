package pod

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// WarnOfOwnersName warns about a name that pods inherit and that is not a valid host name.
func WarnOfOwnersName(c *rule.Check, name string) {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		c.Warn("metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: %v", wrong)
	}
}

// Replicas are the pod counts in a workload's status.
type Replicas struct{ All, Labeled, Ready, Available int32 }

// ValidateReplicas rejects counts in a status at c that exceed the number of pods.
func ValidateReplicas(c *rule.Check, r Replicas) {
	c.At("fullyLabeledReplicas").AtMost(r.Labeled, r.All, "status.replicas")
	c.At("readyReplicas").AtMost(r.Ready, r.All, "status.replicas")
	c.At("availableReplicas").AtMost(r.Available, r.All, "status.replicas")
	c.At("availableReplicas").AtMost(r.Available, r.Ready, "readyReplicas")
}
