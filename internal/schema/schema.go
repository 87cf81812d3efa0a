// Package schema decides what an object of a kind may be and what becomes of
// what is sent: which fields are dropped, which are filled in, and how the kind
// is published to clients.
//
// A schema goes in, as a CustomResourceDefinition states it or as a Go type
// implies it, and an immutable program comes out. The program is made when it
// is first needed and can be dropped and made again. The package does not know
// HTTP, storage, versions of one kind or expressions (CEL).
package schema

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// A Schema is the schema of one version of a kind. It may be used concurrently.
type Schema struct {
	compile func() (*program, error)
	model   func() (resource.Model, error)

	current atomic.Pointer[program]
	used    atomic.Bool // since the last DropIdle
	mu      sync.Mutex  // held while compiling, so that it is done once
}

var _ resource.Schema = (*Schema)(nil)

// A program is a compiled schema.
type program struct {
	root *node
	kind Kind
	// typ is the Go type of a built-in kind, nil for a custom resource.
	typ *goType
}

// Kind names what a schema of a custom resource is the schema of.
type Kind struct {
	Group    string
	Version  string
	Kind     string
	ListKind string
	Plural   string
	// SelectableFields are the JSON paths that the version declares, published
	// beside the schema.
	SelectableFields []string
	// PreserveUnknownFields turns pruning off as a whole, for definitions that
	// were made before v1 required schemas.
	PreserveUnknownFields bool
}

// isNot reports whether obj says that it is of another kind or group.
func (k Kind) isNot(obj map[string]any) bool {
	kind := object.Kind(obj)
	group, _, _ := strings.Cut(object.APIVersion(obj), "/")
	return kind != "" && kind != k.Kind || group != "" && group != k.Group
}

// Parse compiles the schema of one version of a custom resource. The error says
// why props is not a schema that can be compiled; Check finds all that is wrong
// with one.
func Parse(props *apiextensionsv1.JSONSchemaProps, kind Kind) (*Schema, error) {
	s := Lazy(func() (*apiextensionsv1.JSONSchemaProps, error) { return props, nil }, kind)
	if _, err := s.program(); err != nil {
		return nil, err
	}
	return s, nil
}

// Lazy returns the schema that source will give once somebody needs it. Source
// is called again after a Drop, and for the Model; what it returns is not kept.
// It must have passed Check.
func Lazy(source func() (*apiextensionsv1.JSONSchemaProps, error), kind Kind) *Schema {
	root := func() (*node, error) {
		props, err := source()
		if err != nil {
			return nil, err
		}
		return compile(props)
	}
	return lazy(kind, root, source)
}

func lazy(kind Kind, root func() (*node, error), source func() (*apiextensionsv1.JSONSchemaProps, error)) *Schema {
	return &Schema{
		compile: func() (*program, error) {
			n, err := root()
			if err != nil {
				return nil, err
			}
			return &program{root: n, kind: kind}, nil
		},
		model: func() (resource.Model, error) {
			props, err := source()
			if err != nil {
				return resource.Model{}, err
			}
			return customModel(props, kind), nil
		},
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

// must is program for methods that have no error to return. What can fail was
// checked before the definition was stored, so a failure is damage to the store.
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

// DropIdle forgets the program if nobody has used it since the last call.
func (s *Schema) DropIdle() {
	if !s.used.Swap(false) {
		s.Drop()
	}
}

// Compiled reports whether a program is kept.
func (s *Schema) Compiled() bool { return s.current.Load() != nil }

// Complete makes what a client sent into an object of the schema. It says first
// what cannot be read at all: a metadata that is none, or, for a built-in kind,
// any field of another type than the Go type has. Then it does what Prune and
// Default do. An object that says that it is of another kind is wrong for that, so
// that only its metadata is looked at. The error is the Status of a bad request. obj
// may be changed and is not to be used any more.
func (s *Schema) Complete(obj map[string]any) (out map[string]any, unknown []string, err error) {
	p := s.must()
	if p.typ != nil {
		unknown = p.root.prune(obj)
		out, err = p.typ.coerce(obj, p.kind)
		return out, unknown, err
	}
	if err := checkMetadata(obj); err != nil {
		return nil, nil, notOfKind(p.kind, err)
	}
	if p.kind.isNot(obj) {
		return obj, coerceMetadata(obj, nil, nil), nil
	}
	unknown = p.prune(obj)
	if p.root != nil && p.root.embeds {
		p.root.dropNulls(obj)
		if err := p.root.checkEmbedded(obj, nil); err != nil {
			return nil, nil, notOfKind(p.kind, err)
		}
		unknown = p.root.coerceEmbedded(obj, unknown)
	}
	s.Default(obj)
	return obj, unknown, nil
}

// Prune removes from obj what the schema does not know and returns the paths of
// what it removed. For a custom resource those are of the metadata first, then
// of the fields, then of the metadata of embedded objects; a metadata that is
// not of the form of ObjectMeta loses the fields that are not.
func (s *Schema) Prune(obj map[string]any) []string {
	p := s.must()
	if p.typ != nil {
		return p.root.prune(obj)
	}
	removed := p.prune(obj)
	if p.root != nil && p.root.embeds {
		p.root.dropNulls(obj)
		removed = p.root.coerceEmbedded(obj, removed)
	}
	return removed
}

// prune prunes a custom resource except for the metadata of embedded objects.
func (p *program) prune(obj map[string]any) []string {
	removed := coerceMetadata(obj, nil, nil)
	if !p.kind.PreserveUnknownFields {
		removed = p.root.pruneRoot(obj, removed)
	}
	return removed
}

// Default drops nulls where the schema does not allow them and fills in default
// values.
func (s *Schema) Default(obj map[string]any) {
	if p := s.must(); p.typ == nil && !p.kind.PreserveUnknownFields {
		p.root.fill(obj, false)
	}
}

// Fill fills in default values and leaves nulls that have none.
func (s *Schema) Fill(obj map[string]any) {
	if p := s.must(); p.typ == nil && !p.kind.PreserveUnknownFields {
		p.root.fill(obj, true)
	}
}

// Model returns the schema as OpenAPI v3 publishes it.
func (s *Schema) Model() resource.Model {
	m, err := s.model()
	if err != nil {
		panic(fmt.Errorf("schema: a stored schema cannot be read any more: %w", err))
	}
	return m
}
