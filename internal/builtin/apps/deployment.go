package apps

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

func deployments() *resource.Definition {
	return kind.Kind[appsv1.Deployment, appsv1.DeploymentList]{
		Definition: resource.Definition{
			Group: appsv1.GroupName, Plural: "deployments", ShortNames: []string{"deploy"}, Categories: []string{"all"},
			Namespaced: true, HasGeneration: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, Prepare: resource.Changing(prepareDeployment)},
		},
		Version:     scaled("deployments"),
		StatusKeeps: "spec metadata.labels",
		Rules:       rules,
		Default:     defaultDeployment,
		Columns: `
			Ready       string       ready                      "Number of the pod with ready state"
			Up-to-date  string       .status.updatedReplicas
			Available   string       .status.availableReplicas
			Age
			Containers  string wide  containers                 "Names of each container in the template."
			Images      string wide  images                     "Images referenced by each container in the template."
			Selector    string wide  deployed                   .spec.selector
		`,
		Cells: pod.TemplateCells("spec.template", kind.Cells{"ready": ready, "deployed": deployedSelector}),
	}.New()
}

// defaultDeployment fills in what depends on the type of the strategy.
func defaultDeployment(obj map[string]any) {
	strategy := kind.Child(kind.Child(obj, "spec"), "strategy")
	if kind.Text(strategy, "type") != string(appsv1.RollingUpdateDeploymentStrategyType) {
		return
	}
	rolling := kind.Child(strategy, "rollingUpdate")
	kind.SetMissing(rolling, "maxUnavailable", "25%")
	kind.SetMissing(rolling, "maxSurge", "25%")
}

// prepareDeployment counts changes of annotations, too, which go to the ReplicaSets.
func prepareDeployment(obj, old map[string]any) {
	prepareTemplate(obj, old)
	if old != nil && !object.Equal(kind.Tree(obj, "metadata", "annotations"), kind.Tree(old, "metadata", "annotations")) {
		object.SetGeneration(obj, object.Generation(old)+1)
	}
}
