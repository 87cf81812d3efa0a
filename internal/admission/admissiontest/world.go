// Package admissiontest has a store and a registry of the built-in kinds for tests of admission
// plugins.
//
// Objects are YAML, so a test reads like the requests and responses of a client.
package admissiontest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A World is an empty store with the built-in kinds.
type World struct {
	T     *testing.T
	Cache *watchcache.Cache
	Kinds *resource.Set
	// User is the user of the writes, if not nil.
	User *request.User
	// Warnings are those of the last write.
	Warnings []string

	kinds    []*resource.Definition
	registry *registry.Registry
	ctx      context.Context
	last     *request.Request
}

// New returns a World with the plugins that the function returns.
func New(t *testing.T, plugins func(w *World) []any) *World { return NewWithGates(t, nil, plugins) }

// NewWithGates is New with feature gates.
func NewWithGates(t *testing.T, gates *gate.Set, plugins func(w *World) []any) *World {
	w := &World{T: t, kinds: builtin.Dependencies{Gates: gates}.Definitions()}
	backend := memkv.New(memkv.Options{})
	w.Cache, w.Kinds = watchcache.New(backend, watchcache.Options{}), resource.NewSet(w.kinds)
	asked := registry.Plugins{}
	for _, p := range plugins(w) {
		asked.Add(p)
	}
	w.registry = registry.New(backend, w.Cache, registry.Options{Plugins: asked, Gates: gates})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Cache.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; _ = backend.Close() })
	w.ctx = ctx
	return w
}

// Create creates an object, and returns it.
func (w *World) Create(text string) (object.Tree, error) {
	w.T.Helper()
	t := w.tree(text)
	target, o := w.write(t, "")
	result, err := w.registry.Create(w.asking(), target, registry.Given(t), o)
	return result.Tree, w.wait(result, err)
}

// Update applies a merge patch to an object, or to its subresource, and returns the object.
func (w *World) Update(text, subresource string) (object.Tree, error) {
	w.T.Helper()
	patch := w.tree(text)
	target, o := w.write(patch, subresource)
	result, err := w.registry.Modify(w.asking(), target, func(old object.Tree) (object.Tree, error) {
		return merged(old, patch).(object.Tree), nil
	}, o)
	return result.Tree, w.wait(result, err)
}

// Have creates existing objects from YAML documents, separated by three dashes.
func (w *World) Have(texts string) {
	w.T.Helper()
	for text := range strings.SplitSeq(texts, "\n---\n") {
		if _, err := w.Create(text); err != nil {
			w.T.Fatal(err)
		}
	}
}

// wait waits until the cache of the plugins has the write.
func (w *World) wait(r registry.Result, err error) error {
	if err == nil && r.Revision > 0 {
		err = w.Cache.Wait(w.ctx, r.Revision)
	}
	return err
}

// asking returns the context of a request.
func (w *World) asking() context.Context {
	w.Warnings, w.last = nil, &request.Request{User: w.User}
	return request.With(w.ctx, w.last)
}

// Annotation returns the audit annotation of the last write with that key.
func (w *World) Annotation(key string) string {
	for _, a := range w.last.Annotations {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

func (w *World) write(t object.Tree, subresource string) (registry.Target, registry.WriteOptions) {
	w.T.Helper()
	for _, d := range w.kinds {
		v := d.StorageVersion()
		if d.Kind != object.Kind(t) || d.APIVersion(v.Name) != object.APIVersion(t) {
			continue
		}
		target := registry.StorageTarget(d, "", object.Name(t))
		if target.Subresource = subresource; d.Namespaced {
			target.Namespace = "dev"
		}
		return target, registry.WriteOptions{
			Warn: func(message string) { w.Warnings = append(w.Warnings, message) },
			Complete: func(t object.Tree) (object.Tree, error) {
				t, _, err := v.Schema.Complete(t)
				return t, err
			},
		}
	}
	w.T.Fatalf("there is no kind %s of %s", object.Kind(t), object.APIVersion(t))
	return registry.Target{}, registry.WriteOptions{}
}

func (w *World) tree(text string) object.Tree {
	w.T.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		w.T.Fatal(err)
	}
	var t object.Tree
	if err := utiljson.Unmarshal(data, &t); err != nil {
		w.T.Fatal(err)
	}
	return t
}

// Field returns a field of an object as JSON. Dots separate the path.
func Field(t object.Tree, path string) string {
	var at any = t
	for name := range strings.SplitSeq(path, ".") {
		tree, _ := at.(object.Tree)
		at = tree[name]
	}
	if at == nil {
		return ""
	}
	data, err := json.Marshal(at)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// merged returns a value after a merge patch.
func merged(value, patch any) any {
	p, ok := patch.(object.Tree)
	if !ok {
		return object.Clone(patch)
	}
	out := object.Tree{}
	if v, ok := value.(object.Tree); ok {
		out = object.CloneTree(v)
	}
	for name, field := range p {
		if out[name] = merged(out[name], field); field == nil {
			delete(out, name)
		}
	}
	return out
}
