// Package batch has the built-in kinds of the group batch: Job, which runs pods until
// enough of them have succeeded, and CronJob, which makes Jobs at certain times.
//
// It knows what one may be and what becomes of it when it is written. Pods and Jobs are
// made by controllers that are no part of this program.
package batch

import (
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group, with these rules of pods.
func Definitions(rules func() *rule.Set) []*resource.Definition {
	return []*resource.Definition{cronJobs(rules), jobs(rules)}
}

// prepareSpec drops of the spec of a Job what features that are off would use, unless the
// old one has it. Either may be nil.
func prepareSpec(spec, old map[string]any) {
	if kind.Value(old, "scheduling") == nil {
		delete(spec, "scheduling")
	}
	pod.PrepareTemplate(kind.Tree(spec, "template"), kind.Tree(old, "template"))
}
