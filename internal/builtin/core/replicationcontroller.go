package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/scale"
)

func replicationControllers(rules func() *rule.Set) *resource.Definition {
	of := corev1.SchemeGroupVersion.WithResource("replicationcontrollers")
	return kind.Kind[*corev1.ReplicationController, *corev1.ReplicationControllerList]{
		Definition: resource.Definition{
			Plural: of.Resource, ShortNames: []string{"rc"}, Categories: []string{"all"},
			Namespaced: true, HasGeneration: true,
			StoragePrefix: resource.BuiltInPrefix("controllers"),
			Strategy: resource.Strategy{
				AllowUnconditionalUpdate: true, OrphansDependents: true,
				ValidateName: func(name string, prefix bool) []string {
					if prefix { // kube-apiserver only checks the generated name
						return nil
					}
					return content.IsDNS1123Subdomain(name) // which has different messages
				},
				Prepare: resource.Changing(prepareReplicationController),
			},
		},
		Version:     &resource.Version{Subresources: []resource.Subresource{scale.BuiltIn(of, scale.LabelSet)}},
		StatusKeeps: "spec",
		Rules:       rules,
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
		Cells:          pod.TemplateCells("spec.template", kind.Cells{"selector": pod.Labels("spec.selector")}),
		Select:         "status.replicas",
		Validate:       validateReplicationController,
		ValidateStatus: validateReplicationControllerStatus,
		Warn:           warnOfReplicationController,
	}.New()
}

// defaultReplicationController sets a missing selector, and missing labels, to the labels of the
// template.
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

func prepareReplicationController(obj, _ map[string]any) {
	pod.PrepareTemplate(kind.Tree(obj, "spec", "template"))
}

func validateReplicationController(c *rule.Check, r, old *corev1.ReplicationController) {
	spec, at := &r.Spec, c.At("spec", "template")
	var template *corev1.PodTemplateSpec
	if old != nil {
		template = old.Spec.Template
	}
	c.Fields(spec, "spec")
	if spec.Template == nil {
		at.Required("")
		return
	}
	if !labels.SelectorFromSet(spec.Selector).Matches(labels.Set(spec.Template.Labels)) {
		at.At("metadata", "labels").Invalid(spec.Template.Labels, "`selector` does not match template `labels`")
	}
	pod.ValidateTemplate(at, spec.Template, template)
	if p := spec.Template.Spec.RestartPolicy; p != corev1.RestartPolicyAlways {
		rule.NotSupported(at.At("spec", "restartPolicy"), p, corev1.RestartPolicyAlways)
	}
	if spec.Template.Spec.ActiveDeadlineSeconds != nil {
		at.At("spec", "activeDeadlineSeconds").Forbidden("activeDeadlineSeconds in ReplicationController is not Supported")
	}
}

func validateReplicationControllerStatus(c *rule.Check, r, _ *corev1.ReplicationController) {
	s := &r.Status
	c.Fields(s, "status")
	pod.ValidateReplicas(c.At("status"), pod.Replicas{All: s.Replicas, Labeled: s.FullyLabeledReplicas, Ready: s.ReadyReplicas, Available: s.AvailableReplicas})
}

func warnOfReplicationController(c *rule.Check, r, old *corev1.ReplicationController) {
	at := c.At("spec", "template")
	switch {
	case old == nil:
		pod.WarnOfOwnersName(c, r.Name)
		pod.WarnOfTemplate(at, r.Spec.Template, nil)
	case r.Generation != old.Generation: // as in kube-apiserver, with the old template
		pod.WarnOfTemplate(at, old.Spec.Template, r.Spec.Template)
	}
}
