package structural

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/gotype"
)

// The valid form of ObjectMeta does not depend on any schema. A fast check recognizes metadata in that
// form, nearly all there is; other metadata goes through the Go type.

// checkMetadata returns the error of decoding the metadata of obj.
func checkMetadata(obj map[string]any) error {
	v, ok := obj["metadata"]
	if !ok || gotype.ObjectMeta().Canonical(v) {
		return nil
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(object.AppendJSON(nil, v), &metav1.ObjectMeta{})
}

// coerceMetadata brings the metadata of obj into form. It drops unknown fields and appends their
// paths, below at, to removed. It drops fields of the wrong type silently, so that stored objects stay
// readable.
func coerceMetadata(obj map[string]any, at *field.Path, removed []string) []string {
	v, ok := obj["metadata"]
	if !ok || gotype.ObjectMeta().Canonical(v) {
		return removed
	}
	prefix := at.Child("metadata").String() + "."
	meta := &metav1.ObjectMeta{}
	unknown, err := kjson.UnmarshalStrict(object.AppendJSON(nil, v), meta)
	if err != nil {
		fields, ok := v.(map[string]any)
		if !ok {
			// Not even an object: nothing in it can be kept, but it must not look like missing
			// metadata.
			return removed
		}
		meta, unknown = readableFields(fields)
	}
	for _, err := range unknown {
		var at kjson.FieldError
		if errors.As(err, &at) {
			removed = append(removed, prefix+at.FieldPath())
		}
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(meta)
	if err == nil {
		obj["metadata"] = tree
	}
	return removed
}

// readableFields returns what of a malformed metadata is well formed, field by
// field.
func readableFields(fields map[string]any) (*metav1.ObjectMeta, []error) {
	meta := &metav1.ObjectMeta{}
	var unknown []error
	for k, v := range fields {
		one := object.AppendJSON(nil, map[string]any{k: v})
		// Reading a field that fails may leave half of it behind.
		if kjson.UnmarshalCaseSensitivePreserveInts(one, &metav1.ObjectMeta{}) != nil {
			continue
		}
		strict, _ := kjson.UnmarshalStrict(one, meta)
		unknown = append(unknown, strict...)
	}
	return meta, unknown
}

// coerceEmbedded brings the apiVersion, kind and metadata of the objects embedded in v into form, as
// coerceMetadata does. It takes the whole object, after its own metadata is in form, and after unknown
// fields and invalid nulls are dropped.
func (n *node) coerceEmbedded(v any, removed []string) []string {
	had := len(removed)
	removed = n.coerceAt(nil, v, removed)
	slices.Sort(removed[had:])
	return removed
}

func (n *node) coerceAt(at *field.Path, v any, removed []string) []string {
	n.embeddedObjects(at, v, func(at *field.Path, obj map[string]any) error {
		for _, k := range []string{"apiVersion", "kind"} {
			if v, ok := obj[k]; ok {
				if _, ok := v.(string); !ok {
					delete(obj, k)
				}
			}
		}
		removed = coerceMetadata(obj, at, removed)
		return nil
	})
	return removed
}

// checkEmbedded returns the error of the apiVersion, kind or metadata of the first invalid embedded
// object.
func (n *node) checkEmbedded(v any, at *field.Path) error {
	return n.embeddedObjects(at, v, func(at *field.Path, obj map[string]any) error {
		for _, k := range []string{"apiVersion", "kind"} {
			if v, ok := obj[k]; ok {
				if _, ok := v.(string); !ok {
					return field.Invalid(at.Child(k), v, "must be a string")
				}
			}
		}
		if err := checkMetadata(obj); err != nil {
			return field.Invalid(at.Child("metadata"), obj["metadata"], err.Error())
		}
		return nil
	})
}

// embeddedObjects calls found for every embedded object in v, outer ones first, until found fails.
func (n *node) embeddedObjects(at *field.Path, v any, found func(*field.Path, map[string]any) error) error {
	if n == nil || !n.embeds {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		if n.embedded {
			if err := found(at, v); err != nil {
				return err
			}
		}
		for _, k := range sortedKeys(v) {
			c, below := n.properties[k], at.Child
			if c == nil {
				c, below = n.additional, func(name string, _ ...string) *field.Path { return at.Key(name) }
			}
			if c == nil || !c.embeds || scalar(v[k]) {
				continue
			}
			if err := c.embeddedObjects(below(k), v[k], found); err != nil {
				return err
			}
		}
	case []any:
		if n.items == nil || !n.items.embeds {
			return nil
		}
		for i, e := range v {
			if err := n.items.embeddedObjects(at.Index(i), e, found); err != nil {
				return err
			}
		}
	}
	return nil
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
