package codec

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/protobuf"
)

// protobufMagic is the prefix of Kubernetes' protobuf documents.
var protobufMagic = []byte("k8s\x00")

// envelope decodes the wrapper of a protobuf document.
func envelope(data []byte) (runtime.Unknown, error) {
	var u runtime.Unknown
	rest, ok := bytes.CutPrefix(data, protobufMagic)
	switch {
	case len(data) == 0:
		return u, errors.New("empty data")
	case ok && len(rest) == 0:
		return u, errors.New("empty body")
	case !ok:
		return u, errors.New("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
	}
	err := u.Unmarshal(rest)
	return u, err
}

// unmarshalProtobuf decodes a document into a Go value with protobuf methods.
func unmarshalProtobuf(raw []byte, into any) error {
	message, ok := into.(interface{ Unmarshal([]byte) error })
	if !ok {
		return fmt.Errorf("a %T has no protobuf form", into)
	}
	return message.Unmarshal(raw)
}

// decodeProtobuf decodes the protobuf of an object with a Go type.
func decodeProtobuf(data []byte, x Expect) (object.Tree, error) {
	u, err := envelope(data)
	if err != nil {
		return nil, unrecognized(x, err, data)
	}
	m := typeMeta{u.APIVersion, u.Kind}
	got := m.or(x.Kind)
	into := x.New()
	if x.takes(got) {
		if err := unmarshalProtobuf(u.Raw, into); err != nil {
			return nil, Unhandled(got, x.Kind.Kind, err)
		}
	}
	t, err := object.TreeOf(into)
	if err != nil {
		return nil, Unhandled(got, x.Kind.Kind, err)
	}
	return x.typed(t, m)
}

// marshal encodes a Go value as protobuf, without apiVersion and kind.
func marshal(of runtime.Object) ([]byte, error) {
	m, ok := of.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("a %T has no protobuf form", of)
	}
	return m.Marshal()
}

// wrappedOf encodes a Go value as a protobuf document with apiVersion and kind.
func wrappedOf(of runtime.Object) ([]byte, error) {
	message, err := marshal(of)
	if err != nil {
		return nil, err
	}
	apiVersion, kind := of.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return appendWrapped(nil, apiVersion, kind, message), nil
}

// ToProtobuf converts the JSON of an object to a protobuf document. The object has the Go type of like.
func ToProtobuf(types *protobuf.Types, like runtime.Object, apiVersion, kind string, doc []byte) ([]byte, error) {
	message, err := types.Append(nil, reflect.TypeOf(like).Elem(), doc)
	if err != nil {
		return nil, err
	}
	return appendWrapped(nil, apiVersion, kind, message), nil
}

// newValue returns an empty value of the Go type in which v shows an object, or nil.
func (v *View) newValue() runtime.Object {
	switch {
	case v.Format.As != Whole:
		return &metav1.PartialObjectMetadata{}
	case v.New != nil:
		return v.New()
	default:
		return nil
	}
}

// Message returns the protobuf of an object as v shows it. It may be cached as long as the
// object.
func (v *View) Message(e *object.Encoded) ([]byte, error) {
	doc := docs.Get().(*[]byte)
	defer docs.Put(doc)
	var err error
	if *doc, err = v.appendObject((*doc)[:0], e, nil); err != nil {
		return nil, err
	}
	return v.messageOf(*doc)
}

// docs is a pool of buffers for intermediate JSON.
var docs = sync.Pool{New: func() any { return new([]byte) }}

// messageOf converts JSON that v shows to protobuf.
func (v *View) messageOf(doc []byte) ([]byte, error) {
	return v.Types.Append(nil, reflect.TypeOf(v.newValue()).Elem(), doc)
}

// appendWrapped appends a message of v as a document.
func (v *View) appendWrapped(dst, message []byte) []byte {
	if v.Format.As == Whole {
		return appendWrapped(dst, v.APIVersion, v.Kind, message)
	}
	return appendWrapped(dst, metav1.GroupName+"/"+v.Format.Version, "PartialObjectMetadata", message)
}
