package codec

import (
	"bytes"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/anykind/anykind/internal/object"
)

// selfDescribed begins every CBOR document of Kubernetes.
var selfDescribed = []byte{0xd9, 0xd9, 0xf7}

// IsCBOR reports whether data is what Kubernetes writes as CBOR.
func IsCBOR(data []byte) bool { return bytes.HasPrefix(data, selfDescribed) }

// FromCBOR makes JSON of a CBOR map, or of null. A key that is there twice, or a
// value that JSON has none like, makes it no document. A float that is whole
// becomes an integer, as it does wherever it is stored.
func FromCBOR(data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, errors.New("empty data")
	}
	var t object.Tree
	if err := direct.Unmarshal(data, &t); err != nil {
		return nil, err
	}
	if t == nil {
		return []byte("null"), nil
	}
	return object.AppendJSON(nil, t), nil
}

// ToCBOR makes CBOR of a JSON document, which is an object.
func ToCBOR(doc []byte) ([]byte, error) {
	t, _, err := decodeJSON(doc)
	if err != nil {
		return nil, err
	}
	return appendCBOR(bytes.Clone(selfDescribed), t)
}

// appendCBOREvent appends one event of a watch: one item of a sequence, in which
// the object is a document of its own. doc is the JSON of the object, and may lie
// behind the end of dst.
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
