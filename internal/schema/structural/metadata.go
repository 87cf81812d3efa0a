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

// What ObjectMeta may hold does not depend on any schema. Metadata that is in
// form already, nearly all there is, is recognised by a walk; what is left goes
// through the Go type.

// checkMetadata says why the metadata of obj is none.
func checkMetadata(obj map[string]any) error {
	v, ok := obj["metadata"]
	if !ok || gotype.ObjectMeta().Canonical(v) {
		return nil
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(object.AppendJSON(nil, v), &metav1.ObjectMeta{})
}

// coerceMetadata brings the metadata of obj into form. Fields that no metadata
// has are dropped and their paths, below at, added to removed; fields of the
// wrong type are dropped silently, so that what is stored can be read.
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
			// Not even an object: nothing in it can be kept, but it is not for
			// us to say that there was nothing.
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

// coerceEmbedded brings the apiVersion, kind and metadata of the objects
// embedded in v into form, as coerceMetadata does. It is called with the whole
// object, whose own were brought into form before, when fields that are not known
// and nulls that may not be are gone.
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

// checkEmbedded says what is wrong with the apiVersion, kind or metadata of the
// first embedded object that is not one.
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

// embeddedObjects calls found for every embedded object in v, each before those
// inside it, until found fails.
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
