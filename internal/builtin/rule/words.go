package rule

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema/gotype"
)

// A word validates a value with the argument in a line of the table. It reports whether the next
// words apply, too.
type word func(c *Check, v reflect.Value, r rule) bool

// dictionary has the words of the table that validate values. All except needed, needed-by-tag and set ignore missing
// values: a nil pointer, an empty text or list. A number, and the target of a pointer, is always
// present.
var dictionary = map[string]word{
	"needed": needed,
	"needed-by-tag": func(c *Check, v reflect.Value, r rule) bool {
		r.argument = Untagged(c.Gates, r.argument)
		return needed(c, v, r)
	},
	"set":   set,
	"known": known,
	"min":   number(func(n, limit int64) bool { return n >= limit }, "must be greater than or equal to %d"),
	"max":   number(func(n, limit int64) bool { return n <= limit }, "must be less than or equal to %d"),
	"above": number(func(n, limit int64) bool { return n > limit }, "must be greater than %d"),
	"priority-of-users": number(func(n, _ int64) bool { return n < 0 || n >= 1000 },
		"priorities 0-999 are reserved for responders with *.k8s.io suffix"),
	"port":        ofNumber(func(n int64) []string { return validation.IsValidPortNum(int(n)) }),
	"between":     between,
	"file-mode":   number(func(n, _ int64) bool { return n >= 0 && n <= 0o777 }, "must be a number between 0 and 0777 (octal), both inclusive"),
	"user-id":     ofNumber(func(n int64) []string { return validation.IsValidUserID(n) }),
	"share":       share,
	"at-most-all": atMostAll,
	"max-items":   maxItems,
	"max-bytes":   maxBytes,
	"max-length":  maxLength,
	"unique":      unique,

	"dns-label":        ofText(func(s string) []string { return validation.IsDNS1123Label(s) }),
	"dns-subdomain":    ofText(func(s string) []string { return validation.IsDNS1123Subdomain(s) }),
	"qualified-name":   ofText(func(s string) []string { return validation.IsQualifiedName(s) }),
	"label-key":        ofText(content.IsLabelKey),
	"condition-reason": ofText(metavalidation.IsValidConditionReason),
	"path-below":       ofText(PathBelow),
	"path-segment":     ofText(content.IsPathSegmentName),
	"short-name":       ofText(content.IsDNS1123Label),
	"long-name":        ofText(content.IsDNS1123Subdomain),
	"prefixed-key":     ofText(content.IsPrefixedLabelKey),
	"unreserved":       ofText(unreserved),
	"uuid":             uuid,
	"label-value":      ofText(func(s string) []string { return validation.IsValidLabelValue(s) }),

	"ip":       ofValue(func(c *Check, s string) field.ErrorList { return validation.IsValidIP(c.Path(), s) }),
	"cidr":     ofValue(func(c *Check, s string) field.ErrorList { return validation.IsValidCIDR(c.Path(), s) }),
	"labels":   ofValue(func(c *Check, m map[string]string) field.ErrorList { return metavalidation.ValidateLabels(m, c.Path()) }),
	"selector": ofValue(selector),
}

func selector(c *Check, s metav1.LabelSelector) field.ErrorList {
	return metavalidation.ValidateLabelSelector(&s, metavalidation.LabelSelectorValidationOptions{}, c.Path())
}

// Words returns the words that validate values.
func Words() []string { return slices.Sorted(maps.Keys(dictionary)) }

// present returns the target of a pointer, and whether there is a value.
func present(v reflect.Value) (reflect.Value, bool) {
	if v.Kind() == reflect.Pointer {
		return v.Elem(), !v.IsNil()
	}
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return v, v.Len() > 0
	}
	return v, true
}

func needed(c *Check, v reflect.Value, r rule) bool {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	missing := v.IsZero()
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		missing = v.Len() == 0
	}
	if missing {
		c.Required(r.argument)
	}
	return !missing
}

// set requires a pointer.
func set(c *Check, v reflect.Value, r rule) bool {
	if v.IsNil() {
		c.Required(r.argument)
	}
	return !v.IsNil()
}

// known rejects a value outside the enum of the field, in a text or in a list.
func known(c *Check, v reflect.Value, r rule) bool {
	v, ok := present(v)
	if !ok {
		return true
	}
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			ok = known(c.At(i), v.Index(i), r) && ok
		}
		return ok
	}
	if slices.Contains(r.enum, v.String()) {
		return true
	}
	c.Add(field.NotSupported(c.Path(), v.Interface(), slices.Sorted(slices.Values(r.enum))))
	return false
}

func number(ok func(n, limit int64) bool, detail string) word {
	return func(c *Check, v reflect.Value, r rule) bool {
		v, there := present(v)
		if !there {
			return true
		}
		limit, _ := strconv.ParseInt(r.argument, 10, 64)
		if ok(v.Int(), limit) {
			return true
		}
		if strings.Contains(detail, "%") {
			c.Invalid(v.Int(), fmt.Sprintf(detail, limit))
		} else {
			c.Invalid(v.Int(), detail)
		}
		return false
	}
}

