package registry_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/jsonschema"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/schema/structural"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// An object that is marked as being deleted through another version is stored in the storage version,
// if no webhook converts.
func TestDeletionIsStoredInTheStorageVersion(t *testing.T) {
	const stored = `{"apiVersion":"example.com/v1beta1","kind":"Item","metadata":{"finalizers":["example.com/x"],"name":"a","uid":"u"},"spec":{"v1beta1":"old"}}`
	var shared structural.Shared
	d := resource.Definition{Group: "example.com", Plural: "items", Singular: "item", Kind: "Item", ListKind: "ItemList", StoragePrefix: "/registry/items/"}
	for _, name := range []string{"v1", "v1beta1"} {
		source := jsonschema.NewSource(func() ([]byte, error) {
			return fmt.Appendf(nil, `{"type":"object","properties":{"spec":{"type":"object","properties":{%q:{"type":"string"}}}}}`, name), nil
		})
		d.Versions = append(d.Versions, &resource.Version{
			Name: name, Served: true, Storage: name == "v1",
			Schema: schema.Stored(source, model.Kind{Group: d.Group, Version: name, Kind: d.Kind, ListKind: d.ListKind, Plural: d.Plural}, &shared),
		})
	}
	backend := memkv.New(memkv.Options{})
	revision, err := backend.Commit(t.Context(), kv.Write{Key: d.Key("", "a"), Value: []byte(stored)})
	if err != nil {
		t.Fatal(err)
	}
	d.CompleteSince = revision // v1beta1 was the storage version before
	items := resource.New(d)
	r := registry.New(backend, caching(t, backend), registry.Options{})
	target := registry.Target{Definition: items, Version: items.Version("v1beta1"), Name: "a"}
	if _, err := r.Delete(t.Context(), target, &metav1.DeleteOptions{}, registry.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	record, err := backend.Get(t.Context(), items.Key("", "a"), kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(record.Value); !strings.Contains(s, `"deletionTimestamp"`) || !strings.HasPrefix(s, `{"apiVersion":"example.com/v1",`) || strings.Contains(s, "old") {
		t.Errorf("stored is %s", s)
	}
}
