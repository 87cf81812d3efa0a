package codec

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	protobufserializer "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/protobuf"
	"github.com/anykind/anykind/internal/object/status"
)

// wrapped encodes a message as a typed client does.
func wrapped(t *testing.T, apiVersion, kind string, message interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := message.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	data, err := u.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), data...)
}

func TestDecodeProtobuf(t *testing.T) {
	sent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Data: map[string]string{"a": "b"}}
	tree, _, err := DecodeObject(Protobuf, wrapped(t, "v1", "ConfigMap", sent), configMap)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(object.AppendJSON(nil, tree)); got != `{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"n"}}` {
		t.Error(got)
	}
	for _, tt := range []struct {
		data []byte
		x    Expect
		want string
	}{
		{[]byte("{}"), configMap, "expected prefix"},
		{[]byte("k8s\x00\xff"), configMap, "unexpected EOF"},
		{wrapped(t, "v1", "Secret", &corev1.Secret{}), configMap, `Secret in version "v1" cannot be handled as a ConfigMap`},
		{nil, configMap, "empty data (<empty>)"},
		{[]byte("k8s\x00"), configMap, "empty body (6b387300)"},
		{wrapped(t, "codec.test/v1", "Probe", sent), probe, "the body of the request was in an unknown format"},
	} {
		if _, _, err := DecodeObject(Protobuf, tt.data, tt.x); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %s", tt.data, err, tt.want)
		}
	}
	var o metav1.DeleteOptions
	seconds := int64(7)
	options := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	err = DecodeOptions(Protobuf, wrapped(t, "v1", "DeleteOptions", &metav1.DeleteOptions{GracePeriodSeconds: &seconds}), options, &o)
	if err != nil || o.GracePeriodSeconds == nil || *o.GracePeriodSeconds != 7 {
		t.Errorf("%v %v", o, err)
	}
	if err := DecodeOptions(Protobuf, wrapped(t, "v1", "Secret", &corev1.Secret{}), options, &o); err == nil || !strings.Contains(err.Error(), `no kind "Secret" is registered`) {
		t.Errorf("options of a Secret: %v", err)
	}
}

// A stored ConfigMap, and the same as a Go value.
const storedMap = `{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"creationTimestamp":"2000-01-01T00:00:00Z","name":"n"}}`

func typedMap() corev1.ConfigMap {
	return corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", ResourceVersion: "7", CreationTimestamp: metav1.NewTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)),
		},
		Data: map[string]string{"a": "b"},
	}
}

func configMaps(as As, version string) *View {
	return &View{
		Format:     Format{Media: Protobuf, As: as, Version: version},
		APIVersion: "v1", Kind: "ConfigMap", ListKind: "ConfigMapList", New: configMap.New, Types: new(protobuf.Types),
		BareItems: true, OmitsEmptyContinue: true,
	}
}

func (v *View) partOf(e *object.Encoded) Part {
	return func() ([]byte, error) { return v.Message(e) }
}

// serialized encodes a Go value with Kubernetes' own serializer.
func serialized(t *testing.T, value runtime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	s := protobufserializer.NewSerializerWithOptions(nil, nil, protobufserializer.SerializerOptions{StreamingCollectionsEncoding: true})
	if err := s.Encode(value, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func metadataOf(version string, m corev1.ConfigMap) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/" + version, Kind: "PartialObjectMetadata"},
		ObjectMeta: m.ObjectMeta,
	}
}

func TestProtobufObject(t *testing.T) {
	typed := typedMap()
	for _, tt := range []struct {
		v    *View
		want runtime.Object
	}{
		{configMaps(Whole, ""), &typed},
		{configMaps(PartialMetadata, "v1"), metadataOf("v1", typed)},
		{configMaps(PartialMetadata, "v1beta1"), metadataOf("v1beta1", typed)},
	} {
		e := encoded(t, storedMap, 7)
		got, err := tt.v.Render(e, tt.v.partOf(e))
		if want := serialized(t, tt.want); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v\n got %q\nwant %q", err, got, want)
		}
	}
	tree, _, _ := Decode(JSON, encoded(t, storedMap, 7).Append(nil, "v1"))
	if got, err := configMaps(Whole, "").RenderTree(tree); err != nil || !bytes.Equal(got, serialized(t, &typed)) {
		t.Errorf("%v %q", err, got)
	}
}

