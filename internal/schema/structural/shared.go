package structural

import (
	"crypto/sha256"

	"github.com/anykind/anykind/internal/object/intern"
	"github.com/anykind/anykind/internal/schema/jsonschema"
)

// Shared compiles schemas that are the same JSON once, whatever kinds they are of.
// It keeps nothing alive. The zero value is ready; nil shares nothing.
type Shared struct {
	roots intern.Table[[sha256.Size]byte, node]
}

// Len is how many different schemas are in use.
func (s *Shared) Len() int { return s.roots.Len() }

// Compile is Compile for what is in source.
func (s *Shared) Compile(source *jsonschema.Source, preserveUnknownFields bool) (Schema, error) {
	root, err := s.root(source)
	return Schema{root, preserveUnknownFields}, err
}

// root returns the compiled schema. None is a schema that says nothing.
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
