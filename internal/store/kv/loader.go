package kv

import "context"

// A Loader is a Backend with its values on a local disk: it reads a value so fast that readers need not keep
// it in memory. Not every Backend is one: the values of a store in memory are shared already, and those of a
// remote store are too far away.
type Loader interface {
	// Load returns the value that a write at exactly a revision gave to a key, if it is the present value of
	// the key or that of a kept state.
	// Errors: *CompactedError also for a value that never existed; *FutureError, ErrClosed.
	Load(ctx context.Context, key string, revision int64) ([]byte, error)
}

// LoaderOf returns the Loader among a backend and the ones it decorates, or nil. A decorator that changes
// values or states has a method Loader() Loader, with the result nil if the decorated backend has none.
func LoaderOf(b Backend) Loader {
	for b != nil {
		switch found := b.(type) {
		case Loader:
			return found
		case interface{ Loader() Loader }:
			return found.Loader()
		case interface{ Unwrap() Backend }:
			b = found.Unwrap()
		default:
			return nil
		}
	}
	return nil
}
