package builtin

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/builtin/former"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
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

// StoredJSON makes JSON, in the version in which objects are stored now, of what others have stored
// as protobuf or in a version that is not served any more, if it is of one of the kinds; and JSON of
// CBOR. It returns every other value as it is, and also one that cannot be decoded: whoever reads
// that will say so.
func StoredJSON(kinds []*resource.Definition, key string, value []byte) []byte {
	switch {
	case codec.IsCBOR(value):
		if doc, err := codec.FromCBOR(value); err == nil {
			return doc
		}
	case bytes.HasPrefix(value, protobufMark):
		var envelope runtime.Unknown
		if envelope.Unmarshal(value[len(protobufMark):]) != nil {
			return value
		}
		for d := range under(kinds, key, envelope.Kind) {
			if decoded, ok := decodeProtobuf(d, &envelope); ok {
				return decoded
			}
		}
	default:
		is := typeOf(value)
		if _, ok := former.Find(is.APIVersion, is.Kind); !ok {
			return value
		}
		for d := range under(kinds, key, is.Kind) {
			return raised(d, is, value)
		}
	}
	return value
}

// under are the kinds of a name whose objects are under a prefix of the key.
func under(kinds []*resource.Definition, key, kind string) iter.Seq[*resource.Definition] {
	return func(yield func(*resource.Definition) bool) {
		for _, d := range kinds {
			if d.Kind == kind && strings.HasPrefix(key, d.StoragePrefix) && !yield(d) {
				return
			}
		}
	}
}

// typeOf reads the type of an object from the beginning of JSON, where a kube-apiserver writes it
// unless it writes protobuf.
func typeOf(value []byte) runtime.TypeMeta {
	rest, ok := bytes.CutPrefix(value, []byte(`{"kind":"`))
	if !ok {
		return runtime.TypeMeta{}
	}
	kind, rest, _ := bytes.Cut(rest, []byte(`","apiVersion":"`))
	apiVersion, _, _ := bytes.Cut(rest, []byte(`"`))
	return runtime.TypeMeta{APIVersion: string(apiVersion), Kind: string(kind)}
}

// decodeProtobuf makes JSON of an object of d, if it is one.
func decodeProtobuf(d *resource.Definition, envelope *runtime.Unknown) ([]byte, bool) {
	create, old := goType(d, envelope.TypeMeta)
	if create == nil {
		return nil, false
	}
	obj := create()
	message, ok := obj.(interface{ Unmarshal([]byte) error })
	if !ok || message.Unmarshal(envelope.Raw) != nil {
		return nil, false
	}
	obj.GetObjectKind().SetGroupVersionKind(envelope.GroupVersionKind())
	decoded, err := json.Marshal(obj)
	if err == nil && old {
		decoded = raised(d, envelope.TypeMeta, decoded)
	}
	return decoded, err == nil
}

// goType returns what makes an object of d in a version, and whether that is none that is served. It
// returns nil where there is no such version.
func goType(d *resource.Definition, is runtime.TypeMeta) (create func() runtime.Object, old bool) {
	for _, v := range d.Versions {
		if v.HasGoType() && d.APIVersion(v.Name) == is.APIVersion {
			return v.New, false
		}
	}
	v, ok := former.Find(is.APIVersion, is.Kind)
	if ok && v.Object == nil {
		v.Object = d.StorageVersion().New
	}
	return v.Object, ok
}

// raised is an object of a former version as d stores it now, or itself.
func raised(d *resource.Definition, is runtime.TypeMeta, value []byte) []byte {
	v, _ := former.Find(is.APIVersion, is.Kind)
	tree, _, err := codec.Decode(codec.JSON, value)
	if err != nil || tree == nil {
		return value
	}
	v.Raise(tree, d.APIVersion(d.StorageVersion().Name))
	return object.AppendJSON(nil, tree)
}
