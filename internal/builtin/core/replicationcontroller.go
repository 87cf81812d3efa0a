package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/scale"
)

var templateRules = rule.Lazy(pod.Rules)

func replicationControllers() *resource.Definition {
	of := corev1.SchemeGroupVersion.WithResource("replicationcontrollers")
	return kind.Kind[corev1.ReplicationController, corev1.ReplicationControllerList]{
		Definition: resource.Definition{
			Plural: of.Resource, ShortNames: []string{"rc"}, Categories: []string{"all"},
			Namespaced: true, HasGeneration: true,
			StoragePrefix: resource.BuiltInPrefix("controllers"),
			Strategy:      resource.Strategy{AllowUnconditionalUpdate: true, Prepare: resource.Changing(prepareReplicationController)},
		},
		Version:     &resource.Version{Subresources: []resource.Subresource{scale.BuiltIn(of, scale.LabelSet)}},
		StatusKeeps: "spec",
		Rules:       templateRules,
		Default:     defaultReplicationController,
		Columns: `
			Desired     integer      .spec.replicas
			Current     integer      .status.replicas
			Ready       integer      .status.readyReplicas
			Age
			Containers  string wide  containers             "Names of each container in the template."
			Images      string wide  images                 "Images referenced by each container in the template."
			Selector    string wide  selector               .spec.selector
		`,
		Cells:  pod.TemplateCells("spec.template", kind.Cells{"selector": pod.Labels("spec.selector")}),
		Select: "status.replicas",
	}.New()
}

// defaultReplicationController makes a controller that selects nothing select the pods of
// its template, and gives it their labels if it has none.
func defaultReplicationController(obj map[string]any) {
	spec := kind.Child(obj, "spec")
	labels := kind.Tree(spec, "template", "metadata", "labels")
	if len(labels) == 0 {
		return
	}
	if len(kind.Tree(spec, "selector")) == 0 {
		spec["selector"] = object.Clone(labels)
	}
	if len(kind.Tree(obj, "metadata", "labels")) == 0 {
		kind.Child(obj, "metadata")["labels"] = object.Clone(labels)
	}
}

func prepareReplicationController(obj, old map[string]any) {
	pod.PrepareTemplate(kind.Tree(obj, "spec", "template"), kind.Tree(old, "spec", "template"))
}
