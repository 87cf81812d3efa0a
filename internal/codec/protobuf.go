package codec

import (
	"bytes"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/object"
)

// protobufMagic begins every protobuf document of Kubernetes.
var protobufMagic = []byte("k8s\x00")

// envelope reads the wrapper around a protobuf document.
func envelope(data []byte) (runtime.Unknown, error) {
	var u runtime.Unknown
	rest, ok := bytes.CutPrefix(data, protobufMagic)
	if !ok {
		return u, errors.New("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
	}
	err := u.Unmarshal(rest)
	return u, err
}

// unmarshalProtobuf reads a document into a Go value that knows protobuf.
func unmarshalProtobuf(raw []byte, into any) error {
	message, ok := into.(interface{ Unmarshal([]byte) error })
	if !ok {
		return fmt.Errorf("a %T has no protobuf form", into)
	}
	return message.Unmarshal(raw)
}

// decodeProtobuf reads the protobuf of an object of a Go type.
func decodeProtobuf(data []byte, x Expect) (object.Tree, error) {
	u, err := envelope(data)
	if err != nil {
		return nil, unrecognized(x, err, data)
	}
	if x.New == nil {
		return nil, unrecognized(x, fmt.Errorf("a %s has no protobuf form", x.Kind.Kind), data)
	}
	m := typeMeta{u.APIVersion, u.Kind}
	got := m.or(x.Kind)
	into := x.New()
	if got == x.Kind {
		if err := unmarshalProtobuf(u.Raw, into); err != nil {
			return nil, Unhandled(got, x.Kind.Kind, err)
		}
	}
	t, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
	if err != nil {
		return nil, Unhandled(got, x.Kind.Kind, err)
	}
	return x.typed(t, m)
}
