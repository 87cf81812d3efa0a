package infer

import (
	"regexp"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/schema/format"
)

// A text has the evidence of strings in a place.
type text struct {
	seen    int
	longest int
	// values counts the different strings; overflowed is true if there were too many.
	values     map[string]int
	overflowed bool
	// not has the shapes that at least one string lacks, has those of at least one.
	not, has shape
}

// A shape is a set of possible forms of strings.
type shape uint

// The shapes.
const (
	dateTime shape = 1 << iota
	uuid
	cidr
	ipv4
	ipv6
	mac
	email
	byteString
	duration
	quantity
	constant // as the API conventions want enums: CamelCase, or all in capitals
	word     // in small letters
	short    // enough for a column
	// padded is evidence for byteString, as unit is for durations and bytesUnit for quantities: it
	// rules out chance.
	padded
	unit
	bytesUnit
	allShapes = 1<<iota - 1
)

// is reports whether all strings have a shape.
func (t *text) is(s shape) bool { return t.seen > 0 && t.not&s == 0 }

func (t *text) add(s string) {
	t.seen++
	t.longest = max(t.longest, len(s))
	shapes := shapesOf(s)
	t.not |= allShapes &^ shapes
	t.has |= shapes
	t.count(s, 1)
}

func (t *text) count(s string, n int) {
	if t.overflowed {
		return
	}
	if t.values == nil {
		t.values = map[string]int{}
	}
	if t.values[s] += n; len(t.values) > mostValues {
		t.overflowed, t.values = true, nil
	}
}

func (t *text) merge(o *text) {
	t.seen += o.seen
	t.longest = max(t.longest, o.longest)
	t.not |= o.not
	t.has |= o.has
	if o.overflowed {
		t.overflowed, t.values = true, nil
	}
	for s, n := range o.values {
		t.count(s, n)
	}
}

// The patterns of shapes.
var (
	constants = regexp.MustCompile(`^(?:[A-Z][A-Za-z0-9]*|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)$`)
	words     = regexp.MustCompile(`^[a-z][a-zA-Z]*(?:-[a-z]+)*$`)
	durations = regexp.MustCompile(`^(?:\d+(?:\.\d+)?(?:ns|us|ms|s|m|h))+$`)
	units     = regexp.MustCompile(`\d(?:ms|s|h)`)
	amounts   = regexp.MustCompile(`^\d+(?:\.\d+)?(?:[KMGTPE]i|[kMGTPE])$`)
	// quantities is the pattern of quantities in Kubernetes' schemas.
	quantities = regexp.MustCompile(quantityPattern)
)

const quantityPattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// shapesOf returns the shapes of a string. Formats are those that a server enforces, by its own rules.
func shapesOf(s string) (all shape) {
	if len(s) > 256 {
		if format.Of("byte")(s) {
			return byteString | padded
		}
		return 0
	}
	for _, f := range []struct {
		shape shape
		is    bool
	}{
		{dateTime, len(s) >= len("2006-01-02T15:04:05Z") && format.Of("date-time")(s)},
		{uuid, len(s) == 36 && format.Of("uuid")(s)},
		{cidr, strings.Contains(s, "/") && format.Of("cidr")(s)},
		{ipv4, format.Of("ipv4")(s)},
		{ipv6, format.Of("ipv6")(s)},
		{mac, strings.Contains(s, ":") && format.Of("mac")(s)},
		{email, strings.Contains(s, "@") && format.Of("email")(s)},
		{byteString, len(s) >= 16 && format.Of("byte")(s)},
		{padded, len(s) >= 16 && strings.HasSuffix(s, "=") || len(s) >= 64},
		{duration, isDuration(s) && format.Of("duration")(s)},
		{unit, units.MatchString(s)},
		{quantity, quantities.MatchString(s)},
		{bytesUnit, amounts.MatchString(s)},
		{constant, len(s) <= 40 && constants.MatchString(s)},
		{word, len(s) <= 30 && words.MatchString(s)},
		{short, len(s) <= 40 && !strings.Contains(s, "\n")},
	} {
		if f.is {
			all |= f.shape
		}
	}
	return all
}

// isDuration reports whether a string is a Go duration with a unit. Other strings of the format, such
// as "1 day", are not valid for Go programs.
func isDuration(s string) bool {
	if !durations.MatchString(s) {
		return false
	}
	_, err := time.ParseDuration(s)
	return err == nil
}

// Names of fields that confirm shapes which a string may have by chance.
var (
	timeNames  = regexp.MustCompile(`(?i)(timeout|interval|duration|period|ttl|delay|window|backoff|age|after|before|expir|lease|lifetime|frequency)`)
	emailNames = regexp.MustCompile(`(?i)e-?mail`)
	macNames   = regexp.MustCompile(`(?i)mac`)
	v4Names    = regexp.MustCompile(`(?i)ipv4`)
	v6Names    = regexp.MustCompile(`(?i)ipv6`)
)

// formatOf returns the format of all strings of a place, or "". It must not reject other plausible
// values of a field of that name.
func (t *text) formatOf(name string, enough bool) string {
	switch {
	case t.is(dateTime):
		return "date-time" // no other string has this form
	case !enough:
	case t.is(uuid):
		return "uuid"
	case t.is(cidr):
		return "cidr"
	case t.is(ipv4) && v4Names.MatchString(name):
		return "ipv4"
	case t.is(ipv6) && v6Names.MatchString(name):
		return "ipv6"
	case t.is(mac) && macNames.MatchString(name):
		return "mac"
	case t.is(email) && emailNames.MatchString(name):
		return "email"
	case t.is(byteString) && t.has&padded != 0:
		return "byte"
	case t.is(duration) && (timeNames.MatchString(name) || t.has&unit != 0 && !t.is(quantity)):
		return "duration"
	}
	return ""
}

// isQuantity reports whether the strings are quantities, such as 500m and 10Gi.
func (t *text) isQuantity() bool { return t.is(quantity) && t.has&bytesUnit != 0 }

// Names of fields with freely chosen values, even if few samples differ.
var chosen = regexp.MustCompile(`(?i)(^|[a-z])(names?|namespaces?|kinds?|groups?|apiversion|version|keys?|ref|refs|hosts?|hostname|path|image|tag|id|value|values|label|labels|user|username|region|zone|title|message|prefix|suffix|dns|domain|class|channel|revision|branch|repo|repository|bucket|role|owner|issuer|subject|secret|password|token|args?|command)$`)

// enumOf returns the values if they look like an enum: few, frequent, and of the form of constants.
func (t *text) enumOf(name string) []string {
	const most, times = 8, 3
	if t.overflowed || len(t.values) < 2 || len(t.values) > most || !t.is(constant) && !t.is(word) || chosen.MatchString(name) {
		return nil
	}
	need := times
	if !t.is(constant) {
		need *= 2 // names have this form, too
	}
	for _, n := range t.values {
		if n < 2 || t.seen < need*len(t.values) {
			return nil
		}
	}
	return sorted(t.values)
}

// examplesOf are values that could be an enum if there were more samples.
func (t *text) examplesOf(name string) []string {
	if t.overflowed || len(t.values) < 2 || len(t.values) > 5 || !t.is(constant) || chosen.MatchString(name) {
		return nil
	}
	return sorted(t.values)
}
