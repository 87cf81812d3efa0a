// Package pod has the built-in kind Pod with its subresources, the Binding, and the templates
// of pods that other kinds have.
//
// It knows what a pod may be and what requests make of it: a deletion gives it time to
// end, a binding gives it a node, an eviction asks its budget. It starts no container; to
// those of a node it speaks through the kubelet (internal/kubelet). Kinds with a template
// use Rules, and the functions whose names end in Template.
package pod

import (
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/builtin/volume"
)

// Rules are the rules and defaults in Go of all types of a template.
var Rules = rule.All(
	volume.Rules,
	containerRules,
	specRules,
)
