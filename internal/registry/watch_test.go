package registry_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// "Resumable at the last revision it delivered": also at a server that has just started, and has not
// yet read its store.
func TestWatchResumesAtOnce(t *testing.T) { synctest.Test(t, testWatchResumesAtOnce) }

func testWatchResumesAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	backend := memkv.New(memkv.Options{})
	defer backend.Close()
	var revisions []int64
	for _, name := range []string{"a", "b", "c"} {
		value := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"x"}}`)
		revision, err := backend.Commit(ctx, kv.Write{Key: "/registry/configmaps/x/" + name, Value: value})
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, revision)
	}
	cache := watchcache.New(backend, watchcache.Options{})
	r := registry.New(backend, cache, registry.Options{})
	target := registry.StorageTarget(resource.NewSet(builtin.Definitions()).Lookup("", "configmaps"), "x", "")
	seen := make(chan string)
	go func() {
		w, err := r.Watch(ctx, target, registry.WatchOptions{ResourceVersion: strconv.FormatInt(revisions[0], 10)})
		if err != nil {
			t.Error(err)
			return
		}
		defer w.Close()
		portion, err := w.Next(ctx)
		if err != nil {
			t.Error(err)
		}
		for _, e := range portion.Events {
			seen <- e.Object.Name()
		}
		close(seen)
	}()
	synctest.Wait() // the watch has begun, the cache has not
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	got := ""
	for name := range seen {
		got += name
	}
	if got != "bc" {
		t.Errorf("a watch from the revision of a has seen %q", got)
	}
	cancel()
	<-done
}
