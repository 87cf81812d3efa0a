// Package scheduling has the built-in kind of scheduling.k8s.io, PriorityClass.
//
// It knows what one may say. What pods have of it is for admission.
package scheduling

import (
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{priorityClasses()}
}

func priorityClasses() *resource.Definition {
	return kind.Kind[schedulingv1.PriorityClass, schedulingv1.PriorityClassList]{
		Definition: resource.Definition{
			Group: schedulingv1.GroupName, Plural: "priorityclasses", ShortNames: []string{"pc"},
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		Columns: `
			Value             integer  .value
			Global-Default    boolean  .globalDefault
			Age
			PreemptionPolicy  string   .preemptionPolicy
		`,
	}.New()
}
