package apps

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/resource"
)

func replicaSets() *resource.Definition {
	return kind.Kind[appsv1.ReplicaSet, appsv1.ReplicaSetList]{
		Definition: resource.Definition{
			Group: appsv1.GroupName, Plural: "replicasets", ShortNames: []string{"rs"}, Categories: []string{"all"},
			Namespaced: true, HasGeneration: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, Prepare: resource.Changing(prepareTemplate)},
		},
		Version:     scaled("replicasets"),
		StatusKeeps: "spec",
		Rules:       rules,
		Columns: `
			Desired     integer      .spec.replicas
			Current     integer      .status.replicas
			Ready       integer      .status.readyReplicas
			Age
			Containers  string wide  containers             "Names of each container in the template."
			Images      string wide  images                 "Images referenced by each container in the template."
			Selector    string wide  selector               .spec.selector
		`,
		Cells: pod.TemplateCells("spec.template", nil),
	}.New()
}
