package schema

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/object/view"
	"github.com/anykind/anykind/internal/schema/gotype"
	"github.com/anykind/anykind/internal/schema/jsonschema"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/schema/structural"
)

// A Schema is the schema of one version of a kind. It may be used concurrently.
type Schema struct {
	compile func() (*program, error)
	model   func() (view.Model, error)

	current atomic.Pointer[program]
	used    atomic.Bool // since the last DropIdle
	mu      sync.Mutex  // held while compiling, so that it is done once
}

var _ resource.Schema = (*Schema)(nil)

// A program is a compiled schema.
type program struct {
	kind model.Kind
	// structural is the schema of a custom resource.
	structural structural.Schema
	// typ is the Go type of a built-in kind, nil for a custom resource, and fields are its fields.
	typ    *gotype.Type
	fields structural.TypeFields
	// renamed are the packages of the names in errors.
	renamed model.Renamed
}

// isNot reports whether obj has another kind or group than k.
func isNot(k model.Kind, obj map[string]any) bool {
	kind := object.Kind(obj)
	group, _, _ := strings.Cut(object.APIVersion(obj), "/")
	return kind != "" && kind != k.Kind || group != "" && group != k.Group
}

// Parse compiles the schema of one version of a custom resource. It returns the first reason for which
// props does not compile; package check finds all errors.
func Parse(props *apiextensionsv1.JSONSchemaProps, kind model.Kind) (*Schema, error) {
	s := Lazy(func() (*apiextensionsv1.JSONSchemaProps, error) { return props, nil }, kind)
	if _, err := s.program(); err != nil {
		return nil, err
	}
	return s, nil
}

// Lazy returns the schema that source returns, at the first use. Source is called again after a Drop,
// and for the Model; its result is not kept. It must have passed package check.
func Lazy(source func() (*apiextensionsv1.JSONSchemaProps, error), kind model.Kind) *Schema {
	compile := func() (structural.Schema, error) {
		props, err := source()
		if err != nil {
			return structural.Schema{}, err
		}
		return structural.Compile(props, kind.PreserveUnknownFields)
	}
	return lazy(kind, compile, source)
}

// Stored is Lazy for a schema in JSON. Schemas of the same JSON share the compiled form.
func Stored(source *jsonschema.Source, kind model.Kind, shared *structural.Shared) *Schema {
	compile := func() (structural.Schema, error) { return shared.Compile(source, kind.PreserveUnknownFields) }
	return lazy(kind, compile, source.Props)
}

func lazy(kind model.Kind, compile func() (structural.Schema, error), source func() (*apiextensionsv1.JSONSchemaProps, error)) *Schema {
	return &Schema{
		compile: func() (*program, error) {
			s, err := compile()
			if err != nil {
				return nil, err
			}
			return &program{structural: s, kind: kind}, nil
		},
		model: func() (view.Model, error) {
			props, err := source()
			if err != nil {
				return view.Model{}, err
			}
			return model.Custom(props, kind), nil
		},
	}
}

// FromType returns the schema of a kind whose objects have a Go type.
//
// Such a schema neither fills in defaults nor validates: both are code, in the
// hooks of the kind. Its Complete does what decoding into the type does.
func FromType(t reflect.Type, o model.TypeOptions) *Schema {
	return &Schema{
		compile: func() (*program, error) {
			typ := gotype.Of(t)
			return &program{kind: o.Kind, typ: typ, fields: structural.OfType(typ), renamed: o.Package}, nil
		},
		model: func() (view.Model, error) { return model.OfType(t, o), nil },
	}
}

