package batch

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// A transition is an update of the status of a Job. Most rules apply only to changed fields: a
// change of the spec may have made others invalid, and the controller must be able to correct them.
type transition struct {
	*rule.Check // at the status
	job, old    *batchv1.Job
	now, was    *batchv1.JobStatus
}

func validateJobStatus(c *rule.Check, job, old *batchv1.Job) {
	c.Fields(&job.Status, "status")
	t := &transition{c.At("status"), job, old, &job.Status, &old.Status}
	t.validateUncounted()
	t.validateConditions()
	t.validateTimes()
	t.validateFinished()
	t.validateIndexes()
	t.validateCounters()
}

// changes reports whether the status of one of the conditions changes.
func (t *transition) changes(conditions ...batchv1.JobConditionType) bool {
	for _, c := range conditions {
		if holds(t.job, c) != holds(t.old, c) {
			return true
		}
	}
	return false
}

func finished(job *batchv1.Job) bool {
	return holds(job, batchv1.JobComplete) || holds(job, batchv1.JobFailed)
}

func (t *transition) validateUncounted() {
	uncounted := t.now.UncountedTerminatedPods
	if uncounted == nil {
		return
	}
	seen := map[types.UID]bool{}
	for _, list := range []struct {
		name string
		uids []types.UID
	}{{"succeeded", uncounted.Succeeded}, {"failed", uncounted.Failed}} {
		for i, uid := range list.uids {
			at := t.At("uncountedTerminatedPods", list.name, i)
			switch {
			case uid == "":
				at.Invalid(uid, "must not be empty")
			case seen[uid]:
				at.Duplicate(uid)
			}
			seen[uid] = true
		}
	}
}

// validateConditions rejects contradictory conditions, and the end of a final one.
func (t *transition) validateConditions() {
	const complete, failed = batchv1.JobComplete, batchv1.JobFailed
	const failing, met = batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet
	is := func(c batchv1.JobConditionType) bool { return holds(t.job, c) }
	wasSo := func(c batchv1.JobConditionType) bool { return holds(t.old, c) }
	failedIndexes := !ptr.Equal(t.now.FailedIndexes, t.was.FailedIndexes)
	for _, rule := range []struct {
		broken bool
		words  string
	}{
		{t.changes(complete, failed) && is(complete) && is(failed), "cannot set Complete=True and Failed=true conditions"},
		{t.changes(complete, failing) && is(complete) && is(failing), "cannot set Complete=True and FailureTarget=true conditions"},
		{(t.changes(failed) || failedIndexes) && is(failed) && !is(failing), "cannot set Failed=True condition without the FailureTarget=true condition"},
		{t.changes(complete, met) && is(complete) && !is(met), "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"},
		{is(met) && is(failed), "cannot set SuccessCriteriaMet=True and Failed=true conditions"},
		{is(met) && is(failing), "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"},
		{t.job.Spec.SuccessPolicy != nil && !is(met) && is(complete), "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"},
		{wasSo(failed) && !is(failed), "cannot disable the terminal Failed=True condition"},
		{wasSo(complete) && !is(complete), "cannot disable the terminal Complete=True condition"},
		{wasSo(failing) && !is(failing), "cannot disable the terminal FailureTarget=True condition"},
		{wasSo(met) && !is(met), "cannot disable the SuccessCriteriaMet=True condition"},
		{wasSo(complete) && !wasSo(met) && is(met), "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"},
	} {
		if rule.broken {
			t.At("conditions").Invalid(field.OmitValueType{}, rule.words)
		}
	}
}

