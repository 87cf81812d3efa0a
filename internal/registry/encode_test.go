package registry_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// An undecodable object is never stored, not even by the server: it would fail every list of its kind.
func TestUnreadableIsNotStored(t *testing.T) {
	d := *resource.NewSet(builtin.Definitions()).Lookup("", "configmaps")
	spoil := false
	d.Canonicalize = func(obj map[string]any) {
		if spoil {
			object.Metadata(obj)["labels"] = object.Tree{"a": nil}
		}
	}
	backend := memkv.New(memkv.Options{})
	r := registry.New(backend, caching(t, backend), registry.Options{})
	wanted := func(name string) object.Tree {
		return object.Tree{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object.Tree{"name": name}}
	}
	good, bad := registry.StorageTarget(&d, "default", "good"), registry.StorageTarget(&d, "default", "bad")
	made, err := r.Create(t.Context(), good, registry.Given(wanted("good")), registry.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := object.Name(made.Tree); made.Stored.Name != got || made.Stored.Revision != made.Revision {
		t.Errorf("stored is %q at %d, made %q at %d", made.Stored.Name, made.Stored.Revision, got, made.Revision)
	}
	spoil = true
	_, err = r.Create(t.Context(), bad, registry.Given(wanted("bad")), registry.WriteOptions{})
	if !status.Is(err, metav1.StatusReasonInternalError) {
		t.Errorf("creating what cannot be read: %v", err)
	}
	update := func(old object.Tree) (object.Tree, error) { return object.CloneTree(old), nil }
	if _, err := r.Modify(t.Context(), good, update, registry.WriteOptions{}); !status.Is(err, metav1.StatusReasonInternalError) {
		t.Errorf("updating to what cannot be read: %v", err)
	}
	stored, err := backend.List(t.Context(), kv.Range{Prefix: "/registry/"})
	if err != nil || len(stored.Records) != 1 || stored.Records[0].Revision != made.Revision {
		t.Errorf("stored %v, %v; want the good one alone, as it was made", stored, err)
	}
}