// program returns the compiled schema and compiles it if need be.
func (s *Schema) program() (*program, error) {
	if !s.used.Load() {
		s.used.Store(true)
	}
	if p := s.current.Load(); p != nil {
		return p, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.current.Load(); p != nil {
		return p, nil
	}
	p, err := s.compile()
	if err != nil {
		return nil, err
	}
	s.current.Store(p)
	return p, nil
}

// must returns program for methods without an error result. The schema was checked before it was
// stored, so an error means a damaged store.
func (s *Schema) must() *program {
	p, err := s.program()
	if err != nil {
		panic(fmt.Errorf("schema: a stored schema does not compile any more: %w", err))
	}
	return p
}

// Drop forgets the compiled program. The next use compiles it again; uses under
// way are not disturbed.
func (s *Schema) Drop() { s.current.Store(nil) }

// DropIdle drops the program if it was not used since the last call.
func (s *Schema) DropIdle() {
	if !s.used.Swap(false) {
		s.Drop()
	}
}

// Compiled reports whether a program is in memory.
func (s *Schema) Compiled() bool { return s.current.Load() != nil }

// Shape is equal for schemas of custom resources that share a program. It keeps the program in memory.
func (s *Schema) Shape() any {
	p := s.must()
	if p.typ != nil {
		return p
	}
	return p.structural
}

// Complete turns the object of a client into an object of the schema, as Prune and Default do. Its
// errors are Statuses of bad requests: invalid metadata or, for a built-in kind, a field of another
// type than that of the Go type. For an object of another kind it checks only the metadata. obj may be
// changed, and must not be used any more.
func (s *Schema) Complete(obj map[string]any) (out map[string]any, unknown []string, err error) {
	p := s.must()
	if p.typ != nil {
		return p.decode(obj, p.typ.Coerce)
	}
	complete := p.structural.Complete
	if isNot(p.kind, obj) {
		complete = structural.CompleteMetadata
	}
	if unknown, err = complete(obj); err != nil {
		return nil, nil, notOfKind(p.kind, p.renamed.Error(err))
	}
	return obj, unknown, nil
}

// decode brings obj into the form of its Go type, in one of two ways. Most objects have that form, or
// nearly, and then no field is unknown.
func (p *program) decode(obj map[string]any, as func(map[string]any) (map[string]any, error)) (out map[string]any, unknown []string, err error) {
	if p.typ.Fits(obj) {
		return obj, nil, nil
	}
	unknown = p.fields.Prune(obj)
	if out, err = as(obj); err != nil {
		return nil, unknown, notOfKind(p.kind, p.renamed.Error(err))
	}
	return out, unknown, nil
}

// notOfKind returns the error for an object that cannot be decoded as the kind.
func notOfKind(kind model.Kind, err error) error {
	return &status.Undecodable{Kind: runtimeschema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}, Expected: kind.Kind, Err: err}
}

// Prune removes unknown fields from obj and returns their paths. For a custom resource the order is:
// the metadata, the fields, the metadata of embedded objects. Metadata fields that are not valid for
// ObjectMeta are removed as well.
func (s *Schema) Prune(obj map[string]any) []string {
	p := s.must()
	if p.typ != nil {
		return p.fields.Prune(obj)
	}
	return p.structural.Prune(obj)
}

// The following methods do nothing for objects of a Go type: its structural schema is empty.

// Default drops nulls where the schema does not allow them and fills in default
// values.
func (s *Schema) Default(obj map[string]any) { s.must().structural.Default(obj) }

// Fill sets default values and keeps nulls without a default. It brings metadata into form.
func (s *Schema) Fill(obj map[string]any) { s.must().structural.Fill(obj) }

// HasNulls reports whether obj has nulls that Default drops.
func (s *Schema) HasNulls(obj map[string]any) bool { return s.must().structural.HasNulls(obj) }

// Validate returns all errors of obj, a whole object after Complete or Default. old is the replaced
// object, or nil: errors of unchanged values are not reported.
func (s *Schema) Validate(ctx context.Context, obj, old map[string]any) field.ErrorList {
	return s.must().structural.Validate(ctx, obj, old)
}

// ValidateStatus is Validate for a write of the status alone; obj is the whole result.
func (s *Schema) ValidateStatus(_ context.Context, obj, old map[string]any) field.ErrorList {
	return s.must().structural.ValidateStatus(obj, old)
}

// ValidateValues is the part of Validate for single values.
func (s *Schema) ValidateValues(obj, old map[string]any) field.ErrorList {
	return s.must().structural.ValidateValues(obj, old)
}

// ValidateStatusValues is the part of ValidateStatus for single values.
func (s *Schema) ValidateStatusValues(obj, old map[string]any) field.ErrorList {
	return s.must().structural.ValidateStatusValues(obj, old)
}

// ValidateParts is the part of Validate for embedded objects and unique elements of lists.
func (s *Schema) ValidateParts(ctx context.Context, obj, old map[string]any) field.ErrorList {
	return s.must().structural.ValidateParts(ctx, obj, old)
}

// ValidateLists is the part of Validate for unique elements of lists.
func (s *Schema) ValidateLists(obj, old map[string]any) field.ErrorList {
	return s.must().structural.ValidateLists(obj, old)
}

// Model returns the schema as OpenAPI v3 publishes it.
func (s *Schema) Model() view.Model {
	m, err := s.model()
	if err != nil {
		panic(fmt.Errorf("schema: a stored schema cannot be read any more: %w", err))
	}
	return m
}
