package judge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Difference is one place in which two responses differ.
type Difference struct {
	Place        string // "code", "header Warning", "body.spec.replicas", …
	Theirs, Ours string // after normalization
	shapes       [2]string
}

// most is the maximal number of reported differences of one response.
const most = 8

// Compare returns the differences between two responses.
func Compare(theirs, ours *Normal) []Difference {
	c := &comparison{}
	switch {
	case theirs.Failed != ours.Failed:
		c.add("answer", orNone(theirs.Failed), orNone(ours.Failed))
		return c.found
	case isExpired(theirs) && ours.Code == http.StatusOK, isExpired(ours) && theirs.Code == http.StatusOK:
		c.add(Forgotten, verdict(theirs), verdict(ours))
		return c.found
	case theirs.Code != ours.Code:
		// With different codes, the other differences are consequences.
		c.add("code", verdict(theirs), verdict(ours))
		return c.found
	}
	their, our := status(theirs.Body), status(ours.Body)
	if their != nil && our != nil {
		c.statuses(their, our)
		c.rejected = len(c.found) > 0
	} else {
		c.values("body", theirs.Body, ours.Body)
	}
	c.headers(theirs.Header, ours.Header)
	c.events(theirs.Events, ours.Events)
	return c.found
}

// Forgotten is the place of a difference between servers of which one has compacted a revision, and the other has not yet: each
// does so at a time of its own.
const Forgotten = "forgotten"

type comparison struct {
	found    []Difference
	rejected bool // for different reasons: warnings are consequences of them
}

func (c *comparison) add(place, theirs, ours string) {
	if len(c.found) < most {
		c.found = append(c.found, Difference{Place: place, Theirs: theirs, Ours: ours, shapes: [2]string{Shape(theirs), Shape(ours)}})
	}
}

func orNone(failed string) string {
	if failed == "" {
		return "an answer"
	}
	return failed
}

// status returns a body if it is a Status, nil if not.
func status(body any) map[string]any {
	s, _ := body.(map[string]any)
	if message, ok := s["message"].(map[string]any); ok && s["envelope"] != nil {
		s = message // from protobuf
	}
	if s["kind"] != "Status" {
		return nil
	}
	return s
}

// isExpired reports whether the revision of a request is compacted.
func isExpired(n *Normal) bool {
	s := status(n.Body)
	return s != nil && s["reason"] == string(metav1.StatusReasonExpired)
}

// verdict returns the code of a response with the reason and message of its Status.
func verdict(n *Normal) string {
	if s := status(n.Body); s != nil {
		return fmt.Sprintf("%d %v: %v", n.Code, s["reason"], s["message"])
	}
	if text, ok := n.Body.(string); ok {
		return fmt.Sprintf("%d %.200s", n.Code, strings.TrimSpace(text))
	}
	return fmt.Sprint(n.Code)
}

