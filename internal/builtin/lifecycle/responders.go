package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/rule"
)

const (
	// deadline is the time in which a responder has to report.
	deadline = 20 * time.Minute
	// skew is the allowed difference of clocks.
	skew = 30 * time.Second
	// longest limits the estimated time of a responder.
	longest = 10 * 365 * 24 * time.Hour
	// maxResponders are those of a pod, and the one that Kubernetes adds.
	maxResponders = 11
)

// validateEvictionStatus allows the changes that the controller of evictions and responders make: responders become
// active in their order, and only an active one changes its status.
func validateEvictionStatus(c *rule.Check, e, old *lifecyclev1alpha1.Eviction) {
	c = c.At("status")
	status, was := &e.Status, &old.Status
	c.At("conditions").Conditions(status.Conditions)
	o := outcome{now: time.Now(), status: status}
	o.evicted = isFinal(c.At("conditions"), status, was, lifecyclev1alpha1.EvictionConditionTargetEvicted)
	o.failed = isFinal(c.At("conditions"), status, was, lifecyclev1alpha1.EvictionConditionFailed)
	o.validateTargets(c.At("targetResponders"), was.TargetResponders)
	o.validateResponders(c.At("responders"), was.Responders)
	c.Declared(status, was)
}

// isFinal reports whether a condition is true, or was true: it stays true, with the same reason.
func isFinal(c *rule.Check, status, was *lifecyclev1alpha1.EvictionStatus, of lifecyclev1alpha1.EvictionConditionType) bool {
	final := meta.IsStatusConditionTrue(status.Conditions, string(of))
	now := meta.FindStatusCondition(status.Conditions, string(of))
	for _, before := range was.Conditions {
		if before.Type == string(of) && before.Status == metav1.ConditionTrue &&
			(now == nil || now.Status == metav1.ConditionFalse || now.Reason != before.Reason) {
			c.Invalid(status.Conditions, fmt.Sprintf("%s condition status cannot be reverted", of))
			final = true
		}
	}
	return final
}

// An outcome is a new status at a time.
type outcome struct {
	now             time.Time
	status          *lifecyclev1alpha1.EvictionStatus
	evicted, failed bool
}

func (o *outcome) final() bool { return o.evicted || o.failed }

// validateTargets validates the states of responders. Their set does not change.
func (o *outcome) validateTargets(c *rule.Check, old []lifecyclev1alpha1.TargetResponder) {
	targets := o.status.TargetResponders
	name := func(t lifecyclev1alpha1.TargetResponder) string { return t.Name }
	if len(old) > 0 {
		switch {
		case len(old) != len(targets):
			c.Invalid(targets, "must preserve the same length and the same keys")
			return
		case !contains(targets, old, name, name):
			c.Invalid(targets, "must preserve the same keys")
			return
		}
	}
	if len(targets) > maxResponders || hasDuplicates(targets, name) { // the table has the errors
		return
	}
	sorted, before := inOrder(targets), inOrder(old)
	for i, t := range sorted {
		expected, reason := o.expected(i, sorted, before)
		o.validateTarget(c.At(slices.IndexFunc(targets, func(s lifecyclev1alpha1.TargetResponder) bool { return s.Name == t.Name })), &t, expected, reason)
	}
}

func contains[A, B any](in []A, all []B, nameOf func(A) string, name func(B) string) bool {
	names := map[string]bool{}
	for _, v := range in {
		names[nameOf(v)] = true
	}
	return !slices.ContainsFunc(all, func(v B) bool { return !names[name(v)] })
}

func hasDuplicates[T any](list []T, name func(T) string) bool {
	seen := map[string]bool{}
	return slices.ContainsFunc(list, func(v T) bool {
		twice := seen[name(v)]
		seen[name(v)] = true
		return twice
	})
}

var finished = []lifecyclev1alpha1.ResponderStateType{
	lifecyclev1alpha1.ResponderStateCanceled, lifecyclev1alpha1.ResponderStateCompleted, lifecyclev1alpha1.ResponderStateInterrupted,
}

