package builtin

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Difference is one difference between two outcomes. Its Class omits the details of the object.
type Difference struct{ Class, Ours, Upstream string }

// Compare returns the differences between two outcomes of one case.
func Compare(c Case, ours, upstream Outcome) []Difference {
	differences := compareProblems(ours.Problems, upstream.Problems)
	if oneSided := len(ours.Problems) == 0 || len(upstream.Problems) == 0; len(differences) > 0 && oneSided && ours.Code != upstream.Code && !accepted(ours) && !accepted(upstream) {
		differences = nil // the two objects are not comparable
	}
	if len(differences) == 0 && (ours.Code != upstream.Code || ours.Message != upstream.Message) {
		d := Difference{fmt.Sprintf("code %d instead of %d", ours.Code, upstream.Code), answered(ours), answered(upstream)}
		if upstream.Message != "" {
			d.Class += ": " + skeleton(upstream.Message)
		}
		if ours.Code == upstream.Code {
			d.Class = fmt.Sprintf("message of %d: %s", ours.Code, skeleton(upstream.Message))
		}
		differences = append(differences, d)
	}
	if !strings.HasPrefix(upstream.Message, "panic") { // a panic also ends the warnings
		differences = append(differences, compareWarnings(ours.Warnings, upstream.Warnings)...)
	}
	if ours.Object == nil || upstream.Object == nil {
		return differences
	}
	a, b := comparable(c, ours.Object), comparable(c, upstream.Object)
	dropAllocated(c, a)
	dropAllocated(c, b)
	t := reflect.TypeOf(c.body().external()).Elem()
	return append(differences, compareValues(nil, "", t, a, b)...)
}

func accepted(o Outcome) bool { return o.Code/100 == 2 }

func answered(o Outcome) string {
	switch {
	case len(o.Problems) > 0:
		return fmt.Sprintf("%d %v", o.Code, o.Problems)
	case o.Message != "":
		return fmt.Sprintf("%d %s", o.Code, o.Message)
	}
	return fmt.Sprintf("%d %s", o.Code, http.StatusText(o.Code))
}

func (p Problem) String() string { return fmt.Sprintf("%s: %s", p.Field, p.Message) }

// compareProblems compares two multisets. If both sides have a problem of one type with one field,
// only the messages differ.
func compareProblems(ours, upstream []Problem) []Difference {
	extra, missing := subtract(ours, upstream), subtract(upstream, ours)
	var out []Difference
	for _, m := range missing {
		i := slices.IndexFunc(extra, func(p Problem) bool { return p.Type == m.Type && p.Field == m.Field })
		if i >= 0 {
			out = append(out, Difference{"words of error: " + m.class(), extra[i].String(), m.String()})
			extra = slices.Delete(extra, i, i+1)
			continue
		}
		out = append(out, Difference{"missing error: " + m.class() + m.gist(), "", m.String()})
	}
	for _, p := range extra {
		out = append(out, Difference{"extra error: " + p.class() + p.gist(), p.String(), ""})
	}
	return out
}

func (p Problem) class() string {
	return blank(p.Field) + " " + strings.TrimPrefix(p.Type, "FieldValue")
}

// gist returns the problem without the value.
func (p Problem) gist() string {
	detail := p.Message
	if i := strings.LastIndex(detail, "\": "); i >= 0 {
		detail = detail[i+3:]
	} else if _, after, ok := strings.Cut(detail, ": "); ok {
		detail = after
	} else {
		return ""
	}
	if strings.HasPrefix(p.Type, "FieldValueNotSupported") {
		return ""
	}
	return " (" + skeleton(detail) + ")"
}

func subtract[T comparableValue](from, what []T) []T {
	rest := slices.Clone(from)
	for _, w := range what {
		if i := slices.Index(rest, w); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		}
	}
	return rest
}

type comparableValue interface{ Problem | string }

func compareWarnings(ours, upstream []string) []Difference {
	var out []Difference
	for _, w := range subtract(upstream, ours) {
		out = append(out, Difference{"missing warning: " + skeleton(w), "", w})
	}
	for _, w := range subtract(ours, upstream) {
		out = append(out, Difference{"extra warning: " + skeleton(w), w, ""})
	}
	return out
}

var (
	brackets = regexp.MustCompile(`\[[^\]]*\]`)
	quoted   = regexp.MustCompile(`\\?"[^"]*"`)
	numbers  = regexp.MustCompile(`[0-9]+`)
)

