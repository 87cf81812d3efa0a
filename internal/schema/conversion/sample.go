package conversion

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
)

// A Sampler makes random objects of a schema. Strings with a pattern or a format are left out, unless the
// schema has an enum, a default or an example of them.
type Sampler struct{ Rand *rand.Rand }

// Object returns an object of a version.
func (s *Sampler) Object(apiVersion, kind string, schema *v1.JSONSchemaProps) object.Tree {
	t, _ := s.value(schema, 0).(object.Tree)
	if t == nil {
		t = object.Tree{}
	}
	t["apiVersion"], t["kind"], t["metadata"] = apiVersion, kind, object.Tree{"name": "sample"}
	return t
}

func (s *Sampler) value(schema *v1.JSONSchemaProps, depth int) any {
	if len(schema.Enum) > 0 {
		return decoded(schema.Enum[s.Rand.IntN(len(schema.Enum))].Raw)
	}
	switch k := kindOf(schema); k {
	case text:
		return s.text(schema)
	case integer, number:
		return s.number(schema, k)
	case boolean:
		return s.Rand.IntN(2) == 0
	case fields:
		out := object.Tree{}
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			if depth == 0 && name == "metadata" {
				continue
			}
			of := schema.Properties[name]
			if !slices.Contains(schema.Required, name) && s.Rand.IntN(4) == 0 {
				continue
			}
			if v := s.value(&of, depth+1); v != nothing {
				out[name] = v
			}
		}
		return out
	case list:
		return s.list(schema, depth)
	case table:
		return s.table(schema, depth)
	default:
		if schema.XIntOrString {
			return int64(s.Rand.IntN(100))
		}
		return nothing
	}
}

func (s *Sampler) text(schema *v1.JSONSchemaProps) any {
	if schema.Pattern != "" || schema.Format != "" {
		for _, known := range []*v1.JSON{schema.Default, schema.Example} {
			if known != nil {
				return decoded(known.Raw)
			}
		}
		return nothing
	}
	n := 1 + s.Rand.IntN(8)
	if schema.MinLength != nil {
		n = max(n, int(*schema.MinLength))
	}
	if schema.MaxLength != nil {
		n = min(n, int(*schema.MaxLength))
	}
	out := make([]byte, n)
	for i := range out {
		out[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[s.Rand.IntN(36)]
	}
	return string(out)
}

func (s *Sampler) number(schema *v1.JSONSchemaProps, k kind) any {
	low, high := 0.0, 100_000.0
	if schema.Minimum != nil {
		low = *schema.Minimum
		high = max(high, low+1000)
	}
	if schema.Maximum != nil {
		high = *schema.Maximum
		low = min(low, high)
	}
	f := low + s.Rand.Float64()*(high-low)
	if k == integer || s.Rand.IntN(2) == 0 {
		return int64(f)
	}
	return f
}

// list returns a list whose elements are different, as sets and maps need.
func (s *Sampler) list(schema *v1.JSONSchemaProps, depth int) any {
	out := []any{}
	if itemsOf(schema) == nil || depth > 12 {
		return out
	}
	low, high := int64(0), int64(3)
	if schema.MinItems != nil {
		low = *schema.MinItems
		high = max(high, low)
	}
	if schema.MaxItems != nil {
		high = min(high, *schema.MaxItems)
	}
	seen := map[string]bool{}
	for n := low + s.Rand.Int64N(high-low+1); n > 0; n-- {
		e := s.value(schema.Items.Schema, depth+1)
		if e == nothing {
			break
		}
		key := string(object.AppendJSON(nil, e))
		if t, ok := e.(object.Tree); ok && len(schema.XListMapKeys) > 0 {
			key = ""
			for _, name := range schema.XListMapKeys {
				key += string(object.AppendJSON(nil, t[name]))
			}
		}
		if !seen[key] {
			out = append(out, e)
		}
		seen[key] = true
	}
	return out
}

func (s *Sampler) table(schema *v1.JSONSchemaProps, depth int) any {
	out := object.Tree{}
	of := schema.AdditionalProperties
	if of == nil || of.Schema == nil || depth > 12 {
		return out
	}
	for range s.Rand.IntN(3) {
		if v := s.value(of.Schema, depth+1); v != nothing {
			out[fmt.Sprintf("key%d", s.Rand.IntN(20))] = v
		}
	}
	return out
}

func decoded(raw []byte) any {
	var v any
	if kjson.UnmarshalCaseSensitivePreserveInts(raw, &v) != nil {
		return nothing
	}
	return v
}

// RoundTrip converts an object to a version and back. It returns the result, and nil if the object has a
// value that the rules do not allow.
func (c *Converter) RoundTrip(ctx context.Context, t object.Tree, version string) (back object.Tree, err error) {
	from := versionOf(object.APIVersion(t), c.group)
	back = object.CloneTree(t)
	if err := c.Convert(ctx, back, version); err != nil {
		return nil, err
	}
	if err := c.Convert(ctx, back, from); err != nil {
		return nil, err
	}
	return back, nil
}

// Lost returns the first field whose value two objects do not share. Rules may add and remove empty
// objects and lists.
func Lost(a, b object.Tree) (at string, was, is any) {
	at, was, is, _ = lost("", a, b)
	return strings.TrimPrefix(at, "."), was, is
}

func lost(at string, a, b any) (where string, was, is any, found bool) {
	if hollow(a) && hollow(b) || object.Equal(a, b) {
		return "", nil, nil, false
	}
	x, ok1 := a.(object.Tree)
	y, ok2 := b.(object.Tree)
	if ok1 && (ok2 || b == nil) || ok2 && a == nil {
		for _, name := range slices.Sorted(maps.Keys(union(x, y))) {
			if where, was, is, found := lost(at+"."+name, x[name], y[name]); found {
				return where, was, is, true
			}
		}
		return "", nil, nil, false
	}
	p, ok1 := a.([]any)
	q, ok2 := b.([]any)
	if ok1 && ok2 && len(p) == len(q) {
		for i := range p {
			if where, was, is, found := lost(fmt.Sprintf("%s[%d]", at, i), p[i], q[i]); found {
				return where, was, is, true
			}
		}
		return "", nil, nil, false
	}
	return at, a, b, true
}

func union(a, b object.Tree) object.Tree {
	out := maps.Clone(a)
	if out == nil {
		out = object.Tree{}
	}
	maps.Copy(out, b)
	return out
}

// hollow reports whether a value has no content.
func hollow(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case object.Tree:
		for _, e := range v {
			if !hollow(e) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}
