package builtin

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/builtin/former"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/protobuf"
	"github.com/anykind/anykind/internal/object/resource"
)

// protobufMark begins values that a kube-apiserver has stored as protobuf, as it does for built-in
// kinds.
var protobufMark = []byte("k8s\x00")

// Stored returns the kinds of all objects that a kube-apiserver stores and this server reads: the
// built-in ones, with these feature gates, and internal records.
func Stored(gates *gate.Set) []*resource.Definition {
	//lint:ignore SA1019 a lease is one
	lease := func() runtime.Object { return &corev1.Endpoints{} }
	all := Dependencies{Gates: gates}.Definitions()
	for _, hidden := range []struct {
		kind, prefix string
		object       func() runtime.Object
	}{
		{"RangeAllocation", resource.RangesPrefix, func() runtime.Object { return &corev1.RangeAllocation{} }},
		{"Endpoints", resource.MasterLeasesPrefix, lease},
		{"Endpoints", resource.PeerLeasesPrefix, lease},
	} {
		all = append(all, resource.New(resource.Definition{
			Kind: hidden.kind, StoragePrefix: hidden.prefix, Versions: []*resource.Version{{Name: "v1", Storage: true, New: hidden.object}},
		}))
	}
	return all
}

// StoredJSON converts a value of one of the kinds to JSON in the storage version, from protobuf or
// from a removed version. It also converts CBOR to JSON. It returns other values unchanged, also
// those that cannot be decoded: a later read reports the error.
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
		if is.Kind == "" {
			return value // as this server writes it
		}
		_, old := former.Find(is.APIVersion, is.Kind)
		for d := range under(kinds, key, is.Kind) {
			if old {
				return raised(d, is, value)
			}
			if made, ok := inOwnForm(d, is, value); ok {
				return made
			}
		}
	}
	return value
}

// IsStored reports whether one of the kinds has the prefix of a key.
func IsStored(kinds []*resource.Definition, key string) bool {
	return slices.ContainsFunc(kinds, func(d *resource.Definition) bool { return strings.HasPrefix(key, d.StoragePrefix) })
}

// StoredProtobuf converts the JSON of an object of one of the kinds to the protobuf that a kube-apiserver stores.
func StoredProtobuf(types *protobuf.Types, kinds []*resource.Definition, key string, value []byte) ([]byte, bool) {
	e, err := object.Scan(value, 0)
	if err != nil {
		return nil, false
	}
	for d := range under(kinds, key, e.Kind()) {
		if d.Group == "apiregistration.k8s.io" { // the aggregator of a kube-apiserver stores JSON
			return nil, false
		}
		for _, v := range d.Versions {
			if !v.HasGoType() || d.APIVersion(v.Name) != e.APIVersion() {
				continue
			}
			if message, err := codec.ToProtobuf(types, v.New(), e.APIVersion(), e.Kind(), value); err == nil {
				return message, true
			}
		}
	}
	return nil, false
}

// under yields the kinds of that name whose prefix the key has.
func under(kinds []*resource.Definition, key, kind string) iter.Seq[*resource.Definition] {
	return func(yield func(*resource.Definition) bool) {
		for _, d := range kinds {
			if d.Kind == kind && strings.HasPrefix(key, d.StoragePrefix) && !yield(d) {
				return
			}
		}
	}
}

// typeOf reads apiVersion and kind from the beginning of JSON, where a kube-apiserver writes them.
func typeOf(value []byte) runtime.TypeMeta {
	rest, ok := bytes.CutPrefix(value, []byte(`{"kind":"`))
	if !ok {
		return runtime.TypeMeta{}
	}
	kind, rest, _ := bytes.Cut(rest, []byte(`","apiVersion":"`))
	apiVersion, _, _ := bytes.Cut(rest, []byte(`"`))
	return runtime.TypeMeta{APIVersion: string(apiVersion), Kind: string(kind)}
}

// decodeProtobuf converts an object of d from protobuf to JSON, if it is one.
func decodeProtobuf(d *resource.Definition, envelope *runtime.Unknown) ([]byte, bool) {
	create, old := goType(d, envelope.TypeMeta)
	if create == nil {
		return nil, false
	}
	message := create()
	if message == nil || message.Unmarshal(envelope.Raw) != nil {
		return nil, false
	}
	if obj, ok := message.(runtime.Object); ok {
		obj.GetObjectKind().SetGroupVersionKind(envelope.GroupVersionKind())
	}
	decoded, err := json.Marshal(message)
	if err != nil {
		return nil, false
	}
	if old {
		return raised(d, envelope.TypeMeta, decoded), true
	}
	return inOwnForm(d, envelope.TypeMeta, decoded)
}

// inOwnForm returns the JSON of an object of d as this server stores it: sorted, and with the defaults of fields that an
// older server did not know. An update that changes nothing then finds equal bytes.
func inOwnForm(d *resource.Definition, is runtime.TypeMeta, value []byte) ([]byte, bool) {
	tree, _, err := codec.Decode(codec.JSON, value)
	if err != nil || tree == nil {
		return nil, false
	}
	for _, v := range d.Versions {
		if v.Schema != nil && d.APIVersion(v.Name) == is.APIVersion {
			v.Schema.Default(tree)
		}
	}
	return object.AppendJSON(nil, tree), true
}

// goType returns a constructor for an object of d in a version, and whether that version was
// removed. It returns nil for an unknown version.
func goType(d *resource.Definition, is runtime.TypeMeta) (create func() former.Message, old bool) {
	of := func(v *resource.Version) func() former.Message {
		return func() former.Message {
			m, _ := v.New().(former.Message)
			return m
		}
	}
	for _, v := range d.Versions {
		if v.HasGoType() && d.APIVersion(v.Name) == is.APIVersion {
			return of(v), false
		}
	}
	v, ok := former.Find(is.APIVersion, is.Kind)
	if ok && v.Object == nil {
		return of(d.StorageVersion()), true
	}
	return v.Object, ok
}

// raised converts an object of a removed version to the storage version of d. It returns others
// unchanged.
func raised(d *resource.Definition, is runtime.TypeMeta, value []byte) []byte {
	v, _ := former.Find(is.APIVersion, is.Kind)
	tree, _, err := codec.Decode(codec.JSON, value)
	if err != nil || tree == nil {
		return value
	}
	v.Raise(tree, d.APIVersion(d.StorageVersion().Name))
	tree["kind"] = is.Kind
	return object.AppendJSON(nil, tree)
}
