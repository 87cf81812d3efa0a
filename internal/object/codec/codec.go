// Package codec translates between bytes and objects: it negotiates media types, decodes request
// bodies, and encodes objects, lists, tables and events.
//
// It knows media types, the wrappers that Kubernetes puts around objects (lists, Tables,
// PartialObjectMetadata, watch events, Status), and JSON, YAML, CBOR and protobuf. It encodes
// from stored bytes; only Table cells and protobuf need a decoded object.
//
// It does not know schemas, the served resources, or HTTP connections.
package codec

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Media is an encoding of objects.
type Media int

const (
	JSON Media = iota
	YAML
	// Protobuf is for objects with a Go type: built-in kinds, the metadata of any object, and a
	// Status.
	Protobuf
	// CBOR is supported only if the server Offers it.
	CBOR
)

// mediaTypes has the names of all Media, in the order of preference if the client accepts
// several. stream is the name for watches in Kubernetes' errors; empty if there is none.
var mediaTypes = [...]struct {
	name, major, minor string
	stream             string
}{
	JSON:     {"application/json", "application", "json", "application/json;stream=watch"},
	YAML:     {"application/yaml", "application", "yaml", ""},
	Protobuf: {runtime.ContentTypeProtobuf, "application", "vnd.kubernetes.protobuf", runtime.ContentTypeProtobuf + ";stream=watch"},
	CBOR:     {runtime.ContentTypeCBOR, "application", "cbor", runtime.ContentTypeCBORSequence},
}

// String returns the media type for HTTP headers.
func (m Media) String() string { return mediaTypes[m].name }

// Render converts a compact JSON document to the Format. It may return doc itself, possibly
// extended. It does not produce protobuf, which needs more than the document.
func (f Format) Render(doc []byte) ([]byte, error) {
	switch {
	case f.Media == YAML:
		return yaml.JSONToYAML(doc)
	case f.Media == CBOR:
		return ToCBOR(doc)
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

var statusType = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}

// AppendStatus appends a Status as JSON.
func AppendStatus(dst []byte, s metav1.Status) []byte {
	s.TypeMeta = statusType
	data, err := json.Marshal(&s)
	if err != nil {
		panic("codec: a Status that is not JSON: " + err.Error()) // It has only strings and numbers.
	}
	return append(dst, data...)
}

// RenderStatus returns s as the document of an answer.
func (f Format) RenderStatus(s metav1.Status) []byte {
	s.TypeMeta = statusType
	doc, err := f.RenderValue(&s)
	if err != nil {
		panic("codec: a Status that cannot be written: " + err.Error()) // It has only strings and numbers.
	}
	return doc
}

// RenderValue returns value as the document of an answer.
func (f Format) RenderValue(value runtime.Object) ([]byte, error) {
	if f.Media == Protobuf {
		return wrappedOf(value)
	}
	doc, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return f.Render(doc)
}