// between has the least and the greatest valid number, as in between=0,255.
func between(c *Check, v reflect.Value, r rule) bool {
	v, there := present(v)
	if !there {
		return true
	}
	first, last, _ := strings.Cut(r.argument, ",")
	low, _ := strconv.Atoi(first)
	high, _ := strconv.Atoi(last)
	if n := v.Int(); n < int64(low) || n > int64(high) {
		c.Invalid(n, validation.InclusiveRangeError(low, high))
		return false
	}
	return true
}

func ofNumber(check func(int64) []string) word {
	return func(c *Check, v reflect.Value, _ rule) bool {
		v, there := present(v)
		if !there {
			return true
		}
		details := check(v.Int())
		c.Invalids(v.Interface(), details)
		return len(details) == 0
	}
}

// ofText returns a word that validates a text, or each element of a list of texts.
func ofText(check func(string) []string) word {
	return func(c *Check, v reflect.Value, r rule) bool {
		v, there := present(v)
		if !there {
			return true
		}
		if v.Kind() == reflect.Slice {
			for i := range v.Len() {
				c.At(i).Invalids(v.Index(i).Interface(), check(v.Index(i).String()))
			}
			return true
		}
		details := check(v.String())
		c.Invalids(v.Interface(), details)
		return len(details) == 0
	}
}

func ofValue[T any](check func(*Check, T) field.ErrorList) word {
	of := reflect.TypeFor[T]()
	return func(c *Check, v reflect.Value, _ rule) bool {
		v, there := present(v)
		if !there {
			return true
		}
		errs := check(c, v.Convert(of).Interface().(T))
		c.Add(errs...)
		return len(errs) == 0
	}
}

func maxItems(c *Check, v reflect.Value, r rule) bool {
	limit, _ := strconv.Atoi(r.argument)
	if v.Len() <= limit {
		return true
	}
	c.TooMany(v.Len(), limit)
	return false
}

// unique rejects a duplicate in a list: of a text, or of a struct compared by some of its fields, as in
// unique=name,type.
func unique(c *Check, v reflect.Value, r rule) bool {
	names, seen := strings.Split(r.argument, ","), map[string]bool{}
	for i := range v.Len() {
		key := keyOf(v.Index(i), names)
		if seen[key] {
			c.Add(field.Duplicate(c.At(i).Path(), v.Index(i).Interface()))
		}
		seen[key] = true
	}
	return true
}

// keyOf returns a text that differs for different values of some fields, or for different texts.
func keyOf(v reflect.Value, names []string) string {
	if v.Kind() == reflect.String {
		return v.String()
	}
	var key strings.Builder
	for f := range gotype.Fields(v.Type()) {
		if slices.Contains(names, f.JSONName) {
			fmt.Fprintf(&key, "%q", v.FieldByName(f.Name))
		}
	}
	return key.String()
}

func maxBytes(c *Check, v reflect.Value, r rule) bool {
	limit, _ := strconv.Atoi(r.argument)
	v, there := present(v)
	if !there || v.Len() <= limit {
		return true
	}
	c.TooLong(limit)
	return false
}

// maxLength limits the number of characters.
func maxLength(c *Check, v reflect.Value, r rule) bool {
	limit, _ := strconv.Atoi(r.argument)
	v, there := present(v)
	if !there || utf8.RuneCountInString(v.String()) <= limit {
		return true
	}
	c.Add(field.TooLongCharacters(c.Path(), "", limit))
	return false
}

// unreserved returns the errors of a key whose prefix is a domain of Kubernetes.
func unreserved(key string) []string {
	domain, _, _ := strings.Cut(key, "/")
	domain = "." + strings.TrimRight(strings.TrimSpace(strings.ToLower(domain)), ".")
	if strings.HasSuffix(domain, ".k8s.io") || strings.HasSuffix(domain, ".kubernetes.io") {
		return []string{"domain names *.k8s.io, *.kubernetes.io are reserved"}
	}
	return nil
}

func uuid(c *Check, v reflect.Value, _ rule) bool {
	text := v.String()
	errs := validate.UUID(c.Context, operation.Operation{}, c.Path(), &text, nil)
	c.Add(errs...)
	return errs == nil
}

// PathBelow returns the errors of a relative path that must stay below a directory.
func PathBelow(name string) (details []string) {
	if strings.HasPrefix(name, "/") {
		details = append(details, "must be a relative path")
	}
	details = append(details, PathUp(name)...)
	if strings.HasPrefix(name, "..") && !strings.HasPrefix(name, "../") {
		details = append(details, "must not start with '..'")
	}
	return details
}

// PathUp returns the errors of a path with "..".
func PathUp(name string) []string {
	if slices.Contains(strings.Split(name, "/"), "..") {
		return []string{"must not contain '..'"}
	}
	return nil
}
