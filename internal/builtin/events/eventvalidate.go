package events

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
)

// Errors name the fields of core/v1 in both groups, except for the reporter.

// Limits of the fields of an event.
const (
	maxEventText    = 128
	maxEventMessage = 1024
)

// validate has the rules for all events.
func (f form) validate(obj, _ map[string]any) field.ErrorList {
	about, namespace := kind.Text(obj, f.involved, "namespace"), object.Namespace(obj)
	mismatch := field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), about, "does not match event.namespace")}
	if kind.Text(obj, "eventTime") == "" {
		// An event of an old client. An event about a cluster-scoped object is in the default
		// namespace.
		if about == "" && (namespace == "" || namespace == metav1.NamespaceDefault) || about != "" && about == namespace {
			return nil
		}
		return mismatch
	}
	var errs field.ErrorList
	if about == "" && namespace != metav1.NamespaceDefault && namespace != metav1.NamespaceSystem {
		errs = mismatch
	}
	required := func(name string) string {
		s := kind.Text(obj, name)
		if s == "" {
			errs = append(errs, field.Required(field.NewPath(name), ""))
		}
		return s
	}
	limited := func(name string, value string, limit int) {
		if len(value) > limit {
			errs = append(errs, field.Invalid(field.NewPath(name), "", kind.AtMost(limit)))
		}
	}
	component := required(f.reporter)
	for _, msg := range validation.IsQualifiedName(component) {
		errs = append(errs, field.Invalid(field.NewPath(f.reporter), component, msg))
	}
	for _, name := range []string{"reportingInstance", "action", "reason"} {
		limited(name, required(name), maxEventText)
	}
	limited("message", kind.Text(obj, f.message), maxEventMessage)
	return errs
}

// validateStrictly has the additional rules of events.k8s.io.
func (f form) validateStrictly(obj, old map[string]any) field.ErrorList {
	errs := append(f.validate(obj, old), kind.MetaFinalizers(obj)...)
	if old != nil {
		if !object.Equal(obj["series"], old["series"]) {
			errs = append(errs, validateSeries(obj)...)
		}
		return append(errs, f.validateChange(obj, old)...)
	}
	errs = append(errs, validateSeries(obj)...)
	if kind.Text(obj, "eventTime") == "" {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if t := kind.Text(obj, "type"); t != "Normal" && t != "Warning" {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", "has invalid value: "+t))
	}
	n, _ := obj[f.count].(int64)
	for _, unset := range []struct {
		name string
		is   bool
	}{
		{"firstTimestamp", kind.Text(obj, f.first) == ""},
		{"lastTimestamp", kind.Text(obj, f.last) == ""},
		{"count", n == 0},
		{"source", kind.Text(obj, f.source, "component") == "" && kind.Text(obj, f.source, "host") == ""},
	} {
		if !unset.is {
			errs = append(errs, field.Invalid(field.NewPath(unset.name), "", "needs to be unset"))
		}
	}
	return errs
}

func validateSeries(obj map[string]any) field.ErrorList {
	series := kind.Tree(obj, "series")
	if series == nil {
		return nil
	}
	var errs field.ErrorList
	if n, _ := series["count"].(int64); n < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if kind.Text(series, "lastObservedTime") == "" {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}

// validateChange allows only changes of the series.
func (f form) validateChange(obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	same := func(name, at string, shown func(any) any) {
		if !object.Equal(obj[name], old[name]) {
			errs = append(errs, field.Invalid(field.NewPath(at), shown(obj[name]), "field is immutable"))
		}
	}
	same(f.involved, "involvedObject", shownReference)
	same("reason", "reason", shownText)
	same(f.message, "message", shownText)
	same(f.source, "source", shownSource)
	same(f.first, "firstTimestamp", shownSeconds)
	same(f.last, "lastTimestamp", shownSeconds)
	same(f.count, "count", shownNumber)
	same("type", "type", shownText)
	same("eventTime", "eventTime", shownAsIs)
	same("action", "action", shownText)
	same("related", "related", func(v any) any {
		if v == nil {
			return nil
		}
		return shownReference(v)
	})
	same(f.reporter, "reportingController", shownText)
	same("reportingInstance", "reportingInstance", shownText)
	return errs
}

// The values in errors, formatted like a type without JSON names.

func shownAsIs(v any) any { return v }

// shownSeconds formats a time without fractional seconds.
func shownSeconds(v any) any {
	s, _ := v.(string)
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return v
	}
	return object.Timestamp(at)
}

func shownText(v any) any {
	s, _ := v.(string)
	return s
}

func shownNumber(v any) any {
	n, _ := v.(int64)
	return n
}

func shownSource(v any) any {
	m, _ := v.(map[string]any)
	return struct{ Component, Host string }{kind.Text(m, "component"), kind.Text(m, "host")}
}

func shownReference(v any) any {
	m, _ := v.(map[string]any)
	return struct{ Kind, Namespace, Name, UID, APIVersion, ResourceVersion, FieldPath string }{
		kind.Text(m, "kind"), kind.Text(m, "namespace"), kind.Text(m, "name"), kind.Text(m, "uid"),
		kind.Text(m, "apiVersion"), kind.Text(m, "resourceVersion"), kind.Text(m, "fieldPath"),
	}
}
