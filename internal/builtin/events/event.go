package events

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

// Events are served in two groups, which share their storage and differ in field names. An event is
// stored as written; a read in the other group converts it.

// A form is the field names of one of the groups.
type form struct {
	apiVersion string
	involved   string
	message    string
	first      string
	last       string
	count      string
	source     string
	reporter   string
}

var (
	coreForm = form{
		apiVersion: "v1", involved: "involvedObject", message: "message", first: "firstTimestamp", last: "lastTimestamp",
		count: "count", source: "source", reporter: "reportingComponent",
	}
	eventsForm = form{
		apiVersion: "events.k8s.io/v1", involved: "regarding", message: "note",
		first: "deprecatedFirstTimestamp", last: "deprecatedLastTimestamp", count: "deprecatedCount",
		source: "deprecatedSource", reporter: "reportingController",
	}
)

func (f form) fields() []string {
	return []string{f.involved, f.message, f.first, f.last, f.count, f.source, f.reporter}
}

func coreEvents() *resource.Definition {
	return kind.New(eventDefinition(resource.Definition{

		Convert: convertEvent(coreForm),
		Strategy: resource.Strategy{
			ValidateName: func(name string, prefix bool) []string {
				if prefix {
					return content.IsPathSegmentPrefix(name)
				}
				return content.IsPathSegmentName(name)
			},
			ValidatesMetadataLast: true,
			Validate:              resource.Looking(coreForm.validate),
		},
	}), kind.VersionOf[*corev1.Event, *corev1.EventList](&resource.Version{Name: "v1", SelectableFields: coreForm.selectable(), Columns: coreForm.columns}))
}

func newEvents() *resource.Definition {
	return kind.New(eventDefinition(resource.Definition{
		Group:    eventsv1.GroupName,
		StoredAs: corev1.SchemeGroupVersion.WithKind("Event"),
		Convert:  convertEvent(eventsForm),
		Strategy: resource.Strategy{Validate: resource.Looking(eventsForm.validateStrictly)},
	}), kind.VersionOf[*eventsv1.Event, *eventsv1.EventList](&resource.Version{Name: "v1", SelectableFields: eventsForm.selectable(), Columns: eventsForm.columns}))
}

func eventDefinition(d resource.Definition) resource.Definition {
	d.Plural, d.Singular, d.Kind, d.ShortNames = "events", "event", "Event", []string{"ev"}
	d.Namespaced, d.Uncached = true, true
	d.AllowCreateOnUpdate, d.AllowUnconditionalUpdate, d.OwnsNothing = true, true, true
	return d
}

// convertEvent returns the conversion of events of either group to a form.
func convertEvent(to form) func(context.Context, []map[string]any, string) ([]map[string]any, error) {
	return func(_ context.Context, objs []map[string]any, _ string) ([]map[string]any, error) {
		for _, obj := range objs {
			to.convert(obj)
		}
		return objs, nil
	}
}

// convert converts an event of either group to the form.
func (f form) convert(obj map[string]any) {
	from := coreForm
	if object.APIVersion(obj) == eventsForm.apiVersion {
		from = eventsForm
	}
	if from == f {
		return
	}
	names := f.fields()
	for i, name := range from.fields() {
		if v, ok := obj[name]; ok {
			delete(obj, name)
			obj[names[i]] = v
		}
	}
	obj["apiVersion"] = f.apiVersion
	// One of the types omits empty values that the other writes.
	if f == coreForm {
		writeEmpty(obj, f.reporter, "")
		writeEmpty(obj, "reportingInstance", "")
		dropEmpty(kind.Tree(obj, "series"), "count", int64(0))
		return
	}
	dropEmpty(obj, f.reporter, "")
	dropEmpty(obj, "reportingInstance", "")
	if series := kind.Tree(obj, "series"); series != nil {
		writeEmpty(series, "count", int64(0))
	}
}

func writeEmpty(obj map[string]any, name string, empty any) {
	if _, ok := obj[name]; !ok {
		obj[name] = empty
	}
}

