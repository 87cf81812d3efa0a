package policy

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

func podDisruptionBudgets() *resource.Definition {
	return kind.Kind[policyv1.PodDisruptionBudget, policyv1.PodDisruptionBudgetList]{
		Definition: resource.Definition{
			Group: policyv1.GroupName, Plural: "poddisruptionbudgets", ShortNames: []string{"pdb"},
			Namespaced: true, HasGeneration: true,
		},
		StatusKeeps: "spec",
		Columns: `
			Min Available        string   min   "The minimum number of pods that must be available."
			Max Unavailable      string   max   "The maximum number of pods that may be unavailable."
			Allowed Disruptions  integer  .status.disruptionsAllowed  "Calculated number of pods that may be disrupted at this time."
			Age
		`,
		Cells: kind.Cells{"min": limit("minAvailable"), "max": limit("maxUnavailable")},
	}.New()
}

// limit is the cell of a number or a percentage.
func limit(field string) func(map[string]any) any {
	return func(obj map[string]any) any {
		if v := kind.Value(obj, "spec", field); v != nil {
			return fmt.Sprint(v)
		}
		return "N/A"
	}
}
