package structural

import (
	"crypto/sha256"

	"github.com/anykind/anykind/internal/object/intern"
	"github.com/anykind/anykind/internal/schema/jsonschema"
)

// Shared compiles equal JSON schemas once, for all kinds. It holds only weak references. The zero
// value is ready for use; nil shares nothing.
type Shared struct {
	roots intern.Table[[sha256.Size]byte, node]
}

// Len returns the number of different schemas in use.
func (s *Shared) Len() int { return s.roots.Len() }

// Compile is Compile for the schema of source.
func (s *Shared) Compile(source *jsonschema.Source, preserveUnknownFields bool) (Schema, error) {
	root, err := s.root(source)
	return Schema{root, preserveUnknownFields}, err
}

// root returns the compiled schema. A missing schema has no constraints.
func (s *Shared) root(source *jsonschema.Source) (*node, error) {
	data, err := source.JSON()
	if err != nil {
		return nil, err
	}
	var sum [sha256.Size]byte
	if s != nil && len(data) > 0 {
		sum = sha256.Sum256(data)
		if n := s.roots.Get(sum); n != nil {
			return n, nil
		}
	}
	props, err := source.Props()
	if err != nil {
		return nil, err
	}
	n, err := compile(props)
	if s == nil || n == nil || err != nil {
		return n, err
	}
	return s.roots.Put(sum, n), nil
}
