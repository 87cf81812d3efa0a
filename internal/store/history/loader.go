package history

import (
	"context"

	"github.com/anykind/anykind/internal/store/kv"
)

// Loader returns a kv.Loader of all kept states, see kv.LoaderOf.
func (s *Store) Loader() kv.Loader {
	below := kv.LoaderOf(s.below)
	if below == nil {
		return nil
	}
	return loader{s, below}
}

type loader struct {
	*Store
	below kv.Loader
}

// Load implements kv.Loader. A value that only earlier states have is in the file.
func (l loader) Load(ctx context.Context, key string, revision int64) ([]byte, error) {
	value, err := l.below.Load(ctx, key, revision)
	if !compacted(err) {
		return value, err
	}
	record, past := l.Get(ctx, key, revision)
	switch {
	case past == nil && record.Revision == revision:
		return record.Value, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case past == nil, past == kv.ErrNotFound:
		return nil, err
	}
	return nil, past
}