func blank(path string) string {
	if !strings.Contains(path, "[") {
		return path
	}
	return brackets.ReplaceAllString(path, "[]")
}

// skeleton returns a message without its quoted parts.
func skeleton(s string) string {
	s = strings.TrimSuffix(strings.TrimPrefix(s, `299 - "`), `"`)
	s = numbers.ReplaceAllString(quoted.ReplaceAllString(blank(s), "…"), "N")
	if r := []rune(s); len(r) > 100 {
		s = string(r[:100]) + "…"
	}
	return strings.Join(strings.Fields(s), " ")
}

// comparable returns an object without values that differ each time.
func comparable(c Case, o Object) Object {
	o = maps.Clone(o)
	m, ok := o["metadata"].(Object)
	if !ok {
		return o
	}
	m = maps.Clone(m)
	o["metadata"] = m
	for _, f := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
		delete(m, f)
	}
	if name, _ := m["generateName"].(string); name != "" && c.Old == nil {
		delete(m, "name")
	}
	return blankTimes(o).(Object)
}

// random matches a generated uid.
var random = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

// blankTimes replaces the times of the requests and the generated uids.
func blankTimes(v any) any {
	switch v := v.(type) {
	case string:
		if random.MatchString(v) {
			return random.ReplaceAllString(v, "uid")
		}
		if len(v) >= len("2006-01-02T15:04:05Z") && v[4] == '-' {
			if t, err := time.Parse(time.RFC3339, v); err == nil && time.Since(t).Abs() < 10*time.Minute {
				return "now"
			}
		}
	case []any:
		for i := range v {
			v[i] = blankTimes(v[i])
		}
	case Object:
		for k := range v {
			v[k] = blankTimes(v[k])
		}
	}
	return v
}

// allocated are the fields of a Service that the server allocates unless the client sets them.
var allocated = []string{"clusterIP", "clusterIPs", "healthCheckNodePort"}

// dropAllocated removes the allocated fields of a Service.
func dropAllocated(c Case, o Object) {
	spec, _ := o["spec"].(Object)
	if o["kind"] != "Service" || spec == nil {
		return
	}
	sent, _ := c.New["spec"].(Object)
	for _, f := range allocated {
		if sent[f] == nil || sent[f] == "" {
			delete(spec, f)
		}
	}
	ports, _ := spec["ports"].([]any)
	wanted, _ := sent["ports"].([]any)
	for i := range min(len(ports), len(wanted)) {
		p, _ := ports[i].(Object)
		if w, _ := wanted[i].(Object); p != nil && (w["nodePort"] == nil || w["nodePort"] == 0.0) {
			delete(p, "nodePort")
		}
	}
}

// compareValues compares the values of two objects at a path. t is their Go type, nil if unknown.
func compareValues(out []Difference, path string, t reflect.Type, ours, upstream any) []Difference {
	if reflect.DeepEqual(ours, upstream) {
		return out
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if a, ok := ours.(Object); ok {
		if b, ok := upstream.(Object); ok {
			return compareObjects(out, path, t, a, b)
		}
	}
	a, isList := ours.([]any)
	b, both := upstream.([]any)
	if isList && both && len(a) == len(b) {
		var of reflect.Type
		if t != nil && t.Kind() == reflect.Slice {
			of = t.Elem()
		}
		for i := range a {
			out = compareValues(out, path+"[]", of, a[i], b[i])
		}
		return out
	}
	return append(out, Difference{"result: " + path, show(ours), show(upstream)})
}

func compareObjects(out []Difference, path string, t reflect.Type, a, b Object) []Difference {
	keys := slices.Sorted(maps.Keys(a))
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	for _, k := range keys {
		if t != nil && t.Kind() == reflect.Map {
			out = compareValues(out, path+"{}", t.Elem(), at(a, k), at(b, k))
			continue
		}
		out = compareValues(out, strings.TrimPrefix(path+"."+k, "."), fieldType(t, k), at(a, k), at(b, k))
	}
	return out
}

// absent is the value of an absent field.
type absent struct{}

func at(o Object, key string) any {
	if v, ok := o[key]; ok {
		return v
	}
	return absent{}
}

func show(v any) string {
	if v == (absent{}) {
		return "(absent)"
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return shorten(string(data), 300)
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return fmt.Sprintf("%s… (%d)", string(r[:n]), len(r))
	}
	return s
}
