package apps

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

func daemonSets() *resource.Definition {
	return kind.Kind[appsv1.DaemonSet, appsv1.DaemonSetList]{
		Definition: resource.Definition{
			Group: appsv1.GroupName, Plural: "daemonsets", ShortNames: []string{"ds"}, Categories: []string{"all"},
			Namespaced: true, HasGeneration: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, Prepare: resource.Changing(prepareDaemonSet)},
		},
		StatusKeeps: "spec",
		Rules:       rules,
		Default:     defaultDaemonSet,
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
		Cells: pod.TemplateCells("spec.template", kind.Cells{"nodes": pod.Labels("spec.template.spec.nodeSelector")}),
	}.New()
}

// defaultDaemonSet fills in what depends on the type of the strategy, and the count of
// changes of the template, which an annotation has.
func defaultDaemonSet(obj map[string]any) {
	setTemplateGeneration(obj, templateGeneration(obj))
	strategy := kind.Child(kind.Child(obj, "spec"), "updateStrategy")
	if kind.Text(strategy, "type") != string(appsv1.RollingUpdateDaemonSetStrategyType) {
		return
	}
	rolling := kind.Child(strategy, "rollingUpdate")
	kind.SetMissing(rolling, "maxUnavailable", int64(1))
	kind.SetMissing(rolling, "maxSurge", int64(0))
}

// prepareDaemonSet counts changes of the template.
func prepareDaemonSet(obj, old map[string]any) {
	prepareTemplate(obj, old)
	n := templateGeneration(obj)
	switch {
	case old == nil:
		n = max(n, 1)
	case object.Equal(kind.Value(obj, "spec", "template"), kind.Value(old, "spec", "template")):
		n = templateGeneration(old)
	default:
		n = templateGeneration(old) + 1
	}
	setTemplateGeneration(obj, n)
}

func templateGeneration(obj map[string]any) int64 {
	n, _ := strconv.ParseInt(kind.Text(obj, "metadata", "annotations", appsv1.DeprecatedTemplateGeneration), 10, 64)
	return n
}

func setTemplateGeneration(obj map[string]any, n int64) {
	kind.Child(kind.Child(obj, "metadata"), "annotations")[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(n, 10)
}
