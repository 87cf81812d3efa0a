// Package outcome remembers the last outcomes of admission webhooks and policies, and serves them. An outcome is the
// rejection, the change or the acceptance of a write, or a failure.
//
// A Log is in memory, and has a fixed size. Writes that pass are many more than rejections, and do not evict them.
package outcome

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
)

// A Result is the result of one webhook or policy for one write.
type Result string

// The results.
const (
	Allowed Result = "Allowed"
	Changed Result = "Changed"
	Denied  Result = "Denied"
	// Reported is a failed validation, or its error, of a policy whose binding only warns or audits.
	Reported Result = "Reported"
	// Failed is a failure that rejected the write.
	Failed Result = "Failed"
	// Ignored is a failure that the failure policy ignored.
	Ignored Result = "Ignored"
)

// An Origin is a webhook or a policy.
type Origin struct {
	// Step is for example "mutating webhook".
	Step string `json:"step"`
	// Configuration is the name of the configuration of the webhook, or of the policy.
	Configuration string `json:"configuration"`
	// Name is the name of the webhook, or of the binding of the policy.
	Name string `json:"name,omitempty"`
}

// A Report is the content of an outcome.
type Report struct {
	Result   Result   `json:"result"`
	Message  string   `json:"message,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Failure returns the report about a failure. With ignored, the failure policy has ignored it.
func Failure(message string, ignored bool) Report {
	if ignored {
		return Report{Result: Ignored, Message: message}
	}
	return Report{Result: Failed, Message: message}
}

// An Outcome is the result of one webhook or policy for one write, with the object and the user of the write.
type Outcome struct {
	Time metav1.MicroTime `json:"time"`
	Origin
	Report
	Operation   registry.Operation `json:"operation"`
	Group       string             `json:"group"`
	Resource    string             `json:"resource"`
	Subresource string             `json:"subresource,omitempty"`
	Namespace   string             `json:"namespace,omitempty"`
	Object      string             `json:"object,omitempty"`
	User        string             `json:"user"`
	DryRun      bool               `json:"dryRun,omitempty"`

	number uint64 // in the order of arrival
}

const (
	// size is the number of outcomes in each half of a Log.
	size = 2048
	// maxText limits messages and warnings in bytes.
	maxText = 1 << 10
	// maxWarnings limits the warnings of an outcome.
	maxWarnings = 8
)

// A Log has the last outcomes: of those that reject a write, and of the others. A nil Log remembers nothing.
type Log struct {
	mu               sync.Mutex
	rejected, passed ring
	added            uint64
}

// A ring has the last outcomes that were added, up to size.
type ring struct {
	all  []Outcome
	next int // index of the oldest outcome if the ring is full
}

func (r *ring) add(o Outcome) {
	if len(r.all) < size {
		r.all = append(r.all, o)
		return
	}
	r.all[r.next] = o
	r.next = (r.next + 1) % size
}

// Add adds the outcome of a webhook or policy for a write.
func (l *Log) Add(a *registry.Admission, by Origin, r Report) {
	if l == nil {
		return
	}
	r.Message = shorten(r.Message)
	r.Warnings = shortened(r.Warnings)
	d := a.Target.Definition
	o := Outcome{
		Time: metav1.NewMicroTime(time.Now()), Origin: by, Report: r, Operation: a.Operation, Group: d.Group, Resource: d.Plural, Subresource: a.Target.Subresource,
		Namespace: a.Target.Namespace, Object: cmp.Or(a.Target.Name, object.Name(a.Object)), User: a.User.Name, DryRun: a.DryRun(),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.added++
	o.number = l.added
	if r.Result == Denied || r.Result == Failed {
		l.rejected.add(o)
	} else {
		l.passed.add(o)
	}
}

// shorten limits the length of a text. The copy does not keep the rest in memory.
func shorten(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.Clone(strings.ToValidUTF8(text[:maxText], "")) + "…"
}

func shortened(texts []string) (out []string) {
	for _, text := range texts[:min(len(texts), maxWarnings)] {
		out = append(out, shorten(text))
	}
	if more := len(texts) - maxWarnings; more > 0 {
		out = append(out, fmt.Sprintf("and %d more warnings", more))
	}
	return out
}

// Last returns the outcomes for the objects of a resource, the newest first: those of a namespace unless it is "", and of an object
// unless name is "".
func (l *Log) Last(of schema.GroupResource, namespace, name string, limit int) []Outcome {
	found := []Outcome{}
	if l == nil {
		return found
	}
	l.mu.Lock()
	for _, r := range []*ring{&l.rejected, &l.passed} {
		for _, o := range r.all {
			if o.Group == of.Group && o.Resource == of.Resource && (namespace == "" || o.Namespace == namespace) && (name == "" || o.Object == name) {
				found = append(found, o)
			}
		}
	}
	l.mu.Unlock()
	slices.SortFunc(found, func(a, b Outcome) int { return cmp.Compare(b.number, a.number) })
	return found[:min(len(found), limit)]
}
