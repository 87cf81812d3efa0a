package schema

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/intern"
)

// Shared lets schemas that are the same JSON share one program, whatever kinds
// they are of. It keeps nothing alive. The zero value is ready; nil shares nothing.
type Shared struct {
	roots intern.Table[[sha256.Size]byte, node]
}

// Len is how many different programs are in use.
func (s *Shared) Len() int { return s.roots.Len() }

// root returns the program of a schema in JSON. None is a schema that says
// nothing.
func (s *Shared) root(data []byte) (*node, error) {
	if s == nil || len(data) == 0 {
		return compileJSON(data)
	}
	sum := sha256.Sum256(data)
	if n := s.roots.Get(sum); n != nil {
		return n, nil
	}
	n, err := compileJSON(data)
	if n == nil || err != nil {
		return nil, err
	}
	return s.roots.Put(sum, n), nil
}

func compileJSON(data []byte) (*node, error) {
	props, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	return compile(props)
}

// parseJSON reads a schema. It is nil where there is none.
func parseJSON(data []byte) (*apiextensionsv1.JSONSchemaProps, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var props *apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(data, &props); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return props, nil
}

// Stored is Lazy for a schema in JSON, which source returns, or nothing where
// there is none. What is compiled of it is shared with others of the same JSON.
func Stored(source func() ([]byte, error), kind Kind, shared *Shared) *Schema {
	return lazy(kind,
		func() (*node, error) {
			data, err := source()
			if err != nil {
				return nil, err
			}
			return shared.root(data)
		},
		Parsed(source))
}

// shape is what Shape returns.
type shape struct {
	root     *node
	preserve bool
}

// Shape is equal for schemas of custom resources that share a program. It keeps the
// program alive.
func (s *Schema) Shape() any {
	p := s.must()
	if p.typ != nil {
		return p
	}
	return shape{p.root, p.kind.PreserveUnknownFields}
}

// Parsed returns a source that reads the JSON of another.
func Parsed(source func() ([]byte, error)) func() (*apiextensionsv1.JSONSchemaProps, error) {
	return func() (*apiextensionsv1.JSONSchemaProps, error) {
		data, err := source()
		if err != nil {
			return nil, err
		}
		return parseJSON(data)
	}
}
