// Package codec is the border between bytes and objects: what a client asks to
// be answered in, what it sends, and how objects, lists, tables and events are
// written.
//
// It knows media types, the wrappers that Kubernetes puts around objects (lists,
// Tables, PartialObjectMetadata, watch events, Status) and how to take an object
// from JSON or YAML and put it back. Whatever it writes is made from bytes that
// already exist; only a Table cell needs a decoded object.
//
// It does not know what is served, what a schema is, or how bytes travel.
package codec

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
)

// Media is a way to write an object as bytes.
type Media int

const (
	JSON Media = iota
	YAML
	// Protobuf is read, of kinds that have a Go type, and not written yet.
	Protobuf
)

// mediaTypes are the names of all Media, in the order in which they are
// preferred when a client leaves the choice open.
var mediaTypes = [...]struct {
	name, major, minor string
	streams            bool
}{
	JSON: {"application/json", "application", "json", true},
	YAML: {"application/yaml", "application", "yaml", false},
}

// String returns the media type as HTTP headers have it.
func (m Media) String() string { return mediaTypes[m].name }

// Render turns a compact JSON document into what the client asked for. It may
// return doc itself, with or without more after it.
func (f Format) Render(doc []byte) ([]byte, error) {
	switch {
	case f.Media == YAML:
		return yaml.JSONToYAML(doc)
	case f.Pretty:
		var out bytes.Buffer
		out.Grow(len(doc) * 2)
		if err := json.Indent(&out, doc, "", "  "); err != nil {
			return nil, err
		}
		return out.Bytes(), nil
	default:
		return append(doc, '\n'), nil
	}
}

// AppendStatus appends a Status as JSON.
func AppendStatus(dst []byte, s metav1.Status) []byte {
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	data, err := json.Marshal(&s)
	if err != nil {
		panic("codec: a Status that is not JSON: " + err.Error()) // it has only strings and numbers
	}
	return append(dst, data...)
}

// RenderStatus is the document that answers a request with s.
func (f Format) RenderStatus(s metav1.Status) []byte {
	doc := AppendStatus(nil, s)
	if out, err := f.Render(doc); err == nil {
		return out
	}
	return doc
}

// RenderTree is the document that answers a request with t.
func (f Format) RenderTree(t object.Tree) ([]byte, error) {
	return f.Render(object.AppendJSON(nil, t))
}
