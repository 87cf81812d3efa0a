package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

func replicaSets(rules func() *rule.Set) *resource.Definition {
	return kind.Kind[*appsv1.ReplicaSet, *appsv1.ReplicaSetList]{
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
		Cells:          pod.TemplateCells("spec.template", nil),
		Validate:       validateReplicaSet,
		ValidateStatus: validateReplicaSetStatus,
		Warn:           warnOfReplicaSet,
	}.New()
}

func validateReplicaSet(c *rule.Check, r, old *appsv1.ReplicaSet) {
	var template *corev1.PodTemplateSpec
	if old != nil {
		template = &old.Spec.Template
		c.At("spec", "selector").Immutable(r.Spec.Selector, old.Spec.Selector)
	}
	c.Fields(&r.Spec, "spec")
	validateReplicated(c, r.Spec.Selector, &r.Spec.Template, template)
}

func validateReplicaSetStatus(c *rule.Check, r, _ *appsv1.ReplicaSet) {
	s := &r.Status
	c.Fields(s, "status")
	pod.ValidateReplicas(c.At("status"), pod.Replicas{All: s.Replicas, Labeled: s.FullyLabeledReplicas, Ready: s.ReadyReplicas, Available: s.AvailableReplicas})
}

func warnOfReplicaSet(c *rule.Check, r, old *appsv1.ReplicaSet) {
	switch {
	case old == nil:
		pod.WarnOfOwnersName(c, r.Name)
		pod.WarnOfTemplate(c.At("spec", "template"), &r.Spec.Template, nil)
	case r.Generation != old.Generation:
		pod.WarnOfTemplate(c.At("spec", "template"), &r.Spec.Template, &old.Spec.Template)
	}
}