func TestProtobufList(t *testing.T) {
	typed, meta := typedMap(), metav1.ListMeta{ResourceVersion: "9", Continue: "x", RemainingItemCount: new(int64(3))}
	items := []corev1.ConfigMap{typed, typed}
	partial := []metav1.PartialObjectMetadata{*metadataOf("v1", typed), *metadataOf("v1", typed)}
	for _, tt := range []struct {
		v     *View
		count int
		want  runtime.Object
	}{
		{configMaps(Whole, ""), 2, &corev1.ConfigMapList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: meta, Items: items}},
		{configMaps(Whole, ""), 0, &corev1.ConfigMapList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: meta}},
		{configMaps(PartialMetadataList, "v1"), 2, &metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: meta, Items: partial}},
		{configMaps(PartialMetadataList, "v1beta1"), 2, &metav1beta1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1beta1", Kind: "PartialObjectMetadataList"}, ListMeta: meta, Items: partial}},
	} {
		var out bytes.Buffer
		e := encoded(t, storedMap, 7)
		l := tt.v.NewList(&out, ListMeta{ResourceVersion: 9, Continue: "x", RemainingItemCount: new(int64(3)), Size: tt.v.sizeOf(t, e, tt.count)})
		for range tt.count {
			if err := l.Add(e, tt.v.partOf(e)); err != nil {
				t.Fatal(err)
			}
		}
		err := l.Close()
		if want := serialized(t, tt.want); err != nil || !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%v\n got %q\nwant %q", err, out.Bytes(), want)
		}
	}
}

// A long list is written in chunks, with the same bytes as in one write.
func TestProtobufListPieces(t *testing.T) {
	const count = 1000
	e, v := encoded(t, storedMap, 7), configMaps(Whole, "")
	want := &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	var out pieces
	l := v.NewList(&out, ListMeta{ResourceVersion: 9, Size: v.sizeOf(t, e, count)})
	for range count {
		want.Items = append(want.Items, typedMap())
		if err := l.Add(e, v.partOf(e)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil || out.writes < 2 || !bytes.Equal(out.Bytes(), serialized(t, want)) {
		t.Errorf("%d writes, %d bytes, %v", out.writes, out.Len(), err)
	}
	l = v.NewList(broken{}, ListMeta{Size: v.sizeOf(t, e, 1)})
	_ = l.Add(e, v.partOf(e))
	if err := l.Close(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the error of the client's connection is lost: %v", err)
	}
}

// A list whose objects are larger or smaller than announced does not look complete.
func TestProtobufListSize(t *testing.T) {
	e, v := encoded(t, storedMap, 7), configMaps(Whole, "")
	for _, announced := range []int{1, 3} {
		l := v.NewList(io.Discard, ListMeta{Size: v.sizeOf(t, e, announced)})
		_ = l.Add(e, v.partOf(e))
		_ = l.Add(e, v.partOf(e))
		if err := l.Close(); !errors.Is(err, errResized) {
			t.Errorf("%d of 2 objects announced: %v", announced, err)
		}
	}
}

// sizeOf is the size of a list of an object, count times.
func (v *View) sizeOf(t *testing.T, e *object.Encoded, count int) (size ListSize) {
	t.Helper()
	for range count {
		if err := size.Add(v.partOf(e)); err != nil {
			t.Fatal(err)
		}
	}
	return size
}

type pieces struct {
	bytes.Buffer
	writes int
}

func (p *pieces) Write(data []byte) (int, error) {
	p.writes++
	return p.Buffer.Write(data)
}

func TestProtobufFrames(t *testing.T) {
	typed, e := typedMap(), encoded(t, storedMap, 7)
	failure := status.Of(status.Expired("too old"))
	bookmark := corev1.ConfigMap{TypeMeta: typed.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "12", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	frame := func(v *View) []byte {
		got, err := v.AppendFrame(nil, Added, e, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, tt := range []struct {
		got  []byte
		kind string
		want runtime.Object
	}{
		{frame(configMaps(Whole, "")), Added, &typed},
		{frame(configMaps(PartialMetadata, "v1")), Added, metadataOf("v1", typed)},
		{configMaps(Whole, "").AppendBookmark(nil, 12, true, false), Bookmark, &bookmark},
		{configMaps(Whole, "").Format.AppendErrorFrame(nil, failure), Error, &failure},
	} {
		event := metav1.WatchEvent{Type: tt.kind, Object: runtime.RawExtension{Raw: serialized(t, tt.want)}}
		message, err := event.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if _, err := protobufserializer.LengthDelimitedFramer.NewFrameWriter(&want).Write(message); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(tt.got, want.Bytes()) {
			t.Errorf("\n got %q\nwant %q", tt.got, want.Bytes())
		}
	}
}
