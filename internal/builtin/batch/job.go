package batch

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

func jobs(rules func() *rule.Set) *resource.Definition {
	return kind.Kind[*batchv1.Job, *batchv1.JobList]{
		Definition: resource.Definition{
			Group: batchv1.GroupName, Plural: "jobs", Categories: []string{"all"},
			Namespaced: true, HasGeneration: true,
			LabelError: func(_, label string) string { return fmt.Sprintf("field label %q not supported for Job", label) },
			Strategy: resource.Strategy{
				AllowUnconditionalUpdate: true, OrphansDependents: true, OrphanWarning: orphanWarning,
				Prepare: resource.Changing(prepareJob), Canonicalize: labelStored,
			},
		},
		StatusKeeps: "spec",
		Rules:       rules,
		Default:     defaultJob,
		Columns: `
			Status       string       status       "Status of the job."
			Completions  string       completions  .status.succeeded
			Duration     string       duration     "Time required to complete the job."
			Age
			Containers   string wide  containers   "Names of each container in the template."
			Images       string wide  images       "Images referenced by each container in the template."
			Selector     string wide  selector     .spec.selector
		`,
		Cells: pod.TemplateCells("spec.template", kind.Cells{
			"status": jobStatus, "completions": jobCompletions, "duration": jobDuration,
		}),
		Select:         "status.successful=status.succeeded",
		Validate:       validateJob,
		ValidateStatus: validateJobStatus,
		Warn:           warnOfJob,
	}.New()
}

// orphanWarning is the warning of Kubernetes; clients show it.
const orphanWarning = "child pods are preserved by default when jobs are deleted; " +
	"set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"

// defaultJob sets the defaults that depend on other fields. They do not apply to the Job template
// of a CronJob.
func defaultJob(obj map[string]any) {
	spec := kind.Child(obj, "spec")
	if spec["parallelism"] == nil {
		kind.SetMissing(spec, "completions", int64(1))
		spec["parallelism"] = int64(1)
	}
	limit, replace := int64(6), batchv1.TerminatingOrFailed
	if spec["backoffLimitPerIndex"] != nil {
		limit = math.MaxInt32
	}
	if spec["podFailurePolicy"] != nil {
		replace = batchv1.Failed
	}
	kind.SetMissing(spec, "backoffLimit", limit)
	kind.SetMissing(spec, "podReplacementPolicy", string(replace))
	kind.SetMissing(spec, "completionMode", string(batchv1.NonIndexedCompletion))
	kind.SetMissing(spec, "suspend", false)
	kind.SetMissing(spec, "manualSelector", false)
	if labels := kind.Tree(spec, "template", "metadata", "labels"); labels != nil && len(kind.Tree(obj, "metadata", "labels")) == 0 {
		// The Job gets the labels of its pods. prepareJob then adds to both.
		kind.Child(obj, "metadata")["labels"] = labels
	}
}

func prepareJob(obj, old map[string]any) {
	spec := kind.Child(obj, "spec")
	if old == nil && kind.Value(spec, "manualSelector") != true {
		selectOwn(spec, object.Name(obj), object.UID(obj))
	}
	if own := kind.Tree(obj, "metadata", "labels"); len(own) > 0 && isSame(own, labelsOfPods(obj)) {
		kind.Child(obj, "metadata")["labels"] = object.Clone(own)
	}
	pod.PrepareTemplate(kind.Tree(spec, "template"))
}

func labelsOfPods(job map[string]any) map[string]any {
	return kind.Tree(job, "spec", "template", "metadata", "labels")
}

// labelStored gives a Job without labels those of its pods. Kubernetes does so when it reads a
// stored Job.
func labelStored(job map[string]any) {
	if labels := labelsOfPods(job); len(labels) > 0 && len(kind.Tree(job, "metadata", "labels")) == 0 {
		kind.Child(job, "metadata")["labels"] = object.Clone(labels)
	}
}

func isSame(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// Labels of the pods of a Job, which its selector matches.
const (
	oldNameLabel = "job-name"
	oldUIDLabel  = "controller-uid"
)

// selectOwn sets the labels of the pods and the selector of a Job. Values of the client stay;
// validation then rejects them.
func selectOwn(spec map[string]any, name, uid string) {
	labels := kind.Child(kind.Child(kind.Child(spec, "template"), "metadata"), "labels")
	own := map[string]any{oldNameLabel: name, batchv1.JobNameLabel: name, oldUIDLabel: uid, batchv1.ControllerUidLabel: uid}
	maps.Copy(own, labels)
	maps.Copy(labels, own)
	kind.SetMissing(kind.Child(kind.Child(spec, "selector"), "matchLabels"), batchv1.ControllerUidLabel, uid)
}

// jobConditions are in order of precedence for the state of a Job. A Job in deletion has no
// condition for that state.
var jobConditions = []batchv1.JobConditionType{
	batchv1.JobComplete, batchv1.JobFailed, "", batchv1.JobSuspended, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet,
}

func jobStatus(obj map[string]any) any {
	holds := map[string]bool{"": false}
	for _, c := range kind.List(obj, "status", "conditions") {
		condition, _ := c.(map[string]any)
		holds[kind.Text(condition, "type")] = kind.Text(condition, "status") == "True"
	}
	for _, c := range jobConditions {
		switch {
		case holds[string(c)]:
			return string(c)
		case c == "" && object.Deleting(obj):
			return "Terminating"
		}
	}
	return "Running"
}

func jobCompletions(obj map[string]any) any {
	number := func(path ...string) int64 {
		n, _ := kind.Value(obj, path...).(int64)
		return n
	}
	done := number("status", "succeeded")
	if wanted, ok := kind.Value(obj, "spec", "completions").(int64); ok {
		return fmt.Sprintf("%d/%d", done, wanted)
	}
	if n := number("spec", "parallelism"); n > 1 {
		return fmt.Sprintf("%d/1 of %d", done, n)
	}
	return fmt.Sprintf("%d/1", done)
}

func jobDuration(obj map[string]any) any {
	start, end := kind.Text(obj, "status", "startTime"), kind.Text(obj, "status", "completionTime")
	if start == "" {
		return ""
	}
	if end == "" {
		return view.Age(start)
	}
	from, _ := time.Parse(time.RFC3339, start)
	to, _ := time.Parse(time.RFC3339, end)
	return duration.HumanDuration(to.Sub(from))
}
