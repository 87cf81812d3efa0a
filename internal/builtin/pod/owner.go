package pod

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// WarnOfOwnersName tells that the name of an object becomes part of the names of its pods.
func WarnOfOwnersName(c *rule.Check, name string) {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		c.Warn("metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: %v", wrong)
	}
}

// Replicas are how many pods an object that keeps a number of them says it has.
type Replicas struct{ All, Labeled, Ready, Available int32 }

// ValidateReplicas finds counts, in a status at which c looks, of more pods than there are.
func ValidateReplicas(c *rule.Check, r Replicas) {
	c.At("fullyLabeledReplicas").NoMore(r.Labeled, r.All, "status.replicas")
	c.At("readyReplicas").NoMore(r.Ready, r.All, "status.replicas")
	c.At("availableReplicas").NoMore(r.Available, r.All, "status.replicas")
	c.At("availableReplicas").NoMore(r.Available, r.Ready, "readyReplicas")
}