func (c *comparison) headers(theirs, ours map[string][]string) {
	names := slices.Collect(maps.Keys(theirs))
	for name := range ours {
		if theirs[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Equal(theirs[name], ours[name]) && !(c.rejected && name == "Warning") {
			c.header(name, theirs[name], ours[name])
		}
	}
}

// header reports a difference in a header field. For warnings, it reports only the texts that the
// other side lacks.
func (c *comparison) header(name string, theirs, ours []string) {
	if name == "Warning" {
		theirs, ours = warnings(minus(theirs, ours)), warnings(minus(ours, theirs))
	}
	c.add("header "+name, strings.Join(theirs, "; "), strings.Join(ours, "; "))
}

// warnings returns the texts of warnings, without duplicates.
func warnings(values []string) []string {
	var out []string
	for _, v := range values {
		text, err := strconv.Unquote(strings.TrimPrefix(v, "299 - "))
		if err != nil {
			text = v
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// statuses compares two Statuses. The causes are a multiset; a message that repeats them is not
// reported again.
func (c *comparison) statuses(theirs, ours map[string]any) {
	before := len(c.found)
	their, _ := theirs["details"].(map[string]any)
	our, _ := ours["details"].(map[string]any)
	c.causes(causes(their), causes(our))
	c.values("body", without(theirs, "message", "details"), without(ours, "message", "details"))
	c.values("body.details", without(their, "causes"), without(our, "causes"))
	if len(c.found) > before {
		return
	}
	if their, our := parts(theirs["message"]), parts(ours["message"]); len(lacking(their, our))+len(minus(our, their)) > 0 {
		c.add("message", fmt.Sprint(theirs["message"]), fmt.Sprint(ours["message"]))
	}
}

// causes compares causes. Different messages for the same field and reason are one difference. A server that rejects a
// patch as a whole does not validate its result, so the causes of the other server are consequences.
func (c *comparison) causes(all, others []string) {
	theirs, ours := lacking(all, others), minus(others, all)
	switch {
	case rejectPatch(theirs) && !rejectPatch(ours):
		ours = nil
	case rejectPatch(ours) && !rejectPatch(theirs):
		theirs = nil
	}
	for _, cause := range theirs {
		field, _, _ := strings.Cut(cause, ": ")
		i := slices.IndexFunc(ours, func(other string) bool { return strings.HasPrefix(other, field+": ") })
		if i < 0 {
			c.add("cause", cause, "")
			continue
		}
		c.add("words of a cause", cause, ours[i])
		ours = slices.Delete(ours, i, i+1)
	}
	for _, cause := range ours {
		c.add("cause", "", cause)
	}
}

// rejectPatch reports whether causes are one about a patch as a whole.
func rejectPatch(causes []string) bool {
	return len(causes) == 1 && strings.HasPrefix(causes[0], "patch ")
}

func causes(details map[string]any) []string {
	list, _ := details["causes"].([]any)
	var out []string
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			out = append(out, fmt.Sprintf("%v %v: %s", m["field"], m["reason"], plain(m["message"])))
		}
	}
	return out
}

// minus returns the elements of the multiset a that b lacks.
func minus(a, b []string) []string {
	rest := slices.Clone(b)
	var out []string
	for _, e := range a {
		if i := slices.Index(rest, e); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// lacking returns the elements of theirs that are not in ours. kube-apiserver validates some objects
// two or three times, and lists a cause each time; minus(ours, theirs) has the causes that ours
// repeats more often.
func lacking(theirs, ours []string) []string {
	return slices.DeleteFunc(minus(theirs, ours), func(e string) bool { return slices.Contains(ours, e) })
}

// plain returns a message in which a quoted object has sorted keys: the object may come from a Go
// type, or from a map.
func plain(message any) string {
	text, _ := message.(string)
	text = quoted.ReplaceAllStringFunc(text, func(in string) string {
		inside, err := strconv.Unquote(in)
		if err != nil {
			return in
		}
		if data := sorted(inside); data != "" {
			return strconv.Quote(data)
		}
		return in
	})
	return inQuotes.ReplaceAllStringFunc(text, func(in string) string {
		inside := strings.Trim(in, "'")
		return "'" + cmp.Or(sorted(inside), inside) + "'"
	})
}

// sorted returns an object in JSON with sorted keys, or "" for another text.
func sorted(text string) string {
	if !strings.HasPrefix(text, "{") {
		return ""
	}
	tree, err := exact([]byte(text))
	if err != nil {
		return ""
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return ""
	}
	return string(data)
}

// parts returns the parts of a message, sorted.
func parts(message any) []string {
	text := plain(message)
	p := strings.Split(strings.NewReplacer(" is invalid: [", " is invalid, ", "[", "", "]", "", "\n  ", ", ").Replace(text), ", ")
	slices.Sort(p)
	return p
}

// values compares two trees.
func (c *comparison) values(place string, theirs, ours any) {
	switch t := theirs.(type) {
	case map[string]any:
		if o, ok := ours.(map[string]any); ok {
			c.objects(place, t, o)
			return
		}
	case []any:
		if o, ok := ours.([]any); ok {
			c.lists(place, t, o)
			return
		}
	}
	if theirs != ours {
		c.value(place, theirs, ours, true, true)
	}
}

func (c *comparison) objects(place string, theirs, ours map[string]any) {
	names := slices.Collect(maps.Keys(theirs))
	for name := range ours {
		if _, both := theirs[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = c.rest(place, names, theirs, ours)
	for _, name := range names {
		t, inTheirs := theirs[name]
		o, inOurs := ours[name]
		if inTheirs && inOurs {
			c.values(place+"."+name, t, o)
		} else {
			c.value(place+"."+name, t, o, inTheirs, inOurs)
		}
	}
}

// rest compares the items of two lists first, and returns the other fields to compare. With different
// numbers of items, "continue" and "remainingItemCount" differ as a consequence.
func (c *comparison) rest(place string, names []string, theirs, ours map[string]any) []string {
	for _, items := range []string{"items", "rows"} {
		t, inTheirs := theirs[items].([]any)
		o, inOurs := ours[items].([]any)
		if !inTheirs || !inOurs || len(t) == len(o) {
			continue
		}
		c.lists(place+"."+items, t, o)
		their, _ := theirs["metadata"].(map[string]any)
		our, _ := ours["metadata"].(map[string]any)
		c.values(place+".metadata", without(their, "continue", "remainingItemCount"), without(our, "continue", "remainingItemCount"))
		return slices.DeleteFunc(names, func(name string) bool { return name == items || name == "metadata" })
	}
	return names
}

func (c *comparison) lists(place string, theirs, ours []any) {
	if len(theirs) != len(ours) {
		c.add("length of "+place, text(theirs), text(ours))
		shapes := [2]string{"longer", "shorter"}
		if len(theirs) < len(ours) {
			shapes = [2]string{"shorter", "longer"}
		}
		c.found[len(c.found)-1].shapes = shapes
		return
	}
	for i := range theirs {
		c.values(place+"[]", theirs[i], ours[i])
	}
}

// value reports two different values, one of which may be missing.
func (c *comparison) value(place string, theirs, ours any, inTheirs, inOurs bool) {
	if len(c.found) >= most {
		return
	}
	d := Difference{Place: place, Theirs: "nothing", Ours: "nothing", shapes: [2]string{"nothing", "nothing"}}
	if inTheirs {
		d.Theirs, d.shapes[0] = text(theirs), kind(theirs)
	}
	if inOurs {
		d.Ours, d.shapes[1] = text(ours), kind(ours)
	}
	switch d.shapes {
	case [2]string{"string", "string"}:
		d.shapes = later(d.Theirs, d.Ours)
	case [2]string{"number", "number"}:
		if equalNumbers(theirs, ours) {
			d.shapes = [2]string{"equal number", "equal number"}
		}
	}
	c.found = append(c.found, d)
}

// equalNumbers reports whether two numbers are equal, such as 0 and -0, or the float 1 and the integer 1 in CBOR.
func equalNumbers(theirs, ours any) bool {
	t, err := strconv.ParseFloat(fmt.Sprint(theirs), 64)
	o, err2 := strconv.ParseFloat(fmt.Sprint(ours), 64)
	return err == nil && err2 == nil && t == o
}

// later returns the order of two revisions of an object. For texts that are no revisions on either
// side, it returns that they are texts.
func later(theirs, ours string) [2]string {
	var t, o int
	if _, err := fmt.Sscanf(theirs+ours, `"revision-%d""revision-%d"`, &t, &o); err != nil {
		return [2]string{"string", "string"}
	}
	if t > o {
		return [2]string{"a later revision", "an earlier revision"}
	}
	return [2]string{"an earlier revision", "a later revision"}
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

// kind returns the JSON type of a value.
func kind(v any) string {
	switch v := v.(type) {
	case nil, bool:
		return fmt.Sprint(v)
	case json.Number, float64, int64: // the last two of CBOR
		return "number"
	case string:
		if v == "" || fixed.MatchString(v) {
			return digits.ReplaceAllString(fmt.Sprintf("%q", v), "N")
		}
		return "string"
	case []any:
		return "list"
	}
	return "object"
}

// fixed matches placeholders for values that servers generate.
var fixed = regexp.MustCompile(`^(TIME|AGE|REVISION|uid-|ADDRESS|PORT|CONTINUE|[A-Z][a-z]+([A-Z][a-z]+)+$)`)

// events compares the events of two watches.
func (c *comparison) events(theirs, ours []any) {
	if t, o := startsExpired(theirs), startsExpired(ours); t != o {
		c.add(Forgotten, first(theirs), first(ours))
		return
	}
	for i := range max(len(theirs), len(ours)) {
		switch {
		case i >= len(theirs):
			c.add("an event more", "", event(ours[i]))
			return
		case i >= len(ours):
			c.add("an event more", event(theirs[i]), "")
			return
		}
		if failure(theirs[i]) != failure(ours[i]) {
			c.add("event", event(theirs[i]), event(ours[i]))
			return // a Status has none of an object's fields
		}
		before := len(c.found)
		c.values("event", theirs[i], ours[i])
		if len(c.found) > before {
			return // later events may only be shifted
		}
	}
}

// event returns a short form of a watch event.
func event(v any) string {
	e, _ := v.(map[string]any)
	if failure(v) {
		s := status(e["object"])
		return fmt.Sprintf("%v %v %v: %v", e["type"], s["code"], s["reason"], s["message"])
	}
	return fmt.Sprintf("%v %s", e["type"], text(e["object"]))
}

// first returns a short form of the first event, if there is one.
func first(events []any) string {
	if len(events) == 0 {
		return ""
	}
	return event(events[0])
}

// startsExpired reports whether the revision from which a watch should start is forgotten.
func startsExpired(events []any) bool {
	if len(events) == 0 || !failure(events[0]) {
		return false
	}
	e, _ := events[0].(map[string]any)
	return status(e["object"])["reason"] == string(metav1.StatusReasonExpired)
}

// failure reports whether an event is the error that ends a watch.
func failure(v any) bool {
	e, _ := v.(map[string]any)
	return e["type"] == "ERROR" && status(e["object"]) != nil
}

var (
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	digits = regexp.MustCompile(`\d+`)
	// inQuotes is an object in single quotes, in a message that its apiVersion or kind is missing.
	inQuotes = regexp.MustCompile(`'\{.*\}'`)
	// negativeZero is a number for which Kubernetes has "-0", and anykind "0".
	negativeZero = regexp.MustCompile(`([:,\[ ])-0([],} ]|$)`)

	answered = regexp.MustCompile(`^[1-5]\d\d( |$)`)
)

// Shape returns a text without its variable parts: quoted text, numbers, and everything beyond the
// length of a line.
func Shape(text string) string {
	code := answered.FindString(text)
	text = text[len(code):]
	text = negativeZero.ReplaceAllString(quoted.ReplaceAllString(text, `""`), "${1}0$2")
	text = digits.ReplaceAllString(text, "N")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 140 {
		text = text[:140] + "…"
	}
	return code + text
}
