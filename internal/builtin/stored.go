package builtin

import (
	"bytes"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/codec"
	"github.com/anykind/anykind/internal/resource"
)

// protobufMark begins what a kube-apiserver has stored as protobuf, which it does
// with kinds that have no CustomResourceDefinition.
var protobufMark = []byte("k8s\x00")

// Stored returns the kinds of all that a kube-apiserver stores and we read: the built-in
// ones, and those of records that clients do not see.
func Stored() []*resource.Definition {
	hidden := func(kind, prefix string, object func() runtime.Object) *resource.Definition {
		return resource.New(resource.Definition{Kind: kind, StoragePrefix: prefix, Versions: []*resource.Version{{Name: "v1", Storage: true, New: object}}})
	}
	return append(
		Definitions(),
		hidden("RangeAllocation", resource.RangesPrefix, func() runtime.Object { return &corev1.RangeAllocation{} }),
		//lint:ignore SA1019 a lease is one
		hidden("Endpoints", resource.MasterLeasesPrefix, func() runtime.Object { return &corev1.Endpoints{} }),
	)
}

// StoredJSON makes JSON of what others have stored as protobuf, if it is of one of
// the kinds, or as CBOR. It returns every other value as it is, and also one that
// cannot be decoded: whoever reads that will say so.
func StoredJSON(kinds []*resource.Definition, key string, value []byte) []byte {
	if codec.IsCBOR(value) {
		if doc, err := codec.FromCBOR(value); err == nil {
			return doc
		}
		return value
	}
	if !bytes.HasPrefix(value, protobufMark) {
		return value
	}
	for _, d := range kinds {
		if !strings.HasPrefix(key, d.StoragePrefix) {
			continue
		}
		if decoded, ok := decodeProtobuf(d, value[len(protobufMark):]); ok {
			return decoded
		}
	}
	return value
}

// decodeProtobuf makes JSON of an object of d, if it is one.
func decodeProtobuf(d *resource.Definition, data []byte) ([]byte, bool) {
	var envelope runtime.Unknown
	if envelope.Unmarshal(data) != nil || envelope.Kind != d.Kind {
		return nil, false
	}
	for _, v := range d.Versions {
		if !v.HasGoType() || d.APIVersion(v.Name) != envelope.APIVersion {
			continue
		}
		obj := v.New()
		message, ok := obj.(interface{ Unmarshal([]byte) error })
		if !ok || message.Unmarshal(envelope.Raw) != nil {
			return nil, false
		}
		obj.GetObjectKind().SetGroupVersionKind(envelope.GroupVersionKind())
		decoded, err := json.Marshal(obj)
		return decoded, err == nil
	}
	return nil, false
}