// expected returns the states that a responder can have, and why. Responders are in their order, as were the old ones.
func (o *outcome) expected(i int, responders, old []lifecyclev1alpha1.TargetResponder) ([]lifecyclev1alpha1.ResponderStateType, string) {
	const ended = "the eviction request has finished processing"
	only := func(s lifecyclev1alpha1.ResponderStateType) []lifecyclev1alpha1.ResponderStateType {
		return []lifecyclev1alpha1.ResponderStateType{s}
	}
	active := slices.IndexFunc(old, func(t lifecyclev1alpha1.TargetResponder) bool {
		return t.State == lifecyclev1alpha1.ResponderStateActive
	})
	moves := active >= 0 && responders[active].State != lifecyclev1alpha1.ResponderStateActive
	allDone := o.final() || len(old) > 0 && slices.Contains(finished, old[len(old)-1].State)
	switch {
	case i < active || len(old) > 0 && active < 0 && allDone:
		return only(old[i].State), "final state is immutable"
	case i == active && moves:
		return finished, "this responder must reach a final state"
	case i == active && o.final():
		return finished, ended
	case i == active:
		return only(lifecyclev1alpha1.ResponderStateActive), "the eviction request stays active"
	case i == 0 && len(old) == 0 || i == active+1 && moves:
		if o.final() {
			return only(lifecyclev1alpha1.ResponderStateInactive), ended
		}
		return only(lifecyclev1alpha1.ResponderStateActive), "this responder is next in line"
	}
	return only(lifecyclev1alpha1.ResponderStateInactive), "the previously active has not finished processing"
}

// inOrder returns responders in the order in which they become active: by priority, then by domain, from the last
// label to the first, then by name.
func inOrder(responders []lifecyclev1alpha1.TargetResponder) []lifecyclev1alpha1.TargetResponder {
	out := slices.Clone(responders)
	compare := func(a, b lifecyclev1alpha1.TargetResponder) int {
		priority := func(t lifecyclev1alpha1.TargetResponder) int64 {
			if t.Priority == nil {
				return -1 << 40
			}
			return int64(*t.Priority)
		}
		domainA, nameA, _ := strings.Cut(a.Name, "/")
		domainB, nameB, _ := strings.Cut(b.Name, "/")
		labels := func(domain string) []string {
			l := strings.Split(domain, ".")
			slices.Reverse(l)
			return l
		}
		return cmp.Or(cmp.Compare(priority(b), priority(a)), compareDomains(labels(domainA), labels(domainB)), cmp.Compare(nameA, nameB))
	}
	sort.SliceStable(out, func(i, k int) bool { return compare(out[i], out[k]) < 0 })
	return out
}

// compareDomains orders a domain before the domains below it.
func compareDomains(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if d := cmp.Compare(a[i], b[i]); d != 0 {
			return d
		}
	}
	return cmp.Compare(len(a), len(b))
}

// systemPriorities are the priorities of Kubernetes' own responders.
var systemPriorities = map[string]int32{lifecyclev1alpha1.EvictionResponderImperativeEviction: 100}

func (o *outcome) validateTarget(c *rule.Check, t *lifecyclev1alpha1.TargetResponder, expected []lifecyclev1alpha1.ResponderStateType, reason string) {
	at := slices.IndexFunc(o.status.Responders, func(r lifecyclev1alpha1.ResponderStatus) bool { return r.Name == t.Name })
	if at < 0 {
		c.Invalid(*t, fmt.Sprintf("%q has to be tracked in status.responders first", t.Name))
		return
	}
	own := &o.status.Responders[at]
	if p := t.Priority; p != nil && *p >= 0 {
		switch needed, system := systemPriorities[t.Name]; {
		case system && *p != needed:
			c.At("priority").Invalid(*p, fmt.Sprintf("core k8s responder is expected to have priority: %d", needed))
		case !system && *p < 1000:
			c.At("priority").Invalid(*p, "priorities 0-999 are reserved for responders with *.k8s.io suffix")
		}
	}
	c = c.At("state")
	if !slices.Contains(expected, t.State) {
		var names []string
		for _, s := range expected {
			names = append(names, string(s))
		}
		c.Invalid(t.State, fmt.Sprintf("must be one of: %s, because %s", strings.Join(names, ", "), reason))
		return
	}
	if t.State != lifecyclev1alpha1.ResponderStateActive && own.StartTime != nil && own.CompletionTime == nil && !o.final() {
		reported := own.StartTime
		if own.HeartbeatTime != nil {
			reported = own.HeartbeatTime
		}
		if o.now.Before(reported.Add(deadline - skew)) {
			c.Forbidden("must stay Active because the responder is in progress and it should report status.responders.heartbeatTime or status.responders.completionTime")
		}
	}
	if t.State == lifecyclev1alpha1.ResponderStateCompleted && own.CompletionTime == nil {
		c.Invalid(t.State, "cannot become Completed because the responder didn't report status.responders.completionTime")
	}
}

