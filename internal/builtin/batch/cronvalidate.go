package batch

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // time zones do not depend on the machine

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// maxCronName leaves room for the time suffix in the names of Jobs.
const maxCronName = 63 - 11

func validateCronJob(c *rule.Check, cronJob, old *batchv1.CronJob) {
	spec, at := &cronJob.Spec, c.At("spec")
	var oldSpec *batchv1.JobSpec
	inSchedule := false // the old schedule has a time zone, so the new one may
	if old == nil {
		if len(cronJob.Name) > maxCronName {
			c.At("metadata", "name").Invalid(cronJob.Name, "must be no more than 52 characters")
		}
	} else {
		oldSpec, inSchedule = &old.Spec.JobTemplate.Spec, strings.Contains(old.Spec.Schedule, "TZ")
	}
	c.Add(kind.MetaFinalizers(c.Object)...)
	c.Fields(spec, "spec")
	if spec.Schedule == "" {
		at.At("schedule").Required("")
	} else {
		validateSchedule(at.At("schedule"), spec, inSchedule)
	}
	if zone := spec.TimeZone; zone != nil && (old == nil || !ptr.Equal(old.Spec.TimeZone, zone)) {
		validateTimeZone(at.At("timeZone"), zone)
	}
	switch p := spec.ConcurrencyPolicy; p {
	case batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent:
	default:
		rule.NotSupported(at.At("concurrencyPolicy"), p, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)
	}
	at = at.At("jobTemplate", "spec")
	job := &spec.JobTemplate.Spec
	validateSpec(at, job, oldSpec)
	if job.Selector != nil {
		at.At("selector").Invalid(job.Selector, "`selector` will be auto-generated")
	}
	if ptr.Deref(job.ManualSelector, false) {
		rule.NotSupported(at.At("manualSelector"), job.ManualSelector, "nil", "false")
	}
}

func validateSchedule(c *rule.Check, spec *batchv1.CronJobSpec, inSchedule bool) {
	if err := parseSchedule(spec.Schedule); err != nil {
		c.Invalid(spec.Schedule, err.Error())
	}
	switch {
	case !strings.Contains(spec.Schedule, "TZ"):
	case !inSchedule:
		c.Invalid(spec.Schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
	case spec.TimeZone != nil:
		c.Invalid(spec.Schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
	}
}

// parseSchedule returns the error of a schedule. It recovers from panics of the parser.
func parseSchedule(schedule string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("invalid schedule format: %v", r)
		}
	}()
	_, err = cron.ParseStandard(schedule)
	return err
}

// timeZonePart matches the parts of a time zone name between slashes.
var timeZonePart = rule.Pattern(`^[A-Za-z\.\-_0-9+]{1,14}$`)

func validateTimeZone(c *rule.Check, timeZone *string) {
	zone := *timeZone
	if zone == "" {
		c.Invalid(timeZone, "timeZone must be nil or non-empty string")
		return
	}
	for part := range strings.SplitSeq(zone, "/") {
		if part == "." || part == ".." || strings.HasPrefix(part, "-") || !timeZonePart().MatchString(part) {
			c.Invalid(timeZone, "unknown time zone "+zone)
			return
		}
	}
	if strings.EqualFold(zone, "Local") {
		c.Invalid(timeZone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
	}
	if _, err := time.LoadLocation(zone); err != nil {
		c.Invalid(timeZone, err.Error())
	}
}

func warnOfCronJob(c *rule.Check, cronJob, old *batchv1.CronJob) {
	at, spec := c.At("spec", "jobTemplate", "spec"), &cronJob.Spec.JobTemplate.Spec
	if old == nil {
		pod.WarnOfOwnersName(c, cronJob.Name)
		warnOfSpec(at, spec, nil)
		return
	}
	if cronJob.Generation != old.Generation {
		warnOfSpec(at, spec, &old.Spec.JobTemplate.Spec)
	}
	if strings.Contains(cronJob.Spec.Schedule, "TZ") {
		c.Warn("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details")
	}
}

// validateCronJobStatus has no rules.
func validateCronJobStatus(*rule.Check, *batchv1.CronJob, *batchv1.CronJob) {}
