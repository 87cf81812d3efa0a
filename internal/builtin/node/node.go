// Package node has the built-in kind RuntimeClass of node.k8s.io.
//
// It validates RuntimeClasses. An admission plugin applies them to pods.
package node

import (
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{runtimeClasses()}
}

func runtimeClasses() *resource.Definition {
	return kind.Kind[*nodev1.RuntimeClass, *nodev1.RuntimeClassList]{
		Definition: resource.Definition{
			Group: nodev1.SchemeGroupVersion.Group, Plural: "runtimeclasses",
			Strategy: resource.Strategy{AllowCreateOnUpdate: true},
		},
		AnyFinalizers: true,
		Rules:         rule.Lazy(pod.Rules), Validate: validateClass, Warn: warnOfClass,
		Columns: `
			Handler  string  .handler  ""
			Age
		`,
	}.New()
}

func validateClass(c *rule.Check, class, old *nodev1.RuntimeClass) {
	validateHandler(c.At("handler"), class, old)
	if class.Overhead != nil {
		// Kubernetes validates the overhead as limits of a container.
		pod.ValidateResources(c.At("overhead"), &corev1.ResourceRequirements{Limits: class.Overhead.PodFixed})
	}
	if class.Scheduling != nil {
		validateScheduling(c.At("scheduling"), class.Scheduling)
	}
}

func validateHandler(c *rule.Check, class, old *nodev1.RuntimeClass) {
	of, label := class.Handler, content.IsDNS1123Label
	if old != nil {
		// Kubernetes words this error differently, and does not tolerate old values.
		label = func(s string) []string { return apivalidation.NameIsDNSLabel(s, false) }
		c.UnchangedBeta(of, old.Handler)
	}
	if of == "" {
		c.Required("")
		return
	}
	c.Invalids(of, label(of))
}

func validateScheduling(c *rule.Check, s *nodev1.Scheduling) {
	selector := c.At("nodeSelector")
	c.Add(metavalidation.ValidateLabels(s.NodeSelector, selector.Path())...)
	seen := map[corev1.Toleration]bool{}
	for i, t := range s.Tolerations {
		at := c.At("tolerations", i)
		at.Walk(&s.Tolerations[i])
		without := t
		without.TolerationSeconds = nil
		if seen[without] {
			at.Duplicate(t)
		}
		seen[without] = true
	}
}

func warnOfClass(c *rule.Check, class, _ *nodev1.RuntimeClass) {
	if class.Scheduling == nil {
		return
	}
	for _, label := range kind.SortedKeys(class.Scheduling.NodeSelector) {
		kind.WarnOfNodeLabel(c.At("scheduling", "nodeSelector"), label)
	}
}
