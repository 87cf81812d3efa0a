// Package intern is a weak table of shared values, found by keys. It makes each value once
// while the value is in use, and keeps no value alive.
package intern

import (
	"runtime"
	"sync"
	"weak"
)

// A Table holds the values that are in use by key. What a key says of a value, it
// says completely: values of one key can stand for each other. The zero value is
// empty; a nil one stays empty. It may be used concurrently.
type Table[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]weak.Pointer[V]
}

// Get returns the value of a key, or nil.
func (t *Table[K, V]) Get(key K) *V {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.values[key].Value()
}

// Put returns the value to use for a key: the one that is in use, or v.
func (t *Table[K, V]) Put(key K, v *V) *V {
	if t == nil {
		return v
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.values[key].Value(); known != nil {
		return known
	}
	if t.values == nil {
		t.values = map[K]weak.Pointer[V]{}
	}
	t.values[key] = weak.Make(v)
	runtime.AddCleanup(v, t.forget, key)
	return v
}

// forget drops a value that is gone, unless another came in its place.
func (t *Table[K, V]) forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values[key].Value() == nil {
		delete(t.values, key)
	}
}

// Len is how many values are in use.
func (t *Table[K, V]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.values)
}
