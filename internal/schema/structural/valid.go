package structural

import (
	"math"
	"reflect"
	"unicode/utf8"
)

// valid reports whether v is valid by n. It does not allocate. explain computes the errors of an
// invalid value, and both must agree.
func (n *node) valid(v any) bool {
	x := n.limits
	switch v := v.(type) {
	case string:
		if n.accepts&isString == 0 || x != nil && !x.validString(v) {
			return false
		}
	case int64:
		if n.accepts&isInteger == 0 || x != nil && x.numbers != nil && x.numbers.ofInt(v) != 0 {
			return false
		}
	case bool:
		if n.accepts&isBool == 0 {
			return false
		}
	case map[string]any:
		if n.accepts&isObject == 0 || x != nil && !x.validSize(v) || !n.validFields(v) {
			return false
		}
	case []any:
		if n.accepts&isList == 0 || x != nil && !x.validLength(v) || !n.validItems(v) {
			return false
		}
	case float64:
		if !n.validFloat(v) {
			return false
		}
	default:
		return n.accepts&isNull != 0 && (x == nil || len(x.enum) == 0)
	}
	return x == nil || x.among(v) && x.validJunctors(v)
}

func (n *node) validFloat(v float64) bool {
	k := isFraction
	if whole(v) {
		k = isWhole
	}
	if n.accepts&k == 0 {
		return false
	}
	if n.limits == nil || n.limits.numbers == nil {
		return n.typed != typeInteger || v == math.Trunc(v)
	}
	return n.limits.numbers.ofFloat(v) == 0
}

func (n *node) validFields(obj map[string]any) bool {
	if n.properties == nil && n.additional == nil && !n.closed {
		return true
	}
	for k, v := range obj {
		c := n.properties[k]
		if c == nil {
			if n.closed {
				return false
			}
			if c = n.additional; c == nil {
				continue
			}
		}
		if !c.valid(v) {
			return false
		}
	}
	return true
}

func (n *node) validItems(list []any) bool {
	if n.items == nil {
		return true
	}
	for _, v := range list {
		if !n.items.valid(v) {
			return false
		}
	}
	return true
}

func (x *limits) validString(s string) bool {
	return (x.maxLength == nil || int64(len(s)) <= *x.maxLength || int64(utf8.RuneCountInString(s)) <= *x.maxLength) &&
		(x.minLength == nil || int64(utf8.RuneCountInString(s)) >= *x.minLength) &&
		(x.inForm == nil || x.inForm(s)) &&
		(x.pattern == nil || x.pattern.match(s))
}

func (x *limits) validSize(obj map[string]any) bool {
	if x.minProperties != nil && int64(len(obj)) < *x.minProperties || x.maxProperties != nil && int64(len(obj)) > *x.maxProperties {
		return false
	}
	for _, k := range x.required {
		if _, ok := obj[k]; !ok {
			return false
		}
	}
	return true
}

func (x *limits) validLength(list []any) bool {
	return (x.minItems == nil || int64(len(list)) >= *x.minItems) &&
		(x.maxItems == nil || int64(len(list)) <= *x.maxItems) &&
		(!x.uniqueItems || !repeats(list))
}

// among reports whether v is one of the permitted values.
func (x *limits) among(v any) bool {
	if len(x.enum) == 0 {
		return true
	}
	for _, e := range x.enum {
		if enumerates(e, v) {
			return true
		}
	}
	return false
}

// enumerates reports whether a value of an enum equals v. As Kubernetes does, it converts v to the
// type of e, by Go's rules, and compares then.
func enumerates(e, v any) bool {
	switch e := e.(type) {
	case string:
		switch v := v.(type) {
		case string:
			return v == e
		case int64:
			r := utf8.RuneError
			if int64(rune(v)) == v {
				r = rune(v)
			}
			return string(r) == e
		}
	case int64:
		switch v := v.(type) {
		case int64:
			return v == e
		case float64:
			return int64(v) == e
		}
	case float64:
		switch v := v.(type) {
		case int64:
			return float64(v) == e
		case float64:
			return v == e
		}
	case bool:
		b, ok := v.(bool)
		return ok && b == e
	case nil:
		return false // not even for a null
	default:
		return reflect.DeepEqual(e, v)
	}
	return false
}

func (x *limits) validJunctors(v any) bool {
	for _, n := range x.allOf {
		if !n.valid(v) {
			return false
		}
	}
	if len(x.anyOf) > 0 {
		any := false
		for _, n := range x.anyOf {
			if n.valid(v) {
				any = true
				break
			}
		}
		if !any {
			return false
		}
	}
	if len(x.oneOf) > 0 {
		count := 0
		for _, n := range x.oneOf {
			if n.valid(v) {
				count++
			}
		}
		if count != 1 {
			return false
		}
	}
	return x.not == nil || !x.not.valid(v)
}

// repeats reports whether a list has the same value twice. No definition that is accepted today
// requires this check.
func repeats(list []any) bool {
	for i := range list {
		for j := range i {
			if reflect.DeepEqual(list[i], list[j]) {
				return true
			}
		}
	}
	return false
}
