package registry_test

import (
	"context"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// numbered is a kind whose objects each have a number, reserved by keys under /numbers/.
func numbered(allocate func(context.Context, *resource.Change) error, resolve func(context.Context, *resource.Change) ([]resource.Mark, error)) *resource.Definition {
	anything := true
	d := resource.Definition{Group: "example.com", Plural: "items", Singular: "item", Kind: "Item", ListKind: "ItemList", StoragePrefix: "/registry/items/"}
	d.Versions = []*resource.Version{{Name: "v1", Served: true, Storage: true, Schema: schema.Lazy(func() (*apiextensionsv1.JSONSchemaProps, error) {
		return &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}, nil
	}, model.Kind{Group: d.Group, Version: "v1", Kind: d.Kind, ListKind: d.ListKind})}}
	d.Allocate, d.Resolve = allocate, resolve
	return resource.New(d)
}

func item(name string) registry.Change {
	return registry.Given(object.Tree{"apiVersion": "example.com/v1", "kind": "Item", "metadata": object.Tree{"name": name}})
}

// A write whose allocation is taken allocates again, and stores all of its marks. If a mark has moved,
// the write is resolved again.
func TestMarks(t *testing.T) {
	backend := memkv.New(memkv.Options{})
	number, allocated, resolved := int64(0), 0, 0
	counter := int64(0) // revision of a mark that all writes move
	commit := func(w kv.Write) int64 {
		revision, err := backend.Commit(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	commit(kv.Write{Key: "/numbers/1", Value: []byte("other")})
	d := numbered(func(_ context.Context, c *resource.Change) error {
		allocated++
		number++
		c.Object["number"] = number
		return nil
	}, func(ctx context.Context, c *resource.Change) ([]resource.Mark, error) {
		resolved++
		key := fmt.Sprint("/numbers/", c.Object["number"])
		if _, err := backend.Get(ctx, key, kv.Latest); err == nil {
			return nil, resource.ErrTaken
		}
		known := counter
		if resolved == 2 { // another write moves it before the commit
			counter = commit(kv.Write{Key: "/counter/x", Value: []byte("1")})
		}
		return []resource.Mark{
			{Key: key, Moves: true, Value: []byte(c.Name)}, {Key: "/counter/x", Revision: known, Moves: true, Value: []byte("2")}, {Key: "/guard/x"},
		}, nil
	})
	r := registry.New(backend, caching(t, backend), registry.Options{})
	result, err := r.Create(t.Context(), registry.StorageTarget(d, "", "a"), item("a"), registry.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if result.Tree["number"] != int64(2) || allocated != 2 || resolved != 3 {
		t.Errorf("%v was allocated %d times and resolved %d times", result.Tree, allocated, resolved)
	}
	for key, want := range map[string]string{"/numbers/1": "other", "/numbers/2": "a", "/counter/x": "2"} {
		if record, err := backend.Get(t.Context(), key, kv.Latest); err != nil || string(record.Value) != want {
			t.Errorf("%s is %q, %v", key, record.Value, err)
		}
	}
}

// A write ends if every allocation is taken.
func TestTakenForEver(t *testing.T) {
	backend := memkv.New(memkv.Options{})
	d := numbered(nil, func(context.Context, *resource.Change) ([]resource.Mark, error) { return nil, resource.ErrTaken })
	d.AllowCreateOnUpdate = true
	r := registry.New(backend, caching(t, backend), registry.Options{})
	target := registry.StorageTarget(d, "", "a")
	if _, err := r.Create(t.Context(), target, item("a"), registry.WriteOptions{}); !status.Is(err, metav1.StatusReasonConflict) {
		t.Errorf("create: %v", err)
	}
	if _, err := r.Modify(t.Context(), target, item("a"), registry.WriteOptions{}); !status.Is(err, metav1.StatusReasonConflict) {
		t.Errorf("update: %v", err)
	}
}
