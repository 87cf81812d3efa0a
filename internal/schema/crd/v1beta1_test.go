package crd_test

import (
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/crd"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// A definition stored by a cluster in v1beta1: common fields of all versions are at the top, and so
// are those of the conversion webhook.
const betaDefinition = `{
	"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition",
	"metadata": {"name": "widgets.example.com", "uid": "1"},
	"spec": {
		"group": "example.com", "version": "v1", "preserveUnknownFields": false,
		"names": {"plural": "widgets", "kind": "Widget"},
		"validation": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer", "default": 7}}}}}},
		"additionalPrinterColumns": [{"name": "N", "type": "integer", "JSONPath": ".spec.n"}],
		"subresources": {"status": {}},
		"conversion": {"strategy": "Webhook", "webhookClientConfig": {"url": "https://example.com"}},
		"versions": [{"name": "v1", "served": true, "storage": true}, {"name": "v2", "served": true, "storage": false}]
	},
	"status": {
		"acceptedNames": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
		"conditions": [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}],
		"storedVersions": ["v1"]
	}
}`

// restored is a store with the definition widgets.example.com as in an etcd.
func restored(t *testing.T, definition string) *memkv.Store {
	t.Helper()
	data, err := crd.FromBeta([]byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	store := memkv.New(memkv.Options{})
	if _, err := store.Commit(t.Context(), kv.Write{Key: crd.Prefix + "widgets.example.com", Value: data}); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestStoredBeta(t *testing.T) {
	s := startOver(t, restored(t, betaDefinition))
	// It is served like any other.
	made, err := s.try(s.target("example.com", "widgets", "default", "one"),
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"one","namespace":"default"},"spec":{}}`)
	if err != nil {
		t.Fatal(err)
	}
	if n := made["spec"].(object.Tree)["n"]; n != int64(7) {
		t.Errorf("the default of n is %v", n)
	}

	// And it is whole when it is written again.
	crd, err := s.change("widgets.example.com", "", func(crd *v1.CustomResourceDefinition) { crd.Labels = map[string]string{"a": "b"} })
	if err != nil {
		t.Fatal(err)
	}
	if crd.Spec.Names.ListKind != "WidgetList" || crd.Spec.Scope != v1.NamespaceScoped || crd.Spec.PreserveUnknownFields {
		t.Errorf("defaults of v1beta1 are missing: %+v", crd.Spec)
	}
	if w := crd.Spec.Conversion.Webhook; w == nil || *w.ClientConfig.URL != "https://example.com" || len(w.ConversionReviewVersions) != 1 {
		t.Errorf("conversion %+v", crd.Spec.Conversion)
	}
	for _, v := range crd.Spec.Versions {
		if v.Schema == nil || v.Subresources == nil || len(v.AdditionalPrinterColumns) != 1 || v.AdditionalPrinterColumns[0].JSONPath != ".spec.n" {
			t.Errorf("version %s lacks what is said for all: %+v", v.Name, v)
		}
	}
}

// A definition with only the name of its version, as the first ones had, and without
// preserveUnknownFields preserves unknown fields.
func TestStoredBetaOfOld(t *testing.T) {
	s := startOver(t, restored(t, `{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com","uid":"1"},
		"spec":{"group":"example.com","version":"v1","scope":"Cluster","names":{"plural":"widgets","kind":"Widget"}}}`))
	s.eventually("widgets.example.com", "served", func(crd *v1.CustomResourceDefinition) bool { return len(crd.Status.Conditions) == 3 })
	crd := s.stored("widgets.example.com")
	if len(crd.Spec.Versions) != 1 || !crd.Spec.Versions[0].Storage || !crd.Spec.PreserveUnknownFields {
		t.Errorf("%+v", crd.Spec)
	}
	if got := crd.Status.Conditions[2]; got.Type != v1.NonStructuralSchema || !strings.Contains(got.Message, "spec.preserveUnknownFields: Invalid value: true: must be false") {
		t.Errorf("condition %+v", got)
	}
	made, err := s.try(s.target("example.com", "widgets", "", "one"), `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"one"},"any":"thing"}`)
	if err != nil || made["any"] != "thing" {
		t.Errorf("created %v, %v", made, err)
	}
}

// Only a definition of v1beta1 is converted, and invalid JSON is an error.
func TestFromBeta(t *testing.T) {
	for _, same := range []string{`{"apiVersion":"apiextensions.k8s.io/v1"}`, `{"apiVersion": "x", "of": "apiextensions.k8s.io/v1beta1"}`, "torn"} {
		if got, err := crd.FromBeta([]byte(same)); err != nil || string(got) != same {
			t.Errorf("%s became %s, %v", same, got, err)
		}
	}
	if got, err := crd.FromBeta([]byte(`{"apiVersion":"apiextensions.k8s.io/v1beta1"`)); err == nil {
		t.Errorf("torn, read as %s", got)
	}
}
