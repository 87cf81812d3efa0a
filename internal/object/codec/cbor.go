package codec

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/anykind/anykind/internal/object"
)

// selfDescribed is the prefix of Kubernetes' CBOR documents.
var selfDescribed = []byte{0xd9, 0xd9, 0xf7}

// IsCBOR reports whether data has the prefix of Kubernetes' CBOR documents.
func IsCBOR(data []byte) bool { return bytes.HasPrefix(data, selfDescribed) }

// FromCBOR converts a CBOR map or null to JSON. Duplicate keys, and values without a JSON
// equivalent, are errors. A float with an integral value becomes an integer, as it does in
// storage.
func FromCBOR(data []byte) ([]byte, error) { return fromCBOR(data, object.AppendJSON) }

func fromCBOR(data []byte, write func([]byte, any) []byte) ([]byte, error) {
	var t object.Tree
	if err := direct.Unmarshal(data, &t); err != nil {
		return nil, err
	}
	if t == nil {
		return []byte("null"), nil
	}
	return write(nil, t), nil
}

// appendWithFloats appends JSON in which floats are no integers: a field of integers accepts no float from a client.
func appendWithFloats(dst []byte, v any) []byte {
	switch v := v.(type) {
	case float64:
		start := len(dst)
		if dst = object.AppendJSON(dst, v); !bytes.ContainsAny(dst[start:], ".e") {
			dst = append(dst, ".0"...)
		}
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendWithFloats(dst, e)
		}
		dst = append(dst, ']')
	case object.Tree:
		dst = append(dst, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(object.AppendString(dst, key), ':')
			dst = appendWithFloats(dst, v[key])
		}
		dst = append(dst, '}')
	default:
		dst = object.AppendJSON(dst, v)
	}
	return dst
}

// wellFormed is the target of a CBOR document whose values do not matter.
type wellFormed struct{}

// UnmarshalCBOR accepts every value. The decoder has checked the form of the whole document before.
func (wellFormed) UnmarshalCBOR([]byte) error { return nil }

// malformed returns the error of a document that is not well-formed. Kubernetes determines the kind first, and fails there.
func malformed(data []byte) error {
	if err := direct.Unmarshal(data, &wellFormed{}); err != nil {
		return fmt.Errorf("unable to determine group/version/kind: %w", err)
	}
	return nil
}

// wrongCBOR returns the error of a document that does not decode.
func (x Expect) wrongCBOR(data []byte, err error) error {
	if err := malformed(data); err != nil {
		return unrecognized(x, err, data)
	}
	return Unhandled(x.Kind, x.Kind.Kind, err)
}

// decodeCBOR decodes an object of a Go type as Kubernetes does: an error has the words of CBOR, and only the first unknown
// field is found.
func (x Expect) decodeCBOR(data []byte) (t object.Tree, problems []string, err error) {
	obj, got, err := cbor.NewSerializer(expected{x}, expected{x}, cbor.Strict(true)).Decode(data, &x.Kind, x.New())
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		problems, err = texts(strict.Errors()), nil
	}
	switch {
	case got == nil:
		return nil, nil, unrecognized(x, err, data)
	case err != nil:
		return nil, nil, Unhandled(*got, x.Kind.Kind, err)
	}
	if t, err = object.TreeOf(obj); err != nil {
		return nil, nil, Unhandled(*got, x.Kind.Kind, err)
	}
	if t, err = x.typed(t, typeMeta{got.GroupVersion().String(), got.Kind}); err != nil {
		return nil, nil, err
	}
	if m, ok := obj.(metav1.Object); ok && m.GetManagedFields() != nil && len(m.GetManagedFields()) == 0 {
		object.Metadata(t)["managedFields"] = []any{} // an empty list has a meaning, but a Go type omits it
	}
	return t, problems, nil
}

// expected is the scheme of a decoder of one kind, and of its versions.
type expected struct{ Expect }

func (x expected) Recognizes(got schema.GroupVersionKind) bool { return x.isVersion(got) }

func (x expected) ObjectKinds(runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{x.Kind}, false, nil
}

func (x expected) New(got schema.GroupVersionKind) (runtime.Object, error) {
	if !x.isVersion(got) {
		return nil, unregistered(got)
	}
	return x.Expect.New(), nil
}

// ToCBOR converts the JSON of an object to CBOR.
func ToCBOR(doc []byte) ([]byte, error) {
	t, _, err := decodeJSON(doc)
	if err != nil {
		return nil, err
	}
	return appendCBOR(bytes.Clone(selfDescribed), t)
}

// appendCBOREvent appends a watch event as one item of a CBOR sequence; the object in it is a
// document of its own. doc is the JSON of the object. It may lie behind the end of dst.
func appendCBOREvent(dst []byte, eventType string, doc []byte) ([]byte, error) {
	data, err := ToCBOR(doc)
	if err != nil {
		return nil, err
	}
	const twoFields = 0xa2
	dst = append(append(dst, selfDescribed...), twoFields)
	for _, s := range []string{"type", eventType, "object"} {
		if dst, err = appendCBOR(dst, s); err != nil {
			return nil, err
		}
	}
	return append(dst, data...), nil
}

func appendCBOR(dst []byte, v any) ([]byte, error) {
	data, err := direct.Marshal(v)
	return append(dst, data...), err
}
