// Package batch has the built-in kinds of the group batch: Job, which runs pods until enough of
// them have succeeded, and CronJob, which creates Jobs on a schedule.
//
// It validates and completes them. Controllers outside this program create pods and Jobs.
package batch

import (
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group, with the given rules for pods.
func Definitions(rules func() *rule.Set) []*resource.Definition {
	return []*resource.Definition{cronJobs(rules), jobs(rules)}
}
