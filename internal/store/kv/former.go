package kv

import "context"

// A Former is a Backend that stores values in a form that its configuration decides, such as
// encrypted with a key. Not every Backend is one.
type Former interface {
	// Outdated reports whether the value of a key has another form than a write would give it. A write
	// that changes nothing else is then worth it. A value that cannot be read is an error here, as in Get.
	Outdated(ctx context.Context, key string) (bool, error)
}
