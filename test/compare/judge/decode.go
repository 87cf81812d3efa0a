package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var protobufMark = []byte("k8s\x00")

// tree decodes a body into JSON types. A body that is not JSON, YAML, CBOR or Kubernetes protobuf, or
// that does not decode, becomes a string.
func tree(mediaType string, body []byte) any {
	if len(body) == 0 {
		return nil
	}
	var out any
	var err error
	switch {
	case strings.Contains(mediaType, "protobuf"):
		out, err = protobuf(body)
	case strings.Contains(mediaType, "cbor"):
		err = direct.Unmarshal(body, &out)
	case strings.Contains(mediaType, "yaml"):
		err = yaml.Unmarshal(body, &out, func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d })
	case strings.Contains(mediaType, "json"):
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err = d.Decode(&out); err == nil && len(bytes.TrimSpace(body[d.InputOffset():])) > 0 {
			err = fmt.Errorf("more than one value")
		}
	default:
		return string(body)
	}
	if err != nil {
		return fmt.Sprintf("%s that does not decode: %.200q", mediaType, body)
	}
	return out
}

// protobuf decodes a message in its envelope.
func protobuf(body []byte) (any, error) {
	raw, found := bytes.CutPrefix(body, protobufMark)
	if !found {
		// Events of a watch have no envelope.
		var event metav1.WatchEvent
		if err := event.Unmarshal(body); err != nil {
			return nil, err
		}
		object, err := protobuf(event.Object.Raw)
		return map[string]any{"type": event.Type, "object": object}, err
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(raw); err != nil {
		return nil, err
	}
	object, err := known().New(envelope.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	message, ok := object.(interface{ Unmarshal([]byte) error })
	if !ok {
		return nil, fmt.Errorf("%s has no protobuf", envelope.Kind)
	}
	if err := message.Unmarshal(envelope.Raw); err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(envelope.GroupVersionKind())
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	out, err := exact(data)
	return map[string]any{"envelope": map[string]any{
		"contentType": envelope.ContentType, "contentEncoding": envelope.ContentEncoding}, "message": out}, err
}

// known has the Go types of the kinds that a server can send in protobuf.
var known = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(s); err != nil {
			panic(err) // two packages disagree about a type, independent of the input
		}
	}
	for _, t := range []runtime.Object{&metav1.Status{}, &metav1.Table{}, &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}, &metav1.APIGroup{}, &metav1.APIGroupList{}, &metav1.APIResourceList{}, &metav1.APIVersions{}} {
		kind := fmt.Sprintf("%T", t)
		name := kind[strings.LastIndex(kind, ".")+1:]
		if !s.Recognizes(metav1.SchemeGroupVersion.WithKind(name)) {
			s.AddKnownTypeWithName(metav1.SchemeGroupVersion.WithKind(name), t)
		}
		if gv := metav1.Unversioned; !s.Recognizes(gv.WithKind(name)) {
			s.AddKnownTypeWithName(gv.WithKind(name), t)
		}
	}
	return s
})

func exact(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var out any
	err := d.Decode(&out)
	return out, err
}