func (t *transition) validateTimes() {
	start, end := t.At("startTime"), t.At("completionTime")
	now, was := t.now, t.was
	complete := holds(t.job, batchv1.JobComplete)
	started, ended := !ptr.Equal(now.StartTime, was.StartTime), !ptr.Equal(now.CompletionTime, was.CompletionTime)
	if t.changes(batchv1.JobComplete) || ended {
		switch {
		case now.CompletionTime != nil && !complete:
			end.Invalid(now.CompletionTime, "cannot set completionTime when there is no Complete=True condition")
		case now.CompletionTime == nil && complete:
			end.Required("completionTime is required for Complete jobs")
		}
	}
	if (started || ended) && now.StartTime != nil && now.CompletionTime != nil && now.CompletionTime.Before(now.StartTime) {
		end.Invalid(now.CompletionTime, "must be equal to or after `startTime`")
	}
	if ended && now.CompletionTime != nil && was.CompletionTime != nil {
		end.Invalid(now.CompletionTime, "field is immutable")
	}
	resumes := holds(t.old, batchv1.JobSuspended) && has(t.job, batchv1.JobSuspended, corev1.ConditionFalse)
	if started && !resumes && was.StartTime != nil && !ptr.Deref(t.job.Spec.Suspend, false) {
		start.Invalid(now.StartTime, "field is immutable for unsuspended job once set")
	}
	nothingToDo := ptr.Deref(t.job.Spec.Suspend, false) && t.job.Spec.Completions != nil && *t.job.Spec.Completions == 0
	if (finished(t.old) != finished(t.job) || started) && !nothingToDo && now.StartTime == nil && finished(t.job) {
		start.Required("startTime is required for finished job")
	}
}

// validateFinished rejects active pods of a finished Job.
func (t *transition) validateFinished() {
	if !finished(t.job) {
		return
	}
	now, was, turns := t.now, t.was, !finished(t.old)
	if (turns || now.Active != was.Active) && now.Active > 0 {
		t.At("active").Invalid(now.Active, "active>0 is invalid for finished job")
	}
	if n := now.Terminating; (turns || !ptr.Equal(n, was.Terminating)) && n != nil && *n > 0 {
		t.At("terminating").Invalid(n, "terminating>0 is invalid for finished job")
	}
	u := now.UncountedTerminatedPods
	if (turns || !equality.Semantic.DeepEqual(u, was.UncountedTerminatedPods)) && u != nil && len(u.Failed)+len(u.Succeeded) > 0 {
		t.At("uncountedTerminatedPods").Invalid(u, "must be empty for finished job")
	}
}

func (t *transition) validateIndexes() {
	spec, now, completed, failed := &t.job.Spec, t.now, t.At("completedIndexes"), t.At("failedIndexes")
	done, lost := now.CompletedIndexes, now.FailedIndexes
	doneChanges, lostChanges := done != t.was.CompletedIndexes, !ptr.Equal(lost, t.was.FailedIndexes)
	if n := spec.Completions; n != nil {
		if _, err := parseIndexes(done, *n); doneChanges && err != nil {
			completed.Invalid(done, fmt.Sprintf("error parsing completedIndexes: %s", err))
		}
		if lostChanges && lost != nil && spec.BackoffLimitPerIndex != nil {
			if _, err := parseIndexes(*lost, *n); err != nil {
				failed.Invalid(lost, fmt.Sprintf("error parsing failedIndexes: %s", err))
			}
		}
		if lost != nil && (lostChanges || doneChanges) {
			if err := overlap(done, *lost, *n); err != nil {
				failed.Invalid(*lost, err.Error())
			}
		}
	}
	if doneChanges && done != "" && !indexed(spec) {
		completed.Invalid(done, "cannot set non-empty completedIndexes when non-indexed completion mode")
	}
	if lostChanges && lost != nil && spec.BackoffLimitPerIndex == nil {
		failed.Invalid(*lost, "cannot set non-null failedIndexes when backoffLimitPerIndex is null")
	}
}

func indexed(spec *batchv1.JobSpec) bool {
	return ptr.Deref(spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

func (t *transition) validateCounters() {
	now, was, spec := t.now, t.was, &t.job.Spec
	if n := now.Ready; (!ptr.Equal(n, was.Ready) || now.Active != was.Active) && n != nil && *n > now.Active {
		t.At("ready").Invalid(*n, "cannot set more ready pods than active")
	}
	if now.Failed < was.Failed {
		t.At("failed").Invalid(now.Failed, "cannot decrease the failed counter")
	}
	shrinks := indexed(spec) && ptr.Equal(spec.Completions, spec.Parallelism) // elastic indexed Jobs can be scaled down
	if now.Succeeded < was.Succeeded && !shrinks {
		t.At("succeeded").Invalid(now.Succeeded, "cannot decrease the succeeded counter")
	}
}
