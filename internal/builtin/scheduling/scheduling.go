// Package scheduling has the built-in kinds of scheduling.k8s.io: PriorityClass, and groups of pods.
//
// It validates them. An admission plugin applies PriorityClasses to pods and groups, and kube-scheduler
// schedules the groups.
package scheduling

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group. Defaults depend on gates.
func Definitions(gates *gate.Set) []*resource.Definition {
	return []*resource.Definition{priorityClasses(), workloads(), podGroups(gates), compositePodGroups(gates)}
}

func priorityClasses() *resource.Definition {
	return kind.Kind[*schedulingv1.PriorityClass, *schedulingv1.PriorityClassList]{
		Definition: resource.Definition{
			Group: schedulingv1.GroupName, Plural: "priorityclasses", ShortNames: []string{"pc"},
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, Prepare: resource.Changing(preparePriorityClass)},
		},
		Validate: validatePriorityClass,
		Columns: `
			Value             integer  .value
			Global-Default    boolean  .globalDefault
			Age
			PreemptionPolicy  string   .preemptionPolicy
		`,
	}.New()
}

// preparePriorityClass sets the generation, which never changes.
func preparePriorityClass(obj, old map[string]any) {
	if old == nil {
		object.SetGeneration(obj, 1)
	}
}

const (
	// reserved begins the names of system classes.
	reserved = "system-"
	// highest is the largest value of a user-defined class.
	highest = 1_000_000_000
)

// System are the system classes by name.
var System = map[string]schedulingv1.PriorityClass{
	"system-node-critical": {
		Value:       2*highest + 1000,
		Description: "Used for system critical pods that must not be moved from their current node.",
	},
	"system-cluster-critical": {
		Value:       2 * highest,
		Description: "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
	},
}

func validatePriorityClass(c *rule.Check, class, old *schedulingv1.PriorityClass) {
	if old != nil {
		if class.Value != old.Value {
			c.At("value").Forbidden("may not be changed in an update.")
		}
		c.Add(apivalidation.ValidateImmutableField(class.PreemptionPolicy, old.PreemptionPolicy, c.At("preemptionPolicy").Path())...)
		return
	}
	if strings.HasPrefix(class.Name, reserved) {
		if err := isSystem(class); err != nil {
			c.At("metadata", "name").Forbidden(fmt.Sprintf("priority class names with '%s' prefix are reserved for system use only. error: %v", reserved, err))
		}
	} else if class.Value > highest {
		c.At("value").Forbidden(fmt.Sprintf("maximum allowed value of a user defined priority is %d", highest))
	}
	if p := class.PreemptionPolicy; p != nil {
		switch *p {
		case corev1.PreemptLowerPriority, corev1.PreemptNever:
		case "":
			c.At("preemptionPolicy").Required("")
		default:
			rule.NotSupported(c.At("preemptionPolicy"), *p, corev1.PreemptLowerPriority, corev1.PreemptNever)
		}
	}
}

// isSystem returns an error if a class is not one of the system.
func isSystem(class *schedulingv1.PriorityClass) error {
	known, ok := System[class.Name]
	switch {
	case !ok:
		return fmt.Errorf("%v is not a known system priority class", class.Name)
	case class.Value != known.Value:
		return fmt.Errorf("value of %v PriorityClass must be %v", class.Name, known.Value)
	case class.GlobalDefault:
		return fmt.Errorf("globalDefault of %v PriorityClass must be %v", class.Name, known.GlobalDefault)
	}
	return nil
}
