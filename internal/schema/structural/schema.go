// Package structural compiles structural schemas and applies them to objects: it removes
// unknown fields, fills in defaults, and validates.
//
// It compiles the schema of a CustomResourceDefinition into an immutable tree of nodes, one
// for each place in an object. The package knows decoded objects. It does not know versions
// of a kind, expressions (CEL) or storage.
package structural

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Schema is a compiled structural schema. It is immutable, safe for concurrent use, and comparable:
// equal schemas behave equally. The zero value has only the fields of every object.
type Schema struct {
	root     *node
	preserve bool // fields that are not known stay, and defaults are not filled in
}

// Compile compiles a schema. It returns the first reason for which the schema does not compile;
// package check finds all errors. preserveUnknownFields turns off pruning as a whole.
func Compile(props *apiextensionsv1.JSONSchemaProps, preserveUnknownFields bool) (Schema, error) {
	root, err := compile(props)
	return Schema{root, preserveUnknownFields}, err
}

// Complete turns the object of a client into an object of the schema: it does the work of Prune and
// Default, and returns the paths of removed fields. The error is that of invalid metadata.
func (s Schema) Complete(obj map[string]any) (unknown []string, err error) {
	if err := checkMetadata(obj); err != nil {
		return nil, err
	}
	unknown = s.prune(obj)
	if s.root != nil && s.root.embeds {
		s.root.dropNulls(obj)
		if err := s.root.checkEmbedded(obj, nil); err != nil {
			return nil, err
		}
		unknown = s.root.coerceEmbedded(obj, unknown)
	}
	s.Default(obj)
	return unknown, nil
}

// CompleteMetadata is Complete for an object of another kind, with a schema that has only metadata.
func CompleteMetadata(obj map[string]any) (unknown []string, err error) {
	if err := checkMetadata(obj); err != nil {
		return nil, err
	}
	return coerceMetadata(obj, nil, nil), nil
}

// Prune removes unknown fields from obj and returns their paths: those of the metadata first, then of
// the fields, then of the metadata of embedded objects. Metadata fields that are not valid for
// ObjectMeta are removed as well.
func (s Schema) Prune(obj map[string]any) []string {
	removed := s.prune(obj)
	if s.root != nil && s.root.embeds {
		s.root.dropNulls(obj)
		removed = s.root.coerceEmbedded(obj, removed)
	}
	return removed
}

// prune is Prune except for the metadata of embedded objects.
func (s Schema) prune(obj map[string]any) []string {
	removed := coerceMetadata(obj, nil, nil)
	if !s.preserve {
		removed = s.root.pruneRoot(obj, removed)
	}
	return removed
}

// Default drops nulls where the schema does not allow them and fills in default
// values.
func (s Schema) Default(obj map[string]any) {
	if !s.preserve {
		s.root.fill(obj, false)
	}
}

// HasNulls reports whether obj has nulls that Default drops.
func (s Schema) HasNulls(obj map[string]any) bool { return !s.preserve && s.root.hasNulls(obj) }

// Fill sets default values and keeps nulls without a default, except in metadata, also that of
// embedded objects, which it brings into form.
func (s Schema) Fill(obj map[string]any) {
	coerceMetadata(obj, nil, nil)
	if !s.preserve {
		s.root.fill(obj, true)
	}
	// A wrong apiVersion or kind of an embedded object stays, so that validation reports it.
	_ = s.root.embeddedObjects(nil, obj, func(at *field.Path, embedded map[string]any) error {
		coerceMetadata(embedded, at, nil)
		return nil
	})
}