// validateResponders validates the reports of responders. There is one for each.
func (o *outcome) validateResponders(c *rule.Check, old []lifecyclev1alpha1.ResponderStatus) {
	responders, targets := o.status.Responders, o.status.TargetResponders
	name := func(r lifecyclev1alpha1.ResponderStatus) string { return r.Name }
	switch {
	case len(targets) != len(responders):
		c.Invalid(responders, "must be the same length as status.targetResponders and contain the same keys")
		return
	case !contains(responders, targets, name, func(t lifecyclev1alpha1.TargetResponder) string { return t.Name }):
		c.Invalid(responders, "must contain the same keys as status.targetResponders")
		return
	case len(responders) > maxResponders || hasDuplicates(responders, name): // the table has the errors
		return
	}
	for i := range responders {
		r := &responders[i]
		before := slices.IndexFunc(old, func(was lifecyclev1alpha1.ResponderStatus) bool { return was.Name == r.Name })
		var was lifecyclev1alpha1.ResponderStatus
		if before >= 0 {
			was = old[before]
		}
		isActive := slices.ContainsFunc(targets, func(t lifecyclev1alpha1.TargetResponder) bool {
			return t.Name == r.Name && t.State == lifecyclev1alpha1.ResponderStateActive
		})
		if before >= 0 && !isActive && !equality.Semantic.DeepEqual(r, &was) {
			c.At(i).Invalid(*r, "field is immutable")
			continue
		}
		report{c.At(i), r, &was, o.now}.validate(isActive)
	}
}

// A report is a changed status of a responder.
type report struct {
	*rule.Check
	status, was *lifecyclev1alpha1.ResponderStatus
	now         time.Time
}

const (
	notNow      = "must be set to the present time"
	beforeStart = "cannot be set before %s is set"
	afterStart  = "must occur after %s"
)

// isNow reports whether a time is the present one.
func (r report) isNow(t *metav1.Time) bool {
	return t.After(r.now.Add(-skew)) && t.Time.Before(r.now.Add(skew))
}

func (r report) validate(active bool) {
	s, was := r.status, r.was
	switch at := r.At("startTime"); {
	case was.StartTime != nil && !was.StartTime.Equal(s.StartTime): // the table has the error
	case s.StartTime == nil && active:
		at.Required("is required for an active responder")
	case s.StartTime != nil && !was.StartTime.Equal(s.StartTime) && !r.isNow(s.StartTime):
		at.Invalid(s.StartTime, notNow)
	}
	at := r.At("heartbeatTime")
	if was.HeartbeatTime != nil && s.HeartbeatTime == nil {
		at.Required("is required once set")
	}
	if t := s.HeartbeatTime; t != nil && !was.HeartbeatTime.Equal(t) {
		switch {
		case s.StartTime == nil:
			r.refuse(at, t, beforeStart)
		case t.Before(was.HeartbeatTime):
			at.Invalid(t, "cannot be decreased")
		case t.Before(s.StartTime):
			r.refuse(at, t, afterStart)
		case !r.isNow(t):
			at.Invalid(t, notNow)
		}
	}
	at = r.At("expectedCompletionTime")
	if t := s.ExpectedCompletionTime; t != nil && !was.ExpectedCompletionTime.Equal(t) {
		switch {
		case s.StartTime == nil:
			r.refuse(at, t, beforeStart)
		case t.Before(s.StartTime):
			r.refuse(at, t, afterStart)
		case t.Time.Before(r.now.Add(-skew)):
			at.Invalid(t, "cannot be set to the past time")
		case t.After(r.now.Add(longest)):
			at.Invalid(t, "must complete within 10 years")
		}
	}
	at = r.At("completionTime")
	switch t := s.CompletionTime; {
	case t == nil || was.CompletionTime != nil && !was.CompletionTime.Equal(t): // the table has the error
	case s.StartTime == nil:
		r.refuse(at, t, beforeStart)
	case t.Before(s.StartTime):
		r.refuse(at, t, afterStart)
	case !was.CompletionTime.Equal(t) && !r.isNow(t):
		at.Invalid(t, notNow)
	}
}

// refuse adds an error that names the field startTime.
func (r report) refuse(at *rule.Check, t *metav1.Time, detail string) {
	at.Invalid(t, fmt.Sprintf(detail, r.At("startTime").Path()))
}
