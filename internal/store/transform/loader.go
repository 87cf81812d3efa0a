package transform

import (
	"context"

	"github.com/anykind/anykind/internal/store/kv"
)

// Loader returns a kv.Loader of the plain values, see kv.LoaderOf.
func (b *Backend) Loader() kv.Loader {
	below := kv.LoaderOf(b.below)
	if below == nil {
		return nil
	}
	return loader{b, below}
}

type loader struct {
	*Backend
	below kv.Loader
}

// Load implements kv.Loader.
func (l loader) Load(ctx context.Context, key string, revision int64) ([]byte, error) {
	stored, err := l.below.Load(ctx, key, revision)
	if err != nil {
		return nil, err
	}
	return l.decode(ctx, key, stored), nil
}
