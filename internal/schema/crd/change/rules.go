package change

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A bound is a limit of a schema. The greater one of two refuses more if it is a lower one.
type bound struct {
	name    string
	was, is *float64
	lower   bool
}

func number(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

// bounds compares the limits of values.
func (c *comparison) bounds(path string, a, b *v1.JSONSchemaProps) {
	for _, l := range []bound{
		{"minimum", a.Minimum, b.Minimum, true}, {"maximum", a.Maximum, b.Maximum, false},
		{"minLength", number(a.MinLength), number(b.MinLength), true}, {"maxLength", number(a.MaxLength), number(b.MaxLength), false},
		{"minItems", number(a.MinItems), number(b.MinItems), true}, {"maxItems", number(a.MaxItems), number(b.MaxItems), false},
		{"minProperties", number(a.MinProperties), number(b.MinProperties), true}, {"maxProperties", number(a.MaxProperties), number(b.MaxProperties), false},
	} {
		what := fmt.Sprintf("%s changes from %s to %s", l.name, written(l.was), written(l.is))
		switch {
		case l.was == nil && l.is == nil, l.was != nil && l.is != nil && *l.was == *l.is:
		case l.is == nil || l.was != nil && (*l.is > *l.was) != l.lower:
			c.safe(path, l.name+"-relaxed", what)
		default:
			c.refuses(path, l.name+"-tightened", what, Saves)
		}
	}
	for _, e := range []struct {
		name    string
		was, is bool
	}{{"exclusiveMinimum", a.ExclusiveMinimum, b.ExclusiveMinimum}, {"exclusiveMaximum", a.ExclusiveMaximum, b.ExclusiveMaximum}, {"uniqueItems", a.UniqueItems, b.UniqueItems}} {
		switch {
		case !e.was && e.is:
			c.refuses(path, e.name+"-tightened", e.name+" becomes true", Saves)
		case e.was && !e.is:
			c.safe(path, e.name+"-relaxed", e.name+" becomes false")
		}
	}
	switch {
	case b.MultipleOf == nil && a.MultipleOf != nil:
		c.safe(path, "multipleOf-relaxed", "multipleOf is removed")
	case b.MultipleOf != nil && (a.MultipleOf == nil || *a.MultipleOf != *b.MultipleOf):
		c.refuses(path, "multipleOf-tightened", fmt.Sprintf("multipleOf changes from %s to %s", written(a.MultipleOf), written(b.MultipleOf)), Saves)
	}
}

func written(n *float64) string {
	if n == nil {
		return "none"
	}
	return strconv.FormatFloat(*n, 'f', -1, 64)
}

// texts compares what strings may be.
func (c *comparison) texts(path string, a, b *v1.JSONSchemaProps) {
	for _, s := range []struct{ name, was, is string }{{"pattern", a.Pattern, b.Pattern}, {"format", a.Format, b.Format}} {
		what := fmt.Sprintf("%s changes from %s to %s", s.name, cmp.Or(s.was, "none"), cmp.Or(s.is, "none"))
		switch {
		case s.was == s.is:
		case s.is == "":
			c.safe(path, s.name+"-removed", what)
		default:
			c.refuses(path, s.name+"-changed", what, Saves)
		}
	}
}

// lists compares list types and keys.
func (c *comparison) lists(path string, a, b *v1.JSONSchemaProps) {
	was, is := cmp.Or(value(a.XListType), "atomic"), cmp.Or(value(b.XListType), "atomic")
	merged := func(change, what string) {
		c.add(Finding{Severity: Caution, Path: path, Change: change, What: what,
			Reason: "Server-side apply merges the list differently, and the owners of its fields change."})
	}
	if typeOf(b) == "array" {
		switch {
		case was == is && slices.Equal(a.XListMapKeys, b.XListMapKeys):
		case is == "atomic":
			merged("list-type-changed", fmt.Sprintf("the list changes from %s to atomic", was))
		case was != is:
			c.refuses(path, "list-type-changed", fmt.Sprintf("the list changes from %s to %s, without duplicates", was, is), Saves)
		default:
			c.refuses(path, "list-keys-changed", fmt.Sprintf("the keys of the list change from %v to %v", a.XListMapKeys, b.XListMapKeys), Saves)
		}
	}
	if was, is := cmp.Or(value(a.XMapType), "granular"), cmp.Or(value(b.XMapType), "granular"); was != is {
		merged("map-type-changed", fmt.Sprintf("the map changes from %s to %s", was, is))
	}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// alternatives compares allOf, anyOf, oneOf and not.
func (c *comparison) alternatives(path string, a, b *v1.JSONSchemaProps) {
	for _, s := range []struct {
		name    string
		was, is any
		none    bool
	}{
		{"allOf", a.AllOf, b.AllOf, len(b.AllOf) == 0}, {"anyOf", a.AnyOf, b.AnyOf, len(b.AnyOf) == 0},
		{"oneOf", a.OneOf, b.OneOf, len(b.OneOf) == 0}, {"not", a.Not, b.Not, b.Not == nil},
	} {
		switch {
		case reflect.DeepEqual(s.was, s.is):
		case s.none:
			c.safe(path, s.name+"-removed", s.name+" is removed")
		default:
			c.refuses(path, s.name+"-changed", s.name+" changes: the schemas cannot be compared", Saves)
		}
	}
}

// oldSelf finds transition rules.
var oldSelf = regexp.MustCompile(`\boldSelf\b`)

// rules compares CEL rules by their expressions.
func (c *comparison) rules(path string, a, b *v1.JSONSchemaProps) {
	has := func(all v1.ValidationRules, r *v1.ValidationRule) bool {
		return slices.ContainsFunc(all, func(other v1.ValidationRule) bool {
			return plain(other.Rule) == plain(r.Rule) && reflect.DeepEqual(other.OptionalOldSelf, r.OptionalOldSelf)
		})
	}
	var gone []string
	for i := range a.XValidations {
		if r := &a.XValidations[i]; !has(b.XValidations, r) {
			gone = append(gone, r.Rule)
		}
	}
	added := 0
	for i := range b.XValidations {
		r := &b.XValidations[i]
		if has(a.XValidations, r) {
			continue
		}
		change, what := "rule-added", "new rule: "+plain(r.Rule)
		if added < len(gone) {
			change, what = "rule-changed", fmt.Sprintf("a rule changes from %s to %s", plain(gone[added]), plain(r.Rule))
		}
		added++
		if !oldSelf.MatchString(r.Rule) {
			c.refuses(path, change, what, Saves)
			continue
		}
		reason := "Updates that violate the rule are rejected; unchanged and new objects are not."
		if isTrue(r.OptionalOldSelf) {
			reason = "New objects and updates that violate the rule are rejected."
		}
		c.add(Finding{Severity: Breaking, Path: path, Change: change, What: what, Reason: reason,
			WayOut: "Find clients with such updates.", Ratcheting: NeverSaves})
	}
	for _, rule := range gone[min(added, len(gone)):] {
		c.safe(path, "rule-removed", "removed rule: "+plain(rule))
	}
}

// plain is a rule in a line.
func plain(rule string) string { return strings.Join(strings.Fields(rule), " ") }
