package jsonschema

import (
	"encoding/json"
	"fmt"
	"sync"
	"weak"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A Source decodes a schema in JSON on demand. It holds only weak references. Users at about the same
// time, as in the first write of a kind, share one decoded schema.
type Source struct {
	json func() ([]byte, error)

	mu   sync.Mutex // held while reading, so that it is done once
	read weak.Pointer[apiextensionsv1.JSONSchemaProps]
}

// NewSource returns a source of the JSON that a function returns: always the same, or nothing without
// a schema.
func NewSource(json func() ([]byte, error)) *Source { return &Source{json: json} }

// JSON returns the stored schema, or nothing if there is none.
func (s *Source) JSON() ([]byte, error) { return s.json() }

// Props returns the decoded schema, which is read-only, or nil if there is none.
func (s *Source) Props() (*apiextensionsv1.JSONSchemaProps, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if props := s.read.Value(); props != nil {
		return props, nil
	}
	data, err := s.json()
	if err != nil || len(data) == 0 {
		return nil, err
	}
	var props *apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(data, &props); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s.read = weak.Make(props)
	return props, nil
}
