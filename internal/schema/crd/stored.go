package crd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/conversion"
)

// decode decodes a stored CustomResourceDefinition without large fields that serving does not need:
// schemas, labels, managedFields, and annotations other than conversion rules.
func decode(data []byte) (*v1.CustomResourceDefinition, error) {
	small, err := object.Omit(nil, data, heavy)
	if err != nil {
		return nil, fmt.Errorf("cannot read the stored CustomResourceDefinition: %w", err)
	}
	crd := &v1.CustomResourceDefinition{}
	if err := json.Unmarshal(small, crd); err != nil {
		return nil, fmt.Errorf("cannot read the stored CustomResourceDefinition: %w", err)
	}
	return crd, nil
}

// heavy names the fields that decode passes over.
func heavy(path []string) bool {
	switch len(path) {
	case 2:
		return path[0] == "metadata" && slices.Contains([]string{"labels", "managedFields"}, path[1])
	case 3:
		if path[0] == "metadata" && path[1] == "annotations" {
			return path[2] != conversion.Annotation
		}
		return path[0] == "spec" && path[1] == "versions" && path[2] == "schema"
	default:
		return false
	}
}

// A source gives access to the schemas of a Definition: in the stored bytes, which the cache holds
// anyway. After a write without a change to the spec, the source moves to the new bytes, so that the
// old ones are freed.
type source struct{ data atomic.Pointer[[]byte] }

func newSource(data []byte) *source {
	s := &source{}
	s.data.Store(&data)
	return s
}

// schema returns the schema of one version in JSON. A version without one keeps all fields.
func (s *source) schema(version string) ([]byte, error) {
	var found []byte
	known := false
	err := object.Each(*s.data.Load(), []string{"spec", "versions"}, func(v []byte) error {
		name, err := object.Field(v, "name")
		if err != nil || string(name) != `"`+version+`"` {
			return err
		}
		known = true
		return object.Each(v, []string{"schema", "openAPIV3Schema"}, func(schema []byte) error {
			found = schema
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the stored schema of version %s: %w", version, err)
	}
	if !known {
		return nil, fmt.Errorf("the stored CustomResourceDefinition has no version %s", version)
	}
	return found, nil
}

// sameSpec reports whether an object has the spec of the source.
func (s *source) sameSpec(data []byte) bool {
	was, err := object.Field(*s.data.Load(), "spec")
	if err != nil {
		return false
	}
	is, err := object.Field(data, "spec")
	return err == nil && bytes.Equal(was, is)
}
