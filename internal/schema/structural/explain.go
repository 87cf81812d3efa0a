package structural

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// An explainer computes the errors of an invalid value, in the words and the order of kube-apiserver.
// If its order is that of a map, they are sorted by name.
type explainer struct {
	// base is the prefix of all paths, nil for the whole object. It is also the path of errors without
	// a field.
	base *field.Path
}

// A fault is one error. Equal ones count once.
type fault struct {
	message string
	err     *field.Error
}

// An outcome has the errors of a value, and a measure of its valid parts: the best of several
// alternatives is reported.
type outcome struct {
	faults []fault
	score  int
}

func (r *outcome) add(f fault) { r.faults = append(r.faults, f) }

func (r *outcome) merge(other outcome) {
	r.faults = append(r.faults, other.faults...)
	r.score += other.score
}

// validate returns the errors of v at at.
func (n *node) validate(v any, at *field.Path, old *correlation) field.ErrorList {
	if n.valid(v) {
		return nil
	}
	e := &explainer{base: at}
	r := e.explain(n, v, "", old)
	return r.errors()
}

// errors returns the faults, each once.
func (r *outcome) errors() field.ErrorList {
	seen := make(map[string]bool, len(r.faults))
	var errs field.ErrorList
	for _, f := range r.faults {
		if !seen[f.message] {
			seen[f.message] = true
			errs = append(errs, f.err)
		}
	}
	return errs
}

// at returns the field that a path names.
func (e *explainer) at(path string) *field.Path {
	if path == "" || path == "." {
		return e.base
	}
	return e.base.Child(strings.TrimPrefix(path, "."))
}

// say returns a fault of the value at path. The message becomes that of the field's error.
func (e *explainer) say(path string, value any, format string, args ...any) fault {
	message := fmt.Sprintf(format, args...)
	return fault{message, field.Invalid(e.at(path), value, message)}
}

// sayWhole returns a fault that is reported for no field.
func (e *explainer) sayWhole(format string, args ...any) fault {
	message := fmt.Sprintf(format, args...)
	return fault{message, field.Invalid(e.base, "", message)}
}

func (e *explainer) sayType(path, expected, found string) fault {
	message := fmt.Sprintf("%s in body must be of type %s: %q", path, expected, found)
	return fault{message, field.TypeInvalid(e.at(path), found, message)}
}

// explain returns the errors of v at path by n. old correlates v with its old value, or is nil: errors
// of an unchanged v are not reported.
func (e *explainer) explain(n *node, v any, path string, old *correlation) outcome {
	r := e.value(n, v, path, old)
	if len(r.faults) > 0 && old.unchanged() {
		r.faults = nil
	}
	return r
}

func (e *explainer) value(n *node, v any, path string, old *correlation) (r outcome) {
	k := kindOf(v)
	if v == nil {
		if n.accepts&isNull == 0 {
			r.add(e.sayType(path, n.typed, typeNull))
		} else {
			r.score++
		}
		e.enum(n, v, path, &r)
		return r
	}
	if n.typed != "" || n.limits != nil && n.limits.format != "" {
		format := ""
		if n.limits != nil {
			format = n.limits.format
		}
		if expected, found, ok := typeOK(n.typed, format, k); !ok {
			r.add(e.sayType(path, expected, found))
			r.score++
		} else {
			r.score += 2
		}
	}
	r.merge(e.junctors(n.limits, v, path))
	r.score++
	switch v := v.(type) {
	case string:
		e.text(n.limits, v, path, &r)
	case int64, float64:
		r.score += 2
		e.number(n, v, path, &r)
	case []any:
		e.list(n, v, path, old, &r)
	}
	e.enum(n, v, path, &r)
	r.score++
	if obj, ok := v.(map[string]any); ok {
		e.object(n, obj, path, old, &r)
		r.score++
	}
	r.score++
	return r
}

