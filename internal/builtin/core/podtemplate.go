package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

func podTemplates(rules func() *rule.Set) *resource.Definition {
	return kind.Kind[*corev1.PodTemplate, *corev1.PodTemplateList]{
		Definition: resource.Definition{
			Plural: "podtemplates", Namespaced: true, HasGeneration: true, ReturnsDeleted: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, Prepare: resource.Changing(preparePodTemplate)},
		},
		Rules: rules,
		Columns: `
			Containers  string  containers  "Names of each container in the template."
			Images      string  images      "Images referenced by each container in the template."
			Pod Labels  string  labels      "The labels for the pod template."
		`,
		Cells:    pod.TemplateCells("template", kind.Cells{"labels": pod.Labels("template.metadata.labels")}),
		Validate: validatePodTemplate,
		Warn:     warnOfPodTemplate,
	}.New()
}

func preparePodTemplate(obj, _ map[string]any) { pod.PrepareTemplate(kind.Tree(obj, "template")) }

func validatePodTemplate(c *rule.Check, t, old *corev1.PodTemplate) {
	pod.ValidateTemplate(c.At("template"), &t.Template, oldTemplate(old))
}

func warnOfPodTemplate(c *rule.Check, t, old *corev1.PodTemplate) {
	if old == nil || t.Generation != old.Generation {
		pod.WarnOfTemplate(c.At("template"), &t.Template, oldTemplate(old))
	}
}

func oldTemplate(old *corev1.PodTemplate) *corev1.PodTemplateSpec {
	if old == nil {
		return nil
	}
	return &old.Template
}
