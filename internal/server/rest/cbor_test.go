package rest_test

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
)

// cborOf encodes an object as a client does.
func cborOf(t *testing.T, v object.Tree) string {
	t.Helper()
	data, err := direct.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fromCBOR decodes an answer as a client does.
func (a answer) fromCBOR() *unstructured.Unstructured {
	a.t.Helper()
	if got := a.header.Get("Content-Type"); got != runtime.ContentTypeCBOR {
		a.t.Fatalf("%d Content-Type %q: %q", a.code, got, a.body)
	}
	u := &unstructured.Unstructured{}
	if err := direct.Unmarshal([]byte(a.body), &u.Object); err != nil {
		a.t.Fatal(err)
	}
	return u
}

// A server with CBOR enabled accepts and sends it for every verb, for custom and for typed
// objects.
func TestCBOR(t *testing.T) {
	s := newTypedServer(t)
	plain, offer := s.handler, codec.Offer{CBOR: true}
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		plain.ServeHTTP(w, r.WithContext(offer.Context(r.Context())))
	})
	const cbor = runtime.ContentTypeCBOR
	for _, tt := range []struct {
		path, apiVersion, kind string
	}{{leads, "test.example.com/v1", "Lead"}, {configMaps, "v1", "ConfigMap"}} {
		sent := object.Tree{"apiVersion": tt.apiVersion, "kind": tt.kind, "metadata": object.Tree{"name": "c"}}
		made := s.accept(cbor, "POST", tt.path, cbor, cborOf(t, sent)).is(201).fromCBOR()
		if made.GetName() != "c" || made.GetUID() == "" || made.GetKind() != tt.kind {
			t.Errorf("made %v", made)
		}
		made.SetLabels(map[string]string{"l": "1"})
		put := s.accept(cbor, "PUT", tt.path+"/c", cbor, cborOf(t, made.Object)).is(200).fromCBOR()
		sent["metadata"].(object.Tree)["annotations"] = object.Tree{"a": "b"}
		applied := s.accept(cbor, "PATCH", tt.path+"/c?fieldManager=m", "application/apply-patch+cbor", cborOf(t, sent)).is(200).fromCBOR()
		if put.GetLabels()["l"] != "1" || applied.GetLabels()["l"] != "1" || applied.GetAnnotations()["a"] != "b" {
			t.Errorf("put %v, applied %v", put, applied)
		}
		list := s.accept(cbor, "GET", tt.path, "", "").is(200).fromCBOR()
		if items, _ := list.Object["items"].([]any); len(items) != 1 || list.GetKind() != tt.kind+"List" {
			t.Errorf("list %v", list)
		}
		got := s.accept(cbor, "GET", tt.path+"/c", "", "").is(200).fromCBOR()
		if want := s.get(tt.path + "/c").tree(); !object.Equal(got.Object, want) {
			t.Errorf("got %v, want %v", got.Object, want)
		}
		uid := string(got.GetUID())
		gone := s.accept(cbor, "DELETE", tt.path+"/c", cbor, cborOf(t, object.Tree{"preconditions": object.Tree{"uid": uid}})).is(200).fromCBOR()
		if gone.Object["status"] != "Success" {
			t.Errorf("deleted %v", gone)
		}
		missing := s.accept(cbor, "GET", tt.path+"/c", "", "").is(404).fromCBOR()
		if missing.Object["reason"] != "NotFound" {
			t.Errorf("missing %v", missing)
		}
	}
	s.do("PATCH", leads+"/c?fieldManager=m", "application/apply-patch+cbor", "\x80").is(400, "error decoding patch: cbor: ")
	s.do("POST", leads, cbor, "\xa1").is(400, "the object provided is unrecognized")

	// Without the feature, CBOR is neither accepted nor sent.
	s.handler = plain
	s.accept(cbor, "GET", leads, "", "").is(406)
	s.do("POST", leads, cbor, "\xa0").is(415)
	s.do("PATCH", leads+"/c?fieldManager=m", "application/apply-patch+cbor", "\xa0").is(415)
}
