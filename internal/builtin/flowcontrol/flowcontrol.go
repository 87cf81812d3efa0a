// Package flowcontrol has the built-in kinds of flowcontrol.apiserver.k8s.io: FlowSchemas classify
// requests, and PriorityLevelConfigurations limit their concurrency.
//
// It validates them.
package flowcontrol

import (
	"cmp"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{flowSchemas(), priorityLevels()}
}

func flowSchemas() *resource.Definition {
	return kind.Kind[*flowcontrolv1.FlowSchema, *flowcontrolv1.FlowSchemaList]{
		Definition: resource.Definition{
			Group: flowcontrolv1.GroupName, Plural: "flowschemas", HasGeneration: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		Version:     &resource.Version{CompareRows: byPrecedence},
		StatusKeeps: "spec metadata metadata.generateName metadata.deletionGracePeriodSeconds metadata.uid",
		Rules:       rules, Validate: validateFlowSchema, ValidateStatus: validateFlowSchemaStatus,
		Columns: `
			PriorityLevel        string  .spec.priorityLevelConfiguration.name
			MatchingPrecedence   string  .spec.matchingPrecedence
			DistinguisherMethod  string  distinguisher  .spec.distinguisherMethod
			Age
			MissingPL            string  dangling  "references a broken or non-existent PriorityLevelConfiguration"
		`,
		Cells: kind.Cells{"distinguisher": distinguisher, "dangling": dangling},
	}.New()
}

// byPrecedence sorts FlowSchemas in matching order.
func byPrecedence(a, b map[string]any) int {
	precedence := func(obj map[string]any) int64 {
		n, _ := kind.Tree(obj, "spec")["matchingPrecedence"].(int64)
		return n
	}
	return cmp.Or(cmp.Compare(precedence(a), precedence(b)), cmp.Compare(object.Name(a), object.Name(b)))
}

func distinguisher(obj map[string]any) any {
	if method := kind.Tree(obj, "spec", "distinguisherMethod"); method != nil {
		return kind.Text(method, "type")
	}
	return "<none>"
}

// dangling returns the cell for the condition Dangling of a FlowSchema.
func dangling(obj map[string]any) any {
	for _, c := range kind.List(obj, "status", "conditions") {
		condition, _ := c.(map[string]any)
		if kind.Text(condition, "type") == string(flowcontrolv1.FlowSchemaConditionDangling) {
			return kind.Text(condition, "status")
		}
	}
	return "?"
}

func priorityLevels() *resource.Definition {
	return kind.Kind[*flowcontrolv1.PriorityLevelConfiguration, *flowcontrolv1.PriorityLevelConfigurationList]{
		Definition: resource.Definition{
			Group: flowcontrolv1.GroupName, Plural: "prioritylevelconfigurations", HasGeneration: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		StatusKeeps: "spec metadata metadata.generateName metadata.deletionGracePeriodSeconds metadata.uid",
		Rules:       rules, Validate: validateLevel, ValidateStatus: validateLevelStatus,
		Columns: `
			Type                      string  .spec.type
			NominalConcurrencyShares  string  .spec.limited.nominalConcurrencyShares:<none>
			Queues                    string  .spec.limited.limitResponse.queuing.queues:<none>
			HandSize                  string  .spec.limited.limitResponse.queuing.handSize:<none>
			QueueLengthLimit          string  .spec.limited.limitResponse.queuing.queueLengthLimit:<none>
			Age
		`,
	}.New()
}
