package schema

import (
	"crypto/sha256"

	"github.com/anykind/anykind/internal/intern"
)

// Shared lets schemas that are the same JSON share one program, whatever kinds
// they are of. It keeps nothing alive. The zero value is ready; nil shares nothing.
type Shared struct {
	roots intern.Table[[sha256.Size]byte, node]
}

// Len is how many different programs are in use.
func (s *Shared) Len() int { return s.roots.Len() }

// root returns the program of a schema. None is a schema that says nothing.
func (s *Shared) root(source *Source) (*node, error) {
	data, err := source.json()
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

// Stored is Lazy for a schema in JSON. What is compiled of it is shared with others
// of the same JSON.
func Stored(source *Source, kind Kind, shared *Shared) *Schema {
	return lazy(kind, func() (*node, error) { return shared.root(source) }, source.Props)
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
