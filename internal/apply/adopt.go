package apply

import (
	"bytes"
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// adopt returns t, which it does not change, with what managers own in versions
// that the kind no longer has as what they own in this one, where t has it. Nothing
// can be converted into those versions, and Kubernetes forgets who owned what.
func (f *Fields) adopt(t object.Tree) object.Tree {
	list, _ := object.Metadata(t)["managedFields"].([]any)
	if !slices.ContainsFunc(list, f.gone) {
		return t
	}
	out := make([]any, 0, len(list))
	for _, v := range list {
		e, ok := v.(object.Tree)
		if !ok {
			out = append(out, v)
			continue
		}
		if f.gone(v) {
			e = maps.Clone(e)
			e["apiVersion"], e["fieldsV1"] = f.apiVersion, encodeSet(within(decodeSet(e["fieldsV1"]), t))
		}
		out = join(out, e)
	}
	t = maps.Clone(t)
	metadata := maps.Clone(object.Metadata(t))
	metadata["managedFields"] = out
	t["metadata"] = metadata
	return t
}

// gone reports whether an entry of managedFields is in a version that the kind no
// longer has.
func (f *Fields) gone(entry any) bool {
	e, _ := entry.(object.Tree)
	apiVersion, _ := e["apiVersion"].(string)
	return apiVersion != "" && !slices.ContainsFunc(f.definition.Versions, func(v *resource.Version) bool {
		return f.definition.IsAPIVersion(apiVersion, v.Name)
	})
}

// join adds an entry to a list, or what it owns to the entry of the same manager
// that is there.
func join(list []any, e object.Tree) []any {
	i := slices.IndexFunc(list, func(v any) bool {
		other, _ := v.(object.Tree)
		for _, name := range []string{"manager", "operation", "subresource", "apiVersion"} {
			if !object.Equal(other[name], e[name]) {
				return false
			}
		}
		return other != nil
	})
	if i < 0 {
		return append(list, e)
	}
	both := maps.Clone(list[i].(object.Tree))
	both["fieldsV1"] = encodeSet(decodeSet(both["fieldsV1"]).Union(decodeSet(e["fieldsV1"])))
	list[i] = both
	return list
}

// decodeSet returns the set that fieldsV1 are. What is none has no field.
func decodeSet(fields any) *fieldpath.Set {
	if t, ok := fields.(object.Tree); ok {
		if set, err := parseSet(t); err == nil {
			return set
		}
	}
	return &fieldpath.Set{}
}

func parseSet(fields object.Tree) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	err := set.FromJSON(bytes.NewReader(object.AppendJSON(nil, fields)))
	return set, err
}

func encodeSet(set *fieldpath.Set) object.Tree {
	t := object.Tree{}
	if data, err := set.ToJSON(); err == nil {
		_ = kjson.UnmarshalCaseSensitivePreserveInts(data, &t) // a set is an object
	}
	return t
}

// within returns the fields of set that t has.
func within(set *fieldpath.Set, t object.Tree) *fieldpath.Set {
	out := &fieldpath.Set{}
	set.Iterate(func(p fieldpath.Path) {
		if has(t, p) {
			out.Insert(p.Copy())
		}
	})
	return out
}

func has(v any, p fieldpath.Path) bool {
	for i := range p {
		switch e := &p[i]; {
		case e.FieldName != nil:
			t, _ := v.(object.Tree)
			next, ok := t[*e.FieldName]
			if !ok {
				return false
			}
			v = next
		case e.Index != nil:
			list, _ := v.([]any)
			if *e.Index < 0 || *e.Index >= len(list) {
				return false
			}
			v = list[*e.Index]
		default:
			list, _ := v.([]any)
			at := slices.IndexFunc(list, func(item any) bool { return names(e, item) })
			if at < 0 {
				return false
			}
			v = list[at]
		}
	}
	return true
}

// names reports whether e means an item of a list, by its value or its keys.
func names(e *fieldpath.PathElement, item any) bool {
	if e.Value != nil {
		return value.Equals(*e.Value, value.NewValueInterface(item))
	}
	if e.Key == nil {
		return false
	}
	t, _ := item.(object.Tree)
	for _, key := range *e.Key {
		if got, ok := t[key.Name]; !ok || !value.Equals(key.Value, value.NewValueInterface(got)) {
			return false
		}
	}
	return true
}
