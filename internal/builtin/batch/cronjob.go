package batch

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

func cronJobs(rules func() *rule.Set) *resource.Definition {
	return kind.Kind[*batchv1.CronJob, *batchv1.CronJobList]{
		Definition: resource.Definition{
			Group: batchv1.GroupName, Plural: "cronjobs", ShortNames: []string{"cj"}, Categories: []string{"all"},
			Namespaced: true, HasGeneration: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, Prepare: resource.Changing(prepareCronJob)},
		},
		StatusKeeps:    "spec",
		Rules:          rules,
		Validate:       validateCronJob,
		ValidateStatus: validateCronJobStatus,
		AnyFinalizers:  true, // in a write of the status
		Warn:           warnOfCronJob,
		Columns: `
			Schedule       string       .spec.schedule
			Timezone       string       .spec.timeZone:<none>  .spec.timeZone
			Suspend        boolean      suspended              .spec.suspend
			Active         integer      active                 .status.active
			Last Schedule  string       last                   .status.lastScheduleTime
			Age
			Containers     string wide  containers             "Names of each container in the template."
			Images         string wide  images                 "Images referenced by each container in the template."
			Selector       string wide  selector               .spec.jobTemplate.spec.selector
		`,
		Cells: pod.TemplateCells("spec.jobTemplate.spec.template", kind.Cells{
			"suspended": func(obj map[string]any) any {
				switch kind.Value(obj, "spec", "suspend") {
				case nil:
					return "<unset>"
				case true:
					return "True"
				}
				return "False"
			},
			"active": func(obj map[string]any) any { return int64(len(kind.List(obj, "status", "active"))) },
			"last": func(obj map[string]any) any {
				if last := kind.Text(obj, "status", "lastScheduleTime"); last != "" {
					return view.Age(last)
				}
				return "<none>"
			},
		}),
	}.New()
}

func prepareCronJob(obj, _ map[string]any) {
	pod.PrepareTemplate(kind.Tree(obj, "spec", "jobTemplate", "spec", "template"))
}