func dropEmpty(obj map[string]any, name string, empty any) {
	if obj[name] == empty {
		delete(obj, name)
	}
}

func (f form) selectable() map[string]func(map[string]any) string {
	fields := map[string]func(map[string]any) string{}
	if f == coreForm {
		fields["source"] = func(obj map[string]any) string { return f.reported(obj, "component", f.reporter) }
	}
	for _, name := range []string{"reason", f.reporter, "type"} {
		fields[name] = func(obj map[string]any) string { return kind.Text(obj, name) }
	}
	for _, name := range []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
		fields[f.involved+"."+name] = func(obj map[string]any) string { return kind.Text(obj, f.involved, name) }
	}
	return fields
}

// reported returns a field of the source, which old clients write, or the field that replaces it.
func (f form) reported(obj map[string]any, source, instead string) string {
	if s := kind.Text(obj, f.source, source); s != "" {
		return s
	}
	return kind.Text(obj, instead)
}

// columns returns all columns of events, with the name last.
func (f form) columns() []view.Column {
	docs := corev1.Event{}.SwaggerDoc()
	shown := func(path ...string) func(map[string]any) any {
		return func(obj map[string]any) any { return kind.Text(obj, path...) }
	}
	return []view.Column{
		{Name: "Last Seen", Type: "string", Description: docs["lastTimestamp"], Cell: f.lastSeen},
		{Name: "Type", Type: "string", Description: docs["type"], Cell: shown("type")},
		{Name: "Reason", Type: "string", Description: docs["reason"], Cell: shown("reason")},
		{Name: "Object", Type: "string", Description: docs["involvedObject"], Cell: f.about},
		{
			Name: "Subobject", Type: "string", Priority: 1, Description: corev1.ObjectReference{}.SwaggerDoc()["fieldPath"],
			Cell: shown(f.involved, "fieldPath"),
		},
		{Name: "Source", Type: "string", Priority: 1, Description: docs["source"], Cell: f.by},
		{Name: "Message", Type: "string", Description: docs["message"], Cell: func(obj map[string]any) any {
			s, _ := obj[f.message].(string)
			return strings.TrimSpace(s)
		}},
		{Name: "First Seen", Type: "string", Priority: 1, Description: docs["firstTimestamp"], Cell: f.firstSeen},
		{Name: "Count", Type: "string", Priority: 1, Description: docs["count"], Cell: f.times},
		{
			Name: "Name", Type: "string", Format: "name", Priority: 1, Description: metav1.ObjectMeta{}.SwaggerDoc()["name"],
			Cell: func(obj map[string]any) any { return object.Name(obj) },
		},
	}
}

func (f form) firstSeen(obj map[string]any) any {
	if t := kind.Text(obj, f.first); t != "" {
		return kind.Age(t)
	}
	return kind.Age(kind.Text(obj, "eventTime"))
}

func (f form) lastSeen(obj map[string]any) any {
	if obj["series"] != nil {
		return kind.Age(kind.Text(obj, "series", "lastObservedTime"))
	}
	if t := kind.Text(obj, f.last); t != "" {
		return kind.Age(t)
	}
	return f.firstSeen(obj)
}

func (f form) times(obj map[string]any) any {
	if obj["series"] != nil {
		n, _ := kind.Value(obj, "series", "count").(int64)
		return n
	}
	if n, _ := obj[f.count].(int64); n != 0 {
		return n
	}
	return int64(1)
}

func (f form) about(obj map[string]any) any {
	what := strings.ToLower(kind.Text(obj, f.involved, "kind"))
	if name := kind.Text(obj, f.involved, "name"); name != "" {
		return what + "/" + name
	}
	return what
}

func (f form) by(obj map[string]any) any {
	component, instance := f.reported(obj, "component", f.reporter), f.reported(obj, "host", "reportingInstance")
	if instance == "" {
		return component
	}
	return component + ", " + instance
}
