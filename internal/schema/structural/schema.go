// Package structural compiles structural schemas and applies them to objects: it removes
// unknown fields, fills in defaults, and validates.
//
// It compiles the schema of a CustomResourceDefinition into an immutable tree of nodes, one
// for each place in an object. The package knows decoded objects. It does not know versions
// of a kind, expressions (CEL) or storage.
package structural

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// A Schema is a compiled structural schema. It is immutable, and may be used
// concurrently and compared: schemas that are equal do the same. The zero value
// knows no fields but those that every object has.
type Schema struct {
	root     *node
	preserve bool // fields that are not known stay, and defaults are not filled in
}

// Compile compiles a schema. The error says why it is not one that can be compiled;
// package check finds all that is wrong with one. preserveUnknownFields turns pruning
// off as a whole.
func Compile(props *apiextensionsv1.JSONSchemaProps, preserveUnknownFields bool) (Schema, error) {
	root, err := compile(props)
	return Schema{root, preserveUnknownFields}, err
}

// Complete makes what a client sent into an object of the schema: it does what
// Prune and Default do, and returns the paths of what it removed. The error says
// what cannot be read at all: a metadata that is none.
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

// CompleteMetadata is Complete for an object of another kind, of which the schema says
// nothing but that it has metadata.
func CompleteMetadata(obj map[string]any) (unknown []string, err error) {
	if err := checkMetadata(obj); err != nil {
		return nil, err
	}
	return coerceMetadata(obj, nil, nil), nil
}

// Prune removes from obj what the schema does not know and returns the paths of
// what it removed: those of the metadata first, then of the fields, then of the
// metadata of embedded objects. A metadata that is not of the form of ObjectMeta
// loses the fields that are not.
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

// Fill fills in default values and leaves nulls that have none, but in metadata, of
// embedded objects too, which it brings into form.
func (s Schema) Fill(obj map[string]any) {
	coerceMetadata(obj, nil, nil)
	if !s.preserve {
		s.root.fill(obj, true)
	}
	if s.root != nil && s.root.embeds {
		s.root.coerceEmbedded(obj, nil)
	}
}
