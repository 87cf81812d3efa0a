package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

func statefulSets(rules func() *rule.Set) *resource.Definition {
	return kind.Kind[*appsv1.StatefulSet, *appsv1.StatefulSetList]{
		Definition: resource.Definition{
			Group: appsv1.GroupName, Plural: "statefulsets", ShortNames: []string{"sts"}, Categories: []string{"all"},
			Namespaced: true, HasGeneration: true,
			Strategy: resource.Strategy{
				AllowUnconditionalUpdate: true,
				ValidateName:             apivalidation.NameIsDNSLabel, // pods have its name as a prefix
				Prepare:                  resource.Changing(prepareTemplate),
			},
		},
		Version:     scaled("statefulsets"),
		StatusKeeps: "spec",
		Rules:       rules,
		Default:     defaultStatefulSet,
		Columns: `
			Ready       string       ready       "Number of the pod with ready state"
			Age
			Containers  string wide  containers  "Names of each container in the template."
			Images      string wide  images      "Images referenced by each container in the template."
		`,
		Cells:          pod.TemplateCells("spec.template", kind.Cells{"ready": ready}),
		Validate:       validateStatefulSet,
		ValidateStatus: validateStatefulSetStatus,
		Warn:           warnOfStatefulSet,
	}.New()
}

// defaultStatefulSet sets the defaults that depend on other fields, and the apiVersion and kind of
// claim templates.
func defaultStatefulSet(obj map[string]any) {
	spec := kind.Child(obj, "spec")
	strategy := kind.Child(spec, "updateStrategy")
	if kind.Text(strategy, "type") == "" {
		strategy["type"] = string(appsv1.RollingUpdateStatefulSetStrategyType)
		kind.Child(strategy, "rollingUpdate")
	}
	if rolling := kind.Tree(strategy, "rollingUpdate"); kind.Text(strategy, "type") == string(appsv1.RollingUpdateStatefulSetStrategyType) {
		kind.SetMissing(rolling, "partition", int64(0))
		kind.SetMissing(rolling, "maxUnavailable", int64(1))
	}
	retention := kind.Child(spec, "persistentVolumeClaimRetentionPolicy")
	for _, when := range []string{"whenDeleted", "whenScaled"} {
		kind.SetDefault(retention, when, string(appsv1.RetainPersistentVolumeClaimRetentionPolicyType))
	}
	for _, t := range kind.List(spec, "volumeClaimTemplates") {
		if claim, ok := t.(map[string]any); ok {
			claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
			kind.SetDefault(kind.Child(claim, "status"), "phase", string(corev1.ClaimPending))
		}
	}
}
