package rest_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/resource"
)

const (
	protobuf     = "application/vnd.kubernetes.protobuf"
	asMetadata   = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	asMetadatas  = ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	asTable      = ";as=Table;v=v1;g=meta.k8s.io"
	configMaps   = "/api/v1/namespaces/default/configmaps"
	acceptedOnly = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
)

// newTypedServer serves the built-in kinds and one without a Go type.
func newTypedServer(t *testing.T) *server {
	var definitions []*resource.Definition
	return newServerOf(t, append(append(definitions, builtin.Definitions()...), lead())...)
}

// accept sends a request with an Accept header.
func (s *server) accept(accept, method, path, contentType, body string) answer {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return answer{s.t, w.Code, w.Header(), w.Body.String()}
}

// types returns the Go types of the built-in kinds, as a client has them.
func types(t *testing.T) (*runtime.Scheme, runtime.Decoder) {
	t.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, coordinationv1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme,
		metav1.AddMetaToScheme, metav1beta1.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme, serializer.NewCodecFactory(scheme).UniversalDeserializer()
}

// typed decodes the body as a client with Go types does.
func (a answer) typed(d runtime.Decoder, contentType string) runtime.Object {
	a.t.Helper()
	if got := a.header.Get("Content-Type"); got != contentType {
		a.t.Fatalf("%d Content-Type %q, want %q: %q", a.code, got, contentType, a.body)
	}
	out, _, err := d.Decode([]byte(a.body), nil, nil)
	if err != nil {
		a.t.Fatalf("%v: %q", err, a.body)
	}
	return out
}

