package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/anykind/anykind/internal/builtin/kind"
)

const unset = "<unset>"

func targetOf(obj map[string]any) any {
	if kind.Value(obj, "spec", "target", "pod") == nil {
		return unset
	}
	return kind.Text(obj, "spec", "target", "pod", "name")
}

func targetTypeOf(obj map[string]any) any {
	if kind.Value(obj, "spec", "target", "pod") == nil {
		return unset
	}
	return "Pod"
}

// stateOf returns the state of a request or an eviction.
func stateOf(obj map[string]any) any {
	status := ptr.Deref(kind.ValueOf[lifecyclev1alpha1.EvictionRequestStatus](kind.Tree(obj, "status")), lifecyclev1alpha1.EvictionRequestStatus{})
	for _, of := range []lifecyclev1alpha1.EvictionConditionType{lifecyclev1alpha1.EvictionConditionTargetEvicted, lifecyclev1alpha1.EvictionConditionFailed} {
		if c := meta.FindStatusCondition(status.Conditions, string(of)); c != nil && c.Status == metav1.ConditionTrue {
			return fmt.Sprintf("%s (%s)", c.Type, c.Reason)
		}
	}
	if ptr.Deref(status.ObservedGeneration, 0) > 0 {
		return "Progressing"
	}
	return "Pending"
}

// A progress is that of the responder that is active, or that was the last one.
type progress struct {
	target *lifecyclev1alpha1.TargetResponder // nil before the first one
	status *lifecyclev1alpha1.ResponderStatus // nil if it has none
	// begun is the number of responders that are active or have finished.
	begun, all int
}

func progressOf(obj map[string]any) (p progress) {
	status := statusOf(obj)
	var last *lifecyclev1alpha1.TargetResponder
	p.all = len(status.TargetResponders)
	for i := range status.TargetResponders {
		switch t := &status.TargetResponders[i]; t.State {
		case lifecyclev1alpha1.ResponderStateCanceled, lifecyclev1alpha1.ResponderStateInterrupted, lifecyclev1alpha1.ResponderStateCompleted:
			p.begun, last = p.begun+1, t
		case lifecyclev1alpha1.ResponderStateActive:
			p.begun, p.target = p.begun+1, t
		}
	}
	if p.target == nil {
		p.target = last
	}
	for i := range status.Responders {
		if p.target != nil && p.status == nil && status.Responders[i].Name == p.target.Name {
			p.status = &status.Responders[i]
		}
	}
	return p
}

func statusOf(obj map[string]any) lifecyclev1alpha1.EvictionStatus {
	return ptr.Deref(kind.ValueOf[lifecyclev1alpha1.EvictionStatus](kind.Tree(obj, "status")), lifecyclev1alpha1.EvictionStatus{})
}

// ofResponder returns a cell about a responder with a status, or the text for none.
func ofResponder(none string, of func(progress) any) func(map[string]any) any {
	return func(obj map[string]any) any {
		if p := progressOf(obj); p.status != nil {
			return of(p)
		}
		return none
	}
}

var evictionCells = kind.Cells{
	"target": targetOf, "type": targetTypeOf, "state": stateOf, "requesters": requestersOf,
	"active": func(obj map[string]any) any {
		p, name := progressOf(obj), unset
		if p.target != nil {
			name = p.target.Name
		}
		return fmt.Sprintf("%s (%d/%d)", name, p.begun, p.all)
	},
	"progress": ofResponder(unset, stateOfResponder),
	"finish":   ofResponder("<unknown>", finishOf),
	"heartbeat": ofResponder(unset, func(p progress) any {
		if p.status.HeartbeatTime == nil {
			return unset
		}
		return since(p.status.HeartbeatTime) + " ago"
	}),
	"message": ofResponder(unset, func(p progress) any {
		if message := strings.TrimSpace(ptr.Deref(p.status.Message, "")); message != "" {
			return message
		}
		return unset
	}),
}

func stateOfResponder(p progress) any {
	switch {
	case p.target.State == lifecyclev1alpha1.ResponderStateActive && p.status.StartTime != nil:
		return fmt.Sprintf("Started (%s ago)", since(p.status.StartTime))
	case p.target.State == lifecyclev1alpha1.ResponderStateCompleted && p.status.CompletionTime != nil:
		return fmt.Sprintf("%s (%s ago)", p.target.State, since(p.status.CompletionTime))
	}
	return string(p.target.State)
}

func finishOf(p progress) any {
	expected := p.status.ExpectedCompletionTime
	switch {
	case p.target.State != lifecyclev1alpha1.ResponderStateActive:
		return "-"
	case p.status.StartTime == nil || expected == nil:
		return "<unknown>"
	case expected.After(time.Now()):
		return "in " + duration.HumanDuration(time.Until(expected.Time))
	}
	return since(expected) + " ago"
}

func since(t *metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t.Time))
}

// requestersOf returns the first requester, and the number of others.
func requestersOf(obj map[string]any) any {
	status := statusOf(obj)
	var names []string
	for _, r := range status.Requesters {
		if r.Intent != lifecyclev1alpha1.RequesterIntentWithdrawn {
			names = append(names, r.Name)
		}
	}
	slices.Sort(names)
	switch {
	case len(names) == 1 && names[0] == "":
		return unset
	case len(names) > 1:
		return fmt.Sprintf("%s + %d more...", names[0], len(names)-1)
	case len(names) == 1:
		return names[0]
	case len(status.Requesters) > 0:
		return "<withdrawn>"
	}
	return "<none>"
}
