package apps

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

func daemonSets(rules func() *rule.Set) *resource.Definition {
	return kind.Kind[*appsv1.DaemonSet, *appsv1.DaemonSetList]{
		Definition: resource.Definition{
			Group: appsv1.GroupName, Plural: "daemonsets", ShortNames: []string{"ds"}, Categories: []string{"all"},
			Namespaced: true, HasGeneration: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, Prepare: resource.Changing(prepareDaemonSet)},
		},
		StatusKeeps: "spec",
		Rules:       rules,
		Default:     defaultDaemonSet,
		Refuse: func(obj map[string]any) error {
			_, _, err := readRevision(obj, appsv1.DeprecatedTemplateGeneration)
			return err
		},
		Columns: `
			Desired        integer      .status.desiredNumberScheduled
			Current        integer      .status.currentNumberScheduled
			Ready          integer      .status.numberReady
			Up-to-date     integer      .status.updatedNumberScheduled
			Available      integer      .status.numberAvailable
			Node Selector  string       nodes                           .spec.template.spec.nodeSelector
			Age
			Containers     string wide  containers                      "Names of each container in the template."
			Images         string wide  images                          "Images referenced by each container in the template."
			Selector       string wide  selector                        .spec.selector
		`,
		Cells:          pod.TemplateCells("spec.template", kind.Cells{"nodes": pod.Labels("spec.template.spec.nodeSelector")}),
		Validate:       validateDaemonSet,
		ValidateStatus: validateDaemonSetStatus,
		Warn:           warnOfDaemonSet,
	}.New()
}

// defaultDaemonSet sets the defaults that depend on the strategy type, and templateGeneration from
// its annotation.
func defaultDaemonSet(obj map[string]any) {
	setTemplateGeneration(obj, templateGeneration(obj))
	strategy := kind.Child(kind.Child(obj, "spec"), "updateStrategy")
	unavailable := int64(0)
	if kind.Text(strategy, "type") == string(appsv1.RollingUpdateDaemonSetStrategyType) {
		kind.Child(strategy, "rollingUpdate")
		unavailable = 1
	}
	rolling := kind.Tree(strategy, "rollingUpdate") // both fields are always present
	kind.SetMissing(rolling, "maxUnavailable", unavailable)
	kind.SetMissing(rolling, "maxSurge", int64(0))
}

// prepareDaemonSet increments templateGeneration after a change of the template.
func prepareDaemonSet(obj, old map[string]any) {
	prepareTemplate(obj, old)
	n := templateGeneration(obj)
	switch {
	case old == nil:
		n = max(n, 1)
	case kind.Alike[corev1.PodTemplateSpec](obj, old, "spec", "template"):
		n = templateGeneration(old)
	default:
		n = templateGeneration(old) + 1
	}
	setTemplateGeneration(obj, n)
}

func templateGeneration(obj map[string]any) int64 {
	n, _, _ := readRevision(obj, appsv1.DeprecatedTemplateGeneration)
	return n
}

func setTemplateGeneration(obj map[string]any, n int64) {
	kind.Child(kind.Child(obj, "metadata"), "annotations")[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(n, 10)
}

func validateDaemonSet(c *rule.Check, d, old *appsv1.DaemonSet) {
	spec, at := &d.Spec, c.At("spec")
	options := metavalidation.LabelSelectorValidationOptions{}
	var template *corev1.PodTemplateSpec
	if old != nil {
		template = &old.Spec.Template
		options.AllowInvalidLabelValueInSelector = metavalidation.LabelSelectorHasInvalidLabelValue(old.Spec.Selector)
		at.At("selector").Immutable(spec.Selector, old.Spec.Selector)
	}
	c.Fields(spec, "spec")
	if spec.Selector != nil {
		validateSelector(at.At("selector"), spec.Selector, "daemonset", options)
	}
	if selector, err := metav1.LabelSelectorAsSelector(spec.Selector); err == nil {
		validateLabels(at.At("template"), &spec.Template, selector)
	}
	pod.ValidateTemplate(at.At("template"), &spec.Template, template)
	validateRunning(at.At("template"), &spec.Template, "DaemonSet", string(corev1.RestartPolicyAlways))
	if n := templateGeneration(c.Object); n < 0 {
		at.At("templateGeneration").Invalid(n, "must be greater than or equal to 0")
	}
	validateDaemonSetStrategy(at.At("updateStrategy"), &spec.UpdateStrategy)
}

func validateDaemonSetStrategy(c *rule.Check, s *appsv1.DaemonSetUpdateStrategy) {
	const rolling, onDelete = appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType
	switch {
	case s.Type == onDelete:
	case s.Type != rolling:
		rule.NotSupported(c, s, rolling, onDelete)
	default:
		at, update := c.At("rollingUpdate"), s.RollingUpdate
		at.Fields(update)
		surge, _ := rule.Share(update.MaxSurge)
		switch unavailable, _ := rule.Share(update.MaxUnavailable); {
		case unavailable != 0 && surge != 0:
			at.At("maxSurge").Invalid(*update.MaxSurge, "may not be set when maxUnavailable is non-zero")
		case unavailable == 0 && surge == 0:
			at.At("maxUnavailable").Required("cannot be 0 when maxSurge is 0")
		}
	}
}

func validateDaemonSetStatus(c *rule.Check, d, old *appsv1.DaemonSet) {
	c.Fields(&d.Status, "status")
	c.At("status", "collisionCount").Counts(d.Status.CollisionCount, old.Status.CollisionCount)
}

func warnOfDaemonSet(c *rule.Check, d, old *appsv1.DaemonSet) {
	switch {
	case old == nil:
		pod.WarnOfTemplate(c.At("spec", "template"), &d.Spec.Template, nil)
	case templateGeneration(c.Object) != templateGeneration(c.Old):
		pod.WarnOfTemplate(c.At("spec", "template"), &d.Spec.Template, &old.Spec.Template)
	}
}
