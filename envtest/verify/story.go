package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type object = unstructured.Unstructured

// A Line is one line of the story of a run.
type Line struct {
	// After is the time since the start of the run.
	After time.Duration
	// Actor is user, program, server, fault, or report for a conclusion.
	Actor string
	Text  string
}

// A Story is what happened in a run, in order.
type Story []Line

// String returns one line for each Line. The middle of a long Story is left out, but not the lines around its faults.
func (s Story) String() string {
	kept := make([]bool, len(s))
	for i, l := range s {
		kept[i] = kept[i] || i < storyBegin || i >= len(s)-storyEnd
		if l.Actor == "fault" {
			for around := max(i-storyAround, 0); around < min(i+storyAround+1, len(s)); around++ {
				kept[around] = true
			}
		}
	}
	var out strings.Builder
	left := 0
	for i, l := range s {
		if !kept[i] {
			if left++; kept[i+1] {
				fmt.Fprintf(&out, "%9s  %d lines left out\n", "", left)
				left = 0
			}
			continue
		}
		fmt.Fprintf(&out, "%9s  %-7s  %s\n", l.After.Round(time.Millisecond), l.Actor, cut(l.Text))
	}
	return out.String()
}

// brief is the JSON of a value in a line.
func brief(value any) string { return cut(compact(value)) }

// cut shortens a text to a length that fits a line.
func cut(text string) string {
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest-3], "") + "..."
}

const longest = 240

// A longer Story is cut to this number of lines at its begin, at its end, and before and after each fault.
const storyBegin, storyEnd, storyAround = 100, 20, 5

// An event is an event of a watch.
type event struct {
	kind  string
	of    string // the object
	whole object
}

func readEvent(frame []byte) event {
	var read struct {
		Type   string         `json:"type"`
		Object map[string]any `json:"object"`
	}
	_ = json.Unmarshal(frame, &read)
	u := object{Object: read.Object}
	return event{read.Type, identityOf(&u).String(), u}
}

// endsInitial reports whether the event ends the list at the beginning of a watch.
func (e event) endsInitial() bool {
	if e.kind != "BOOKMARK" {
		return false
	}
	return e.whole.GetAnnotations()["k8s.io/initial-events-end"] == "true"
}

// placed returns an object with the namespace default, if it has none and needs one. As with kubectl, the object itself
// does not change.
func (r *run) placed(o client.Object) (client.Object, error) {
	if o.GetNamespace() != "" {
		return o, nil
	}
	namespaced, err := r.admin.IsObjectNamespaced(o)
	if err != nil || !namespaced {
		return o, err
	}
	o = o.DeepCopyObject().(client.Object)
	o.SetNamespace(metav1.NamespaceDefault)
	return o, nil
}

// applied returns an object for server-side apply.
func (r *run) applied(o client.Object) (*object, error) {
	gvk, err := r.gvk(o)
	if err == nil {
		o, err = r.placed(o)
	}
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	u := &object{Object: fields}
	u.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(fields, "metadata", "managedFields")
	if status, ok := fields["status"].(map[string]any); ok && len(status) == 0 {
		delete(fields, "status")
	}
	return u, nil
}

// apply applies an object as the user.
func (r *run) apply(u *object) error {
	return r.admin.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("user"), client.ForceOwnership)
}

// delete deletes an object as the user, if it exists.
func (r *run) delete(o client.Object) error {
	return client.IgnoreNotFound(r.admin.Delete(context.Background(), o.DeepCopyObject().(client.Object), client.PropagationPolicy("Background")))
}

// watchPanics makes a panic in a goroutine of the program a Problem. It sees those that Kubernetes'
// libraries recover.
func watchPanics(r *run) (undo func()) {
	before := utilruntime.PanicHandlers
	utilruntime.PanicHandlers = append(before[:len(before):len(before)], func(_ context.Context, p any) {
		r.found(Problem{Panics, fmt.Sprint(p), fmt.Sprint(p)})
	})
	return func() { utilruntime.PanicHandlers = before }
}

// withoutBackoff removes the handlers of errors of Kubernetes' libraries. One of them sleeps until a time
// that a package variable has from the bubble of another run.
func withoutBackoff() (undo func()) {
	before := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	return func() { utilruntime.ErrorHandlers = before }
}

// String tells what is wrong, with which plan, and what happened.
func (f Finding) String() string {
	with := "without faults"
	if len(f.Plan) > 0 {
		with = fmt.Sprintf("with %q", f.Plan)
	}
	if f.Repeated > f.Shown {
		with += fmt.Sprintf(", in %d of %d more runs: the program depends on time, on the order of goroutines or on that of a map", f.Shown, f.Repeated)
	}
	return fmt.Sprintf("%s:\n%s\n\n%s:\n\n%s", f.Kind, indent(f.Text), with, f.Story)
}

// repeat returns the ways to run the plan again.
func (f Finding) repeat(test string) string {
	return fmt.Sprintf("to repeat it: VERIFY_PLAN=%q go test -run '^%s$', or as a test of its own: World{Plan: %q, ...}", f.Plan, test, f.Plan)
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