// For a built-in kind, JSON and protobuf have the same content: of an object, of a list, and of
// the answer to a write.
func TestProtobufSaysTheSame(t *testing.T) {
	s := newTypedServer(t)
	_, d := types(t)
	for _, tt := range []struct{ path, body string }{
		{"/api/v1/namespaces", `{"metadata":{"name":"x"}}`},
		{configMaps, `{"metadata":{"name":"x","labels":{"a":"b"}},"data":{"e":"é"},"binaryData":{"b":"AP8="}}`},
		{"/api/v1/namespaces/default/secrets", `{"metadata":{"name":"x"},"stringData":{"p":"w"}}`},
		{"/api/v1/namespaces/default/serviceaccounts", `{"metadata":{"name":"x"},"secrets":[{"name":"y"}]}`},
		{"/api/v1/namespaces/default/events", `{"metadata":{"name":"x"},"involvedObject":{"namespace":"default","name":"y"},"count":3}`},
		{"/apis/coordination.k8s.io/v1/namespaces/default/leases", `{"metadata":{"name":"x"},"spec":{"holderIdentity":"h","renewTime":"2020-01-02T03:04:05.678901Z"}}`},
		{"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
			`{"metadata":{"name":"x"},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":true}}],"ports":[{"name":"p","port":80}]}`},
	} {
		inJSON := s.post(tt.path, tt.body).is(201).typed(d, "application/json")
		one := s.accept(protobuf, "GET", tt.path+"/x", "", "").is(200).typed(d, protobuf)
		if !reflect.DeepEqual(one, inJSON) {
			t.Errorf("%s\n got %+v\nwant %+v", tt.path, one, inJSON)
		}
		list := s.accept(protobuf, "GET", tt.path, "", "").is(200).typed(d, protobuf)
		if want := s.get(tt.path).typed(d, "application/json"); text(t, list) != text(t, want) {
			t.Errorf("%s\n got %s\nwant %s", tt.path, text(t, list), text(t, want))
		}
		patched := s.accept(protobuf, "PATCH", tt.path+"/x", "application/merge-patch+json", `{"metadata":{"labels":{"c":"d"}}}`).is(200).typed(d, protobuf)
		if want := s.get(tt.path+"/x").typed(d, "application/json"); !reflect.DeepEqual(patched, want) {
			t.Errorf("%s\n got %+v\nwant %+v", tt.path, patched, want)
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A client sends and receives only protobuf.
func TestProtobufBothWays(t *testing.T) {
	s := newTypedServer(t)
	scheme, d := types(t)
	info, _ := runtime.SerializerInfoForMediaType(serializer.NewCodecFactory(scheme).SupportedMediaTypes(), protobuf)
	encoder := serializer.NewCodecFactory(scheme).EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
	send := func(method, path string, o runtime.Object) answer {
		data, err := runtime.Encode(encoder, o)
		if err != nil {
			t.Fatal(err)
		}
		return s.accept(protobuf, method, path, protobuf, string(data))
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Data: map[string]string{"a": "1"}}
	made := send("POST", configMaps, m).is(201).typed(d, protobuf).(*corev1.ConfigMap)
	dry := send("PUT", configMaps+"/m?dryRun=All", m).is(200).typed(d, protobuf).(*corev1.ConfigMap)
	if made.UID == "" || dry.UID != made.UID || made.Data["a"] != "1" {
		t.Errorf("made %v, dry %v", made, dry)
	}
	unseen := m.DeepCopy()
	unseen.ResourceVersion = "0"
	if dry := send("PUT", configMaps+"/m?dryRun=All", unseen).is(200).typed(d, protobuf).(*corev1.ConfigMap); dry.ResourceVersion != made.ResourceVersion {
		t.Errorf("resourceVersion %s of a dry run from any revision, want %s", dry.ResourceVersion, made.ResourceVersion)
	}
	again := send("POST", configMaps, m).is(409).typed(d, protobuf).(*metav1.Status)
	if again.Reason != metav1.StatusReasonAlreadyExists || again.Details.Name != "m" {
		t.Errorf("%+v", again)
	}
	uid := made.UID
	gone := send("DELETE", configMaps+"/m", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}).is(200).typed(d, protobuf).(*metav1.Status)
	if gone.Status != metav1.StatusSuccess || gone.Details.UID != made.UID {
		t.Errorf("%+v", gone)
	}
	missing := s.accept(protobuf, "GET", configMaps+"/m", "", "").is(404).typed(d, protobuf).(*metav1.Status)
	if missing.Message != `configmaps "m" not found` {
		t.Errorf("%+v", missing)
	}
}

// Unknown fields of a kind with a Go type are reported in the order of the document.
func TestUnknownFieldsInOrder(t *testing.T) {
	s := newTypedServer(t)
	const body = `{"zz":1,"metadata":{"name":"a","odd":{}},"data":{"a":"b"},"aa":1}`
	s.post(configMaps+"?fieldValidation=Strict", body).message(400,
		`ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "zz", unknown field "metadata.odd", unknown field "aa"`)
	if got, want := s.post(configMaps, body).is(201).header["Warning"], []string{`299 - "unknown field \"zz\""`, `299 - "unknown field \"metadata.odd\""`, `299 - "unknown field \"aa\""`}; !slices.Equal(got, want) {
		t.Errorf("warnings %s", got)
	}
}

// Objects without a Go type have only their metadata in protobuf, and Tables have no protobuf.
func TestProtobufOfCustomResources(t *testing.T) {
	s := newTypedServer(t)
	_, d := types(t)
	s.post(leads, named("a")).is(201)
	s.post(configMaps, `{"metadata":{"name":"a"}}`).is(201)

	want := s.get(leads + "/a").tree()["metadata"].(map[string]any)
	got := s.accept(protobuf+asMetadata, "GET", leads+"/a", "", "").is(200).typed(d, protobuf).(*metav1.PartialObjectMetadata)
	if got.Name != "a" || string(got.UID) != want["uid"] || got.ResourceVersion != want["resourceVersion"] {
		t.Errorf("%+v, want %v", got, want)
	}
	list := s.accept(protobuf+asMetadatas, "GET", leads, "", "").is(200).typed(d, protobuf).(*metav1.PartialObjectMetadataList)
	if len(list.Items) != 1 || list.Items[0].UID != got.UID || list.ResourceVersion == "" {
		t.Errorf("%+v", list)
	}
	for _, path := range []string{leads, leads + "/a", leads + "/nope", leads + "/a/status", leads + "?watch=1"} {
		refused := s.accept(protobuf, "GET", path, "", "").is(406).typed(d, protobuf).(*metav1.Status)
		if refused.Message != acceptedOnly {
			t.Errorf("%s: %s", path, refused.Message)
		}
	}
	for _, path := range []string{leads, leads + "/a", configMaps, configMaps + "/a", configMaps + "?watch=1"} {
		s.accept(protobuf+asTable, "GET", path, "", "").message(406, acceptedOnly)
	}
	s.accept(protobuf+asTable+",application/json", "GET", leads+"/a", "", "").is(200, `"kind":"Lead"`)
	s.do("POST", leads, protobuf, "k8s\x00").message(415,
		"the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf")
}

// For a built-in kind, an Accept header without a full media type is rejected whatever the
// request, and so is an unsupported patch type. For a custom kind, ranges are allowed, and the
// error lists the supported patch types.
func TestAcceptOfRoutes(t *testing.T) {
	s := newTypedServer(t)
	s.post(configMaps, `{"metadata":{"name":"a"}}`).is(201)
	s.post(leads, named("a")).is(201)
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		for _, path := range []string{configMaps, configMaps + "/a", configMaps + "/nope"} {
			if method == "POST" && path != configMaps || path == configMaps && (method == "PUT" || method == "PATCH") {
				continue // has no route
			}
			a := s.accept("application/*", method, path, mergePatch, `{}`).is(406, `"message":"406: Not Acceptable\n\nAvailable representations: application/json, `, `"details":{}`)
			if got := strings.Contains(a.body, ";stream=watch"); got != (method == "GET" && path == configMaps) {
				t.Errorf("%s %s: %s", method, path, a.body)
			}
		}
	}
	for _, sent := range []string{"", "application/json", "application/apply-patch+cbor"} {
		s.do("PATCH", configMaps+"/a", sent, `{}`).is(415, `"message":"415: Unsupported Media Type"`, `"details":{}`)
		s.do("PATCH", leads+"/a", sent, `{}`).is(415, `accepted media types include: application/json-patch+json, `)
	}
	s.accept("application/*", "GET", configMaps+"/a/nope", "", "").is(404)
	s.accept("application/*", "GET", leads+"/a", "", "").is(200)
	s.accept("application/*", "DELETE", leads+"/a", "", "").is(200)
	s.get(configMaps + "/a").is(200)
}

// In protobuf all events of a watch are protobuf, bookmarks and errors included.
func TestProtobufWatch(t *testing.T) {
	s := newTypedServer(t)
	_, d := types(t)
	s.post(configMaps, `{"metadata":{"name":"m"},"data":{"a":"1"}}`).is(201)
	made := s.get(configMaps+"/m").typed(d, "application/json")
	s.post(leads, named("a")).is(201)

	const initial = "?watch=1&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&allowWatchBookmarks=true"
	events := s.events(d, protobuf, configMaps+initial)
	if events[0].Type != "ADDED" || !reflect.DeepEqual(events[0].Object.Object, made) {
		t.Fatalf("%+v", events)
	}
	mark, ok := events[1].Object.Object.(*corev1.ConfigMap)
	if !ok || events[1].Type != "BOOKMARK" || mark.Annotations[metav1.InitialEventsAnnotationKey] != "true" || mark.ResourceVersion == "" {
		t.Errorf("%+v", events[1])
	}
	// The same event has other bytes in another format.
	if e := s.watch(configMaps + initial)(); e != "ADDED m" {
		t.Error(e)
	}
	metadata := s.events(d, protobuf+asMetadata, configMaps+initial)
	if m, ok := metadata[0].Object.Object.(*metav1.PartialObjectMetadata); !ok || m.Name != "m" {
		t.Errorf("%+v", metadata)
	}
	metadata = s.events(d, protobuf+asMetadata, leads+initial)
	if m, ok := metadata[0].Object.Object.(*metav1.PartialObjectMetadata); !ok || m.Name != "a" {
		t.Errorf("%+v", metadata)
	}
}

// events returns the first two events of a watch.
func (s *server) events(d runtime.Decoder, accept, path string) (events []metav1.WatchEvent) {
	s.t.Helper()
	ts := httptest.NewServer(s.handler)
	defer ts.Close()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", ts.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	resp, err := ts.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != protobuf+";stream=watch" {
		s.t.Fatalf("%d, Content-Type %q", resp.StatusCode, got)
	}
	for len(events) < 2 {
		var length uint32
		if err := binary.Read(resp.Body, binary.BigEndian, &length); err != nil {
			s.t.Fatal(err)
		}
		frame := make([]byte, length)
		if _, err := io.ReadFull(resp.Body, frame); err != nil {
			s.t.Fatal(err)
		}
		var e metav1.WatchEvent
		if err := e.Unmarshal(frame); err != nil {
			s.t.Fatal(err)
		}
		if !bytes.HasPrefix(e.Object.Raw, []byte("k8s\x00")) {
			s.t.Fatalf("%q", e.Object.Raw)
		}
		o, _, err := d.Decode(e.Object.Raw, nil, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		e.Object.Object = o
		events = append(events, e)
	}
	return events
}
