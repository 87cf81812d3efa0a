// Package codec translates between bytes and objects: it negotiates media types, decodes
// request bodies, and writes objects, lists, tables and events.
//
// It knows media types, the wrappers that Kubernetes puts around objects (lists, Tables,
// PartialObjectMetadata, watch events, Status), and how to read and write an object as
// JSON, YAML or protobuf. It writes from stored bytes; only Table cells and protobuf need
// a decoded object.
//
// It does not know schemas, which resources are served, or how bytes travel.
package codec

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Media is a way to write an object as bytes.
type Media int

const (
	JSON Media = iota
	YAML
	// Protobuf is for what has a Go type: built-in kinds, the metadata of any
	// object, and a Status.
	Protobuf
	// CBOR is not spoken unless a server Offers it.
	CBOR
)

// mediaTypes are the names of all Media, in the order in which they are
// preferred when a client leaves the choice open. stream is what a watch in it is
// called where Kubernetes lists what it has; empty if there is none.
var mediaTypes = [...]struct {
	name, major, minor string
	stream             string
}{
	JSON:     {"application/json", "application", "json", "application/json;stream=watch"},
	YAML:     {"application/yaml", "application", "yaml", ""},
	Protobuf: {runtime.ContentTypeProtobuf, "application", "vnd.kubernetes.protobuf", runtime.ContentTypeProtobuf + ";stream=watch"},
	CBOR:     {runtime.ContentTypeCBOR, "application", "cbor", runtime.ContentTypeCBORSequence},
}

// String returns the media type as HTTP headers have it.
func (m Media) String() string { return mediaTypes[m].name }

// Render turns a compact JSON document into what the client asked for. It may
// return doc itself, with or without more after it. It does not make protobuf, for
// which more must be known than the document.
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
		panic("codec: a Status that is not JSON: " + err.Error()) // it has only strings and numbers
	}
	return append(dst, data...)
}

// RenderStatus is the document that answers a request with s.
func (f Format) RenderStatus(s metav1.Status) []byte {
	s.TypeMeta = statusType
	doc, err := f.RenderValue(&s)
	if err != nil {
		panic("codec: a Status that cannot be written: " + err.Error()) // it has only strings and numbers
	}
	return doc
}

// RenderValue is the document that answers a request with value.
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