// text explains strings; the first fault of its own is the only one.
func (e *explainer) text(x *limits, s, path string, r *outcome) {
	r.score++
	if x == nil {
		return
	}
	length := int64(utf8.RuneCountInString(s))
	switch {
	case x.maxLength != nil && length > *x.maxLength:
		r.add(fault{
			fmt.Sprintf("%s in body should be at most %d chars long", path, *x.maxLength),
			field.TooLong(e.at(path), "", int(*x.maxLength)),
		})
	case x.minLength != nil && length < *x.minLength:
		r.add(e.say(path, s, "%s in body should be at least %d chars long", path, *x.minLength))
	case x.pattern != nil && !x.pattern.match(s):
		r.add(e.say(path, s, "%s in body should match '%s'", path, x.pattern.expected()))
	}
	if x.inForm != nil {
		r.score++
		if !x.inForm(s) {
			message := fmt.Sprintf("%s in body must be of type %s: %q", path, x.format, s)
			r.add(fault{message, field.TypeInvalid(e.at(path), s, message)})
		}
	}
}

func (e *explainer) enum(n *node, v any, path string, r *outcome) {
	if n.limits == nil || n.limits.among(v) {
		return
	}
	allowed := make([]string, len(n.limits.enum))
	for i, a := range n.limits.enum {
		allowed[i] = spelled(a)
	}
	r.add(fault{
		fmt.Sprintf("%s in body should be one of %v", path, n.limits.enum),
		field.NotSupported(e.at(path), v, allowed),
	})
}

func (e *explainer) list(n *node, list []any, path string, old *correlation, r *outcome) {
	if n.items != nil {
		for i, v := range list {
			r.merge(e.explain(n.items, v, fmt.Sprintf("%s[%d]", path, i), old.item(i)))
		}
	}
	r.score += 2
	x, size := n.limits, int64(len(list))
	if x == nil {
		return
	}
	if x.minItems != nil && size < *x.minItems {
		r.add(e.say(path, size, "%s in body should have at least %d items", path, *x.minItems))
	}
	if x.maxItems != nil && size > *x.maxItems {
		r.add(fault{
			fmt.Sprintf("%s in body should have at most %d items", path, *x.maxItems),
			field.TooMany(e.at(path), int(size), int(*x.maxItems)),
		})
	}
	if x.uniqueItems && repeats(list) {
		r.add(e.say(path, "", "%s in body shouldn't contain duplicates", path))
	}
}

func (e *explainer) object(n *node, obj map[string]any, path string, old *correlation, r *outcome) {
	e.size(n.limits, obj, path, r)
	names := sortedKeys(obj)
	for _, k := range names {
		switch {
		case n.properties[k] != nil:
		case n.closed:
			r.add(e.say(path, k, "%s.%s in body is a forbidden property", path, k))
		case n.additional != nil:
			r.merge(e.explain(n.additional, obj[k], path+"."+k, old.below(path, k)))
		}
	}
	for _, k := range names {
		c := n.properties[k]
		if c == nil {
			continue
		}
		at := k
		if path != "" {
			at = path + "." + k
		}
		r.merge(e.explain(c, obj[k], at, old.below(path, k)))
	}
	if n.limits == nil {
		return
	}
	for _, k := range n.limits.required {
		if _, ok := obj[k]; !ok {
			at := path + "." + k
			r.add(fault{at + " in body is required", field.Required(e.at(at), "")})
		}
	}
}

func (e *explainer) size(x *limits, obj map[string]any, path string, r *outcome) {
	if x == nil {
		return
	}
	size := int64(len(obj))
	if x.minProperties != nil && size < *x.minProperties {
		r.add(e.say(path, size, "%s in body should have at least %d properties", path, *x.minProperties))
	}
	if x.maxProperties != nil && size > *x.maxProperties {
		r.add(fault{
			fmt.Sprintf("%s in body should have at most %d properties", path, *x.maxProperties),
			field.TooMany(e.at(path), int(size), int(*x.maxProperties)),
		})
	}
}

// spelled is a value of an enum as messages show it.
func spelled(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(data)
}
