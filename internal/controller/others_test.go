package controller_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// A garden is another server, with the kind Rose.
type garden struct {
	roses     map[string]string // by key
	conflicts int               // number of writes to fail with a conflict
	err       error             // of discovery
	known     bool              // discovery has the kind
}

var rose = &resource.Definition{Group: "flowers.dev", Plural: "roses", Kind: "Rose", Namespaced: true,
	StoragePrefix: controller.OthersRoot + "flowers.dev/v1/roses/", Versions: []*resource.Version{{Name: "v1", Served: true, Storage: true}}}

func (g *garden) As(string) controller.Aggregated { return g }
func (g *garden) Any(context.Context) bool        { return true }
func (g *garden) Kinds(context.Context) ([]*resource.Definition, error) {
	if !g.known {
		return nil, g.err
	}
	return []*resource.Definition{rose}, g.err
}

func (g *garden) Get(_ context.Context, key string) ([]byte, error) {
	if body, ok := g.roses[key]; ok {
		return []byte(body), nil
	}
	return nil, g.err
}

func (g *garden) Pages(context.Context, string, func(kv.Page)) error { return g.err }

func (g *garden) Put(_ context.Context, key string, body []byte) error {
	if g.conflicts > 0 {
		g.conflicts--
		return apierrors.NewConflict(schema.GroupResource{Resource: "roses"}, key, errors.New("changed"))
	}
	g.roses[key] = string(body)
	return nil
}

func (g *garden) Delete(_ context.Context, key string, _ *metav1.DeleteOptions) error {
	delete(g.roses, key)
	return nil
}

func (g *garden) Follow(context.Context, *resource.Definition) iter.Seq[kv.Event] {
	return func(func(kv.Event) bool) {}
}

// Operations on objects of another server are requests to it. An unknown kind leads to an
// UnknownError, and failed discovery to another error. Neither counts as deleted.
func TestOthers(t *testing.T) {
	ctx, key := t.Context(), rose.Key("dev", "a")
	g := &garden{known: true, conflicts: 2, roses: map[string]string{key: `{"metadata":{"name":"a","namespace":"dev","uid":"1","resourceVersion":"7","finalizers":["x"]}}`}}
	o := &controller.Objects{Catalog: &resource.Catalog{}, Refresh: func(context.Context) error { return nil }, Aggregated: g}

	h, err := o.Read(ctx, key)
	if err != nil || h.UID != "1" || h.Revision != 7 || !h.Has("x") {
		t.Fatal(h, err)
	}
	clear := func(t object.Tree) bool { object.SetFinalizers(t, nil); return true }
	if err := o.Change(ctx, rose, key, "another", "", clear); err != nil || !strings.Contains(g.roses[key], "finalizers") {
		t.Errorf("another object was changed: %s, %v", g.roses[key], err)
	}
	if err := o.Change(ctx, rose, key, "1", "", clear); err != nil || strings.Contains(g.roses[key], "finalizers") {
		t.Errorf("it was not changed: %s, %v", g.roses[key], err)
	}
	if d, err := o.Kind(ctx, "flowers.dev/v1", "Rose"); d != rose || err != nil {
		t.Error(d, err)
	}
	if _, err := o.Kind(ctx, "flowers.dev/v1", "Thorn"); !controller.IsUnknown(err) {
		t.Error(err)
	}
	if err := o.With(ctx, "", key, func(d *resource.Definition) error { return o.Delete(ctx, d, key, &metav1.DeleteOptions{}) }); err != nil || len(g.roses) > 0 {
		t.Error(g.roses, err)
	}
	if h, err := o.Read(ctx, key); h != nil || err != nil {
		t.Error(h, err)
	}
	g.known, g.err = false, errors.New("down")
	for name, err := range map[string]error{
		"its kind":   second(o.Kind(ctx, "flowers.dev/v1", "Rose")),
		"the object": second(o.Read(ctx, key)),
		"the key":    o.With(ctx, "", key, func(*resource.Definition) error { return nil }),
	} {
		if err == nil || controller.IsUnknown(err) {
			t.Errorf("%s of a server that is down: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
