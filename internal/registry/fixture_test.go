package registry_test

import (
	"context"
	"testing"

	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// caching returns a running cache of backend. Both are closed at the end of the test.
func caching(t testing.TB, backend *memkv.Store) *watchcache.Cache {
	t.Helper()
	cache := watchcache.New(backend, watchcache.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = backend.Close()
	})
	return cache
}
