package rest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/anykind/anykind/internal/admission"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// "Conflicts of patches without a resourceVersion retry inside": every patch is applied.
func TestConcurrentPatches(t *testing.T) {
	s := newServer(t)
	s.make("a")
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			s.merge(leads+"/a", fmt.Sprintf(`{"metadata":{"annotations":{"k%d":"v"}}}`, i)).is(200)
		})
	}
	group.Wait()
	annotations, _ := object.Metadata(s.get(leads + "/a").tree())["annotations"].(object.Tree)
	if len(annotations) != 20 {
		t.Errorf("%d annotations: %v", len(annotations), annotations)
	}
}

// Of several updates with the same resourceVersion, one succeeds.
func TestConcurrentUpdates(t *testing.T) {
	s := newServer(t)
	rv := s.make("a")
	codes := make([]int, 8)
	var group sync.WaitGroup
	for i := range codes {
		group.Go(func() {
			codes[i] = s.merge(leads+"/a", fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"n":%d}}`, rv, i)).code
		})
	}
	group.Wait()
	won := 0
	for _, c := range codes {
		switch c {
		case 200:
			won++
		case 409:
		default:
			t.Errorf("code %d", c)
		}
	}
	if won != 1 {
		t.Errorf("%d writers won: %v", won, codes)
	}
}

// A write whose Definition changed meanwhile is retried with the new one.
func TestStaleDefinition(t *testing.T) {
	backend := memkv.New(memkv.Options{})
	defer backend.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cache := watchcache.New(backend, watchcache.Options{})
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	defer func() { cancel(); <-done }()

	const source = "/registry/apiextensions.k8s.io/customresourcedefinitions/leads.test.example.com"
	first, err := backend.Commit(ctx, kv.Write{Key: source, Value: []byte(`{"metadata":{}}`)})
	if err != nil {
		t.Fatal(err)
	}
	var catalog resource.Catalog
	old, new := *lead(), *lead()
	new.Versions[0].Schema = schemaOf("Lead")
	// The source changes once, between the preparation of a write and its commit.
	seen := first
	guard := func(*resource.Definition) (kv.Guard, bool) {
		before := seen
		if seen == first {
			if seen, err = backend.Commit(ctx, kv.Write{Key: source, Value: []byte(`{"metadata":{"x":1}}`), Expect: first}); err != nil {
				t.Error(err)
			}
		}
		return kv.Guard{Key: source, Revision: before}, true
	}
	catalog.Swap(resource.NewSet([]*resource.Definition{resource.New(old)}))
	refreshed := 0
	s := &server{t: t, backend: backend, handler: rest.New(
		registry.New(backend, cache, registry.Options{Source: guard}), &catalog,
		rest.Options{Refresh: func(context.Context) error {
			refreshed++
			catalog.Swap(resource.NewSet([]*resource.Definition{resource.New(new)}))
			return nil
		}})}
	s.post(leads, named("a", `,"spec":{"a":"x"}`)).is(201, `"a":"x"`)
	if refreshed != 1 {
		t.Errorf("refreshed %d times", refreshed)
	}
}

// No object is created in a namespace that is missing or terminating.
func TestNamespaceLifecycle(t *testing.T) {
	backend := memkv.New(memkv.Options{})
	defer backend.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cache := watchcache.New(backend, watchcache.Options{})
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	defer func() { cancel(); <-done }()

	var catalog resource.Catalog
	catalog.Swap(resource.NewSet([]*resource.Definition{lead()}))
	lifecycle := &admission.NamespaceLifecycle{Namespaces: admission.Namespaces{Cache: cache, Prefix: "/registry/namespaces/"}}
	s := &server{t: t, backend: backend, handler: rest.New(
		registry.New(backend, cache, registry.Options{Plugins: registry.Plugins{Mutators: []registry.Mutator{lifecycle}}}), &catalog, rest.Options{})}

	s.post(leads, named("a")).message(404, `namespaces "default" not found`)
	s.store("/registry/namespaces/default", `{"metadata":{"name":"default"}}`)
	s.post(leads, named("a")).is(201)
	r, err := backend.Get(ctx, "/registry/namespaces/default", kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	gone := []byte(`{"metadata":{"name":"default","deletionTimestamp":"2026-01-01T00:00:00Z"}}`)
	if _, err := backend.Commit(ctx, kv.Write{Key: r.Key, Expect: r.Revision, Value: gone}); err != nil {
		t.Fatal(err)
	}
	s.post(leads, named("b")).is(403, "unable to create new content in namespace default because it is being terminated", "NamespaceTerminating")
	s.merge(leads+"/a", `{"spec":{"a":"x"}}`).is(200)
	s.delete(leads+"/a", "").is(200)
}
